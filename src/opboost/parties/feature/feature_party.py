"""The feature party: desensitises its columns once, sends codes, answers one question."""

from __future__ import annotations

import hmac
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from opboost.columns.private_column import PrivateColumn
from opboost.columns.row_ids import Spelling
from opboost.config import Plan
from opboost.config.schema import plan_of
from opboost.errors import ParameterError, PeerError
from opboost.files.stored_release import MANIFEST, StoredRelease
from opboost.ledger import Ledger
from opboost.ledger.renewal import over_time
from opboost.parties.feature.feature_job_folders import FeatureJobFolders
from opboost.parties.feature.feature_psi import FeaturePsi
from opboost.parties.feature.make_release import Charged, ReleaseMaker, ShownColumns
from opboost.parties.feature.outgoing_rows import ChosenRows
from opboost.parties.feature.party_table import JobProgress, PartyTable
from opboost.parties.feature.row_identities import RowIdentities
from opboost.parties.feature.split_answers import SplitAnswers
from opboost.promises import Joint
from opboost.protocol.messages import (
    Books,
    ColumnSchema,
    Rows,
    Schema,
    SplitQuery,
    SplitValues,
    Units,
    Welcome,
    check_party,
)
from opboost.psi.align_rules import AlignRules
from opboost.psi.row_keys import Digests, Normalisation
from opboost.storage.framing import framed_array


