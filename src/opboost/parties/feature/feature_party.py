"""The feature party: desensitises its columns once, sends codes, answers one split query."""

from __future__ import annotations

import hmac
import json
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from opboost.budgets.budget import RecordBudget
from opboost.columns.duplicate_ids import DuplicateIds
from opboost.columns.private_column import PrivateColumn
from opboost.columns.row_ids import Spelling
from opboost.config import Plan
from opboost.config.plan_limits import check_job_record
from opboost.config.schema import plan_of
from opboost.errors import DataError, ParameterError, PeerError, refusing
from opboost.files.stored_release import MANIFEST, StoredRelease
from opboost.ledger import Ledger
from opboost.ledger.new_run import repeated_ids
from opboost.ledger.renewal import over_time
from opboost.ledger.reservation import abort_open, is_committed
from opboost.parties.continued_model import check_needed
from opboost.parties.feature.feature_job_folders import FeatureJobFolders
from opboost.parties.feature.feature_psi import FeaturePsi
from opboost.parties.feature.make_release import Charged, ReleaseMaker, ShownColumns
from opboost.parties.feature.outgoing_rows import ChosenRows
from opboost.parties.feature.party_table import JobProgress, PartyTable
from opboost.parties.feature.row_identities import RowIdentities
from opboost.parties.feature.score_release import ScoredTable, accepted
from opboost.parties.feature.split_answers import SplitAnswers
from opboost.parties.feature.unknown_people import check_agreed_rows, check_empty_rows
from opboost.promises import Joint
from opboost.protocol.messages import (
    Books,
    ColumnSchema,
    Hello,
    Rows,
    Schema,
    ScoreTask,
    SplitQuery,
    SplitValues,
    Units,
    Weights,
    Welcome,
    check_party,
)
from opboost.psi.align_rules import AlignRules, RowChoice, checked_rows
from opboost.psi.row_keys import Digests, Normalisation
from opboost.psi.table_keys import refuse_repeats
from opboost.scores.score_budget import ScoreBudget
from opboost.sources.table_address import table_address
from opboost.storage.framing import framed_array


class FeatureParty:
    """A party that holds features only.

    Args:
        table: A pandas, polars or Arrow table, a numpy array, or a CSV or Parquet file (or folder),
            which is read in pieces.  If it is the folder of a stored release (``opboost.scale``),
            the release is sent unchanged: its noise was drawn and charged when it was made.
        schema: The declarations of the columns: the path of a TOML file, its :class:`Plan`, or
            private columns.
        ledger: Where releases are recorded and noise is remembered; needs ``ids``.  Without a
            ledger, only this object remembers the noise.
        ids: The column(s) that identify people.  They never leave this party; the label party sees
            one keyed digest of all of them together.
        name: This party's name in the federation.
        recipient: Who receives the release; recorded in the ledger.
        units: ``"raw"`` shares declared bounds and category names, and answers in raw units;
            ``"grid"`` shares neither and numbers the cells.
        names: ``"hidden"`` sends column names as numbers.
        codebook: ``"cuts"`` withholds the values behind codes until the split query.
        state: Where a release is kept until its job ends; a temporary folder by default.
        new_attributes: Attributes that may be added to a ledger which already knows others.
        people: The ledger's name for the IDs; by default the names of their columns.
        align: How rows are matched: ``"given"`` (the label party has the same rows in the same
            order), ``"psi"`` (privately, by ``ids``), or an :class:`op.AlignRules` (privately, by
            these rules).
        normalisation: With ``"given"``: which differences in the spelling of an ID are ignored.
        rows: Which rows this party agrees to release: ``"common"``, those that all parties have, or
            ``"mine"``, those that it shares with the label party, whether or not others know them.
            With ``"mine"`` and given rows, a row without any value belongs to a person whom this
            party does not know.
        progress: Called with the progress of each step.
        score: What scores may reveal in predictions, in addition to the record budget: a level, or
            an ``op.ScoreBudget``.  None uses the value in the schema.
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
        rows: RowChoice = "common",
        progress: JobProgress | None = None,
        score: float | ScoreBudget | None = None,
    ) -> None:
        self.name = check_party(name)
        self.plan = plan_of(schema)
        if score is not None:
            told = score if isinstance(score, ScoreBudget) else ScoreBudget(score)
            self.plan = replace(self.plan, score=told)
        named = [] if ids is None else [ids] if isinstance(ids, str) else list(ids)
        self._recipient = recipient
        self._progress = progress or (lambda what, done, total: None)
        self._rules, self._agreed = AlignRules.of(align), checked_rows(rows)
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
        source = table_address(table) if isinstance(table, str | Path) else table
        stored, has_unknown = self._stored(source), rows == "mine" and self._rules is None
        if has_unknown:
            check_empty_rows(self.plan.private, stored=stored is not None)
        self._table = PartyTable(source, self.plan, named, stored, has_unknown=has_unknown)
        columns = tuple(_described(self.name, self.plan, units, hidden=names == "hidden"))
        about = {
            "recipient": recipient,
            "units": units,
            "codebook": codebook,
            "columns": [c.spec for c in columns],
            "attributes": list(self.plan.attributes),
            "align": asdict(spelling) if self._rules else "given",
            **({"rows": "mine"} if rows == "mine" else {}),
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
        """The ledger that remembers and charges this party's releases."""
        return self._ledger

    def guarantee(self) -> Joint:
        """Return the privacy guarantee for one person's record."""
        return self._promise

    def folder(self, job: str) -> Path:
        """Return the folder that keeps the state of a job."""
        return self._jobs.folder(job)

    def phase(self, job: str) -> str | None:
        """Return how far this party has got with a job; None if it does not know the job."""
        return self._jobs.phase(job)

    def hello(self, record: float, job_hash: bytes = bytes(32)) -> Hello:
        """Introduce this party to a job that allows ``record`` per person.

        Refuse a job that allows less than this party's own plan reveals; 0 means no limit.
        """
        check_job_record(self.plan, record or None, self.name)
        return Hello(self.name, job_hash, self.plan.total if record else 0.0)

    def check_terms(self, welcome: Welcome) -> None:
        """Refuse a job that does not fit this party's plan, before anything is drawn or shown.

        The job may allow too little per person, need other rows, or continue a model of other
        columns.
        """
        check_job_record(self.plan, welcome.record or None, self.name)
        check_agreed_rows(welcome, self._agreed)
        shown = self._maker.shown
        check_needed(welcome, self.name, shown.columns, shown.codebook)

    def check_release(self) -> None:
        """Refuse now, before contacting anybody, whatever the release would refuse later.

        Read the table once to find gaps, values that do not fit, and missing or duplicate IDs.
        Then ask the ledger which columns and people it refuses.  If rows are aligned, the common
        rows are not known yet, so refuse people only if the ledger refuses all of them.
        """
        with refusing("rows"):
            self._check_rows()
        self._maker.rehearse(all_people=self._rules is None)

    def _check_rows(self) -> None:
        if self._rules is not None:
            # Keep the digests, so that the alignment need not read the IDs again.
            self.__dict__["_digests"] = self._identities.digests(
                self._table, self._progress, self._table.rows
            )
            _check_some(len(self._digests))
            refuse_repeats(self._digests)
            self._rules.check_own(len(self._digests))
            return
        seen = 0
        with DuplicateIds() as people:
            for piece, done, total in self._table.pieces():
                self._table.rows(piece, seen)
                keys = self._identities.keys(piece, seen)
                people.add(self._ledger.people(self._identities.people(piece, seen, keys)))
                seen += len(piece)
                self._progress("rows checked", done, total)
            _check_some(seen)
            if repeats := people.repeats():
                raise repeated_ids(repeats)

    def _bind(self, job: str, nonce: bytes) -> None:
        """Bind a job to its configuration; accept a changed plan if nothing has been released."""
        if self._jobs.is_replanned(job, nonce) and not is_committed(self._ledger, job):
            abort_open(self._ledger, job, "the job goes on with another plan")
            self._jobs.unbind(job)
        with refusing("declaration"):
            self._jobs.bind(job, nonce)

    def psi_session(self, welcome: Welcome) -> FeaturePsi:
        """Start or resume the alignment of a job with the label party's rows."""
        if self._rules is None:
            raise PeerError("The label party wants to align rows, but this job has given rows.")
        self.check_terms(welcome)
        job, nonce = welcome.job, welcome.nonce
        if self._jobs.is_bound(job):
            self._bind(job, nonce)
        return FeaturePsi(
            self.folder(job),
            self.name,
            nonce,
            self._digests,
            self._rules,
            self._ledger,
            self._recipient,
            bind=lambda: self._bind(job, nonce),
        )

    def rows(self, welcome: Welcome) -> Rows:
        """Return the number of given rows, and the digest of their IDs under the job's nonce."""
        digest, count = hmac.new(welcome.nonce, digestmod="sha256"), 0
        for piece, _, _ in self._table.pieces():
            digest.update(framed_array(self._identities.keys(piece, count)))
            count += len(piece)
        return Rows(self.name, welcome.job, count, digest.digest())

    def release(self, welcome: Welcome) -> tuple[Schema, list[Path]]:
        """Return the schema and one file per released column; the release is made once per job."""
        job = welcome.job
        self.check_terms(welcome)
        self._bind(job, welcome.nonce)
        if not self._jobs.is_released(job):
            maker = replace(self._maker, plan=self._weighted_plan(job))
            maker.make(welcome, self.folder(job), self._chosen(welcome))
        return self.released(job)

    def check_score(self, task: ScoreTask) -> None:
        """Refuse now, before rows are aligned, a score that :meth:`score_release` would refuse."""
        accepted(self.plan, self._table, self._ledger, task.score_model())

    def score_release(self, welcome: Welcome, task: ScoreTask) -> tuple[Schema, list[Path]]:
        """Return the schema and the files of a score, released instead of columns.

        Before anything is written, refuse a score that the party does not allow.  The release is
        made once per job.  A person whom the same model already scored in this period keeps that
        draw, even if the values have changed since.
        """
        if task.job != welcome.job:
            raise PeerError("The label party asks for a score of another job.")
        score = accepted(self.plan, self._table, self._ledger, task.score_model())
        self.check_terms(welcome)
        job, budget = welcome.job, self.plan.score
        assert budget is not None
        self._jobs.bind(job, welcome.nonce)
        self._jobs.keep_task(task)
        if not self._jobs.is_released(job):
            hidden = tuple(_described(self.name, score.plan, "raw", hidden=False))
            maker = replace(
                self._maker,
                plan=score.plan,
                table=ScoredTable(self._table, score, self.plan.private, budget.level),
                shown=ShownColumns(self.name, "raw", "full", hidden),
                score=score.charge,
            )
            maker.make(welcome, self.folder(job), self._chosen(welcome))
        return self.released(job)

    @property
    def has_pilot(self) -> bool:
        """Whether some people's rows go first, so that the label party can weigh the columns."""
        budget = self.plan.budget
        waits = isinstance(budget, RecordBudget) and budget.awaits_weights
        return waits and self._table.stored is None

    def check_pilot(self) -> None:
        """Refuse a pilot of too few people, judged by the size of the table.

        If rows are aligned, the common rows may turn out to be even fewer.
        """
        budget = self.plan.budget
        if self.has_pilot and isinstance(budget, RecordBudget):
            with refusing("rows"):
                rows = self._table.people() if self._rules is None else len(self._digests)
                budget.check_pilot_rows(rows)

    def pilot_release(self, welcome: Welcome) -> tuple[Schema, list[Path]] | None:
        """Return the release of the pilot, with gaps for everybody else.

        It is made once per job, then read from disk.  Return None if the budget has no pilot, or if
        the job has passed that step.
        """
        job = welcome.job
        if not self.has_pilot or self._jobs.is_released(job) or self._jobs.weights(job):
            return None
        self.check_terms(welcome)
        self._bind(job, welcome.nonce)
        if (known := self._jobs.piloted(job)) is not None:
            return known
        budget, chosen = self.plan.budget, self._chosen(welcome)
        assert isinstance(budget, RecordBudget)
        with refusing("rows"):
            budget.check_pilot_rows(self._table.people() if chosen is None else len(chosen.rows))
        self._maker.make(welcome, self._jobs.pilot(job), chosen, budget.pilot)
        return self._jobs.piloted(job)

    def take_weights(self, weights: Weights) -> None:
        """Keep the weights by which columns are drawn for people outside the pilot."""
        if self._jobs.piloted(weights.job) is None:
            raise PeerError("Column weights arrived before any pilot.")
        if weights.columns and len(weights.columns) != len(self.plan.private):
            raise PeerError(
                f"{len(weights.columns)} weights arrived for {len(self.plan.private)} columns."
            )
        self._jobs.keep_weights(weights)

    def _weighted_plan(self, job: str) -> Plan:
        """Return the plan that draws each person's columns by weight, or evenly without weights.

        A job without a pilot, such as a prediction, uses the weights of the last job that had one.
        """
        if not self.has_pilot:
            return self.plan
        told = self._jobs.weights(job) or self._jobs.last_weights()
        if told is None or not told.columns:
            return self.plan
        names = [c.name for c in self.plan.private]
        weights = {n: 0.5**halvings for n, halvings in zip(names, told.columns, strict=True)}
        return self.plan.weighted(weights, "The label party's answer to the pilot")

    def released(self, job: str) -> tuple[Schema, list[Path]]:
        """Return the release that was made for a job."""
        return self._jobs.released(job)

    def answer(self, query: SplitQuery) -> SplitValues:
        """Return the values behind a query's cuts; each job answers one query."""
        return self._answers.answer(query)

    def _chosen(self, welcome: Welcome) -> ChosenRows | None:
        """Return the rows that are common to the parties; None if rows are given."""
        if self._rules is None:
            return None
        return ChosenRows(self._digests, self.psi_session(welcome).rows())

    def _stored(self, table: Any) -> StoredRelease | None:
        """Return the release that a folder holds; None if the table holds raw values."""
        if not isinstance(table, Path) or not (table / MANIFEST).exists():
            return None
        sampled = self.plan.budget is not None and self.plan.budget.columns_per_row is not None
        gaps = sampled or self._identities.has_tombstones
        return StoredRelease.of(table, self.plan.private, self._ledger, gaps=gaps)

    @cached_property
    def _digests(self) -> Digests:
        """Return the digest of each row's key; drawing checks that they still match the table."""
        return self._identities.digests(self._table, self._progress)


def _check_some(rows: int) -> None:
    if not rows:
        raise DataError("The table has no rows")


def _described(party: str, plan: Plan, units: Units, *, hidden: bool) -> Iterator[ColumnSchema]:
    for number, c in enumerate(plan.private, 1):
        yield ColumnSchema.of(c, f"{party}-{number}" if hidden else str(c.name), units)


def _check_ids(
    ids: Sequence[str], spelling: Normalisation, ledger: Ledger | None, rules: AlignRules | None
) -> None:
    """Refuse missing IDs, and IDs that ledger and job would compare in different ways."""
    if ledger is not None and ledger.ids == "exact" and spelling.spelling != "exact":
        raise ParameterError(
            "The ledger compares every character of an ID, and the job does not: one person "
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