class FeatureParty:
    """A party that holds features only.

    Args:
        table: A pandas, polars or Arrow table, a numpy array, or a CSV or Parquet file (or folder),
            which is read in pieces.  The folder of a stored release (``opboost.scale``) is sent as
            it is: its noise was drawn and charged for when it was made.
        schema: What is declared about the columns: a TOML file's path, its :class:`Plan`, or
            private columns.
        ledger: Where releases are recorded and noise is remembered; needs ``ids``.  Without one,
            noise is remembered by this object alone.
        ids: The column(s) that tell people apart.  They never leave; the label party sees a keyed
            digest of all of them together.
        name: This party's name in the federation.
        recipient: Who gets the release; recorded in the ledger.
        units: ``"raw"`` shares declared bounds and category names, and answers in raw units;
            ``"grid"`` shares neither and numbers the cells.
        names: ``"hidden"`` sends column names as numbers.
        codebook: ``"cuts"`` withholds the values behind codes until the split query.
        state: Where a release is kept until its job is over; a temporary folder if not given.
        new_attributes: Attributes that a ledger which knows others may take in.
        people: What the ledger calls the IDs; by default the names of their columns.
        align: How rows are matched: ``"given"`` (the label party has the same ones in the same
            order), ``"psi"`` (privately, by ``ids``), or the :class:`op.AlignRules` for that.
        normalisation: With ``"given"``: what spellings of an ID may differ in.
        progress: Told how far things are.
    """

    def __init__(
        self,
        table: Any,
        schema: Plan | str | Path | Sequence[PrivateColumn],
        *,
        ledger: Ledger | None = None,
        ids: str | Sequence[str] | None = None,
        name: str = "features",
        recipient: str = "label party",
        units: Units = "raw",
        names: str = "shown",
        codebook: Books = "full",
        state: str | Path | None = None,
        new_attributes: Sequence[str] = (),
        people: str | None = None,
        align: AlignRules | Literal["psi", "given"] = "given",
        normalisation: Normalisation | None = None,
        progress: JobProgress | None = None,
    ) -> None:
        self.name = check_party(name)
        self.plan = plan_of(schema)
        named = [] if ids is None else [ids] if isinstance(ids, str) else list(ids)
        self._recipient = recipient
        self._progress = progress or (lambda what, done, total: None)
        self._rules = AlignRules.of(align)
        spelling = self._rules.normalisation if self._rules else normalisation or Normalisation()
        _check_ids(named, spelling, ledger, self._rules)
        if ledger is None or state is None:
            place = Path(tempfile.mkdtemp(prefix="opboost-"))
            self._end = weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
            state = state or place / "state"
            ids_are: Spelling = "exact" if spelling.spelling == "exact" else "canonical"
            ledger = ledger or Ledger(place / "ledger", place / "ledger.key", ids=ids_are)
        self._ledger = ledger
        self._promise = over_time(self.plan.guarantee(), ledger)
        self._identities = RowIdentities(named, spelling, ledger)
        source = Path(table) if isinstance(table, str | Path) else table
        self._table = PartyTable(source, self.plan, named, self._stored(source))
        columns = tuple(_described(self.name, self.plan, units, hidden=names == "hidden"))
        about = {
            "recipient": recipient,
            "units": units,
            "codebook": codebook,
            "columns": [c.spec for c in columns],
            "attributes": list(self.plan.attributes),
            "align": asdict(spelling) if self._rules else "given",
        }
        self._jobs = FeatureJobFolders(Path(state), json.dumps(about, sort_keys=True))
        self._answers = SplitAnswers(self._jobs, ledger, recipient, self.plan.private, units)
        self._maker = ReleaseMaker(
            self._table,
            self._identities,
            self.plan,
            ledger,
            ShownColumns(self.name, units, codebook, columns),
            Charged(recipient, tuple(new_attributes), people or ", ".join(named) or "row number"),
            self._progress,
        )

    @property
    def ledger(self) -> Ledger:
        """The ledger that remembers and charges what this party releases."""
        return self._ledger

    def guarantee(self) -> Joint:
        """What is promised about one person's record."""
        return self._promise

    def folder(self, job: str) -> Path:
        """Where the state of a job is kept."""
        return self._jobs.folder(job)

    def phase(self, job: str) -> str | None:
        """How far a job is here; None where nothing of it is known."""
        return self._jobs.phase(job)

    def psi_session(self, welcome: Welcome) -> FeaturePsi:
        """The alignment of a job with the label party's rows, from wherever it stands."""
        if self._rules is None:
            raise PeerError("The label party wants to align rows, which are given in this job.")
        job, nonce = welcome.job, welcome.nonce
        if self._jobs.is_bound(job):
            self._jobs.bind(job, nonce)
        return FeaturePsi(
            self.folder(job),
            self.name,
            nonce,
            self._digests,
            self._rules,
            self._ledger,
            self._recipient,
            bind=lambda: self._jobs.bind(job, nonce),
        )

    def rows(self, welcome: Welcome) -> Rows:
        """How many rows are given, and the digest of their IDs under the job's nonce."""
        digest, count = hmac.new(welcome.nonce, digestmod="sha256"), 0
        for piece, _, _ in self._table.pieces():
            digest.update(framed_array(self._identities.keys(piece, count)))
            count += len(piece)
        return Rows(self.name, welcome.job, count, digest.digest())

    def release(self, welcome: Welcome) -> tuple[Schema, list[Path]]:
        """The schema, and a file for each released column: made once a job, then found again."""
        job = welcome.job
        self._jobs.bind(job, welcome.nonce)
        if not self._jobs.is_released(job):
            self._maker.make(welcome, self.folder(job), self._chosen(welcome))
        return self.released(job)

    def released(self, job: str) -> tuple[Schema, list[Path]]:
        """The release that was made for a job."""
        return self._jobs.released(job)

    def answer(self, query: SplitQuery) -> SplitValues:
        """The values behind cuts: one query a job, the same answer whenever it is repeated."""
        return self._answers.answer(query)

    def _chosen(self, welcome: Welcome) -> ChosenRows | None:
        """The rows that are common to all parties; None where rows are given."""
        if self._rules is None:
            return None
        return ChosenRows(self._digests, self.psi_session(welcome).rows())

    def _stored(self, table: Any) -> StoredRelease | None:
        """The release that a folder holds; None where a table holds raw values."""
        if not isinstance(table, Path) or not (table / MANIFEST).exists():
            return None
        sampled = self.plan.budget is not None and self.plan.budget.columns_per_row is not None
        gaps = sampled or self._identities.has_tombstones
        return StoredRelease.of(table, self.plan.private, self._ledger, gaps=gaps)

    @cached_property
    def _digests(self) -> Digests:
        """The digest of each row's key; the drawing sees to it that they are still the table's."""
        return self._identities.digests(self._table, self._progress)


def _described(party: str, plan: Plan, units: Units, *, hidden: bool) -> Iterator[ColumnSchema]:
    for number, c in enumerate(plan.private, 1):
        yield ColumnSchema.of(c, f"{party}-{number}" if hidden else str(c.name), units)


def _check_ids(
    ids: Sequence[str], spelling: Normalisation, ledger: Ledger | None, rules: AlignRules | None
) -> None:
    """Refuse IDs that are missing, or that the ledger, the job and its spelling disagree about."""
    if ledger is not None and ledger.ids == "exact" and spelling.spelling != "exact":
        raise ParameterError(
            "The ledger tells IDs apart by every character, and the job does not: one person "
            'could be released as two. Write trim = false, case = "keep" and unicode = "none" '
            'in [align] of the job file, or begin a ledger with ids = "canonical".'
        )
    if (ledger is not None or rules) and not ids:
        raise ParameterError(
            "A ledger remembers people, and rows are matched by them, so their IDs are needed. "
            "Give ids='customer_id'."
        )
    if rules is not None:
        spelling.check_columns(ids)
