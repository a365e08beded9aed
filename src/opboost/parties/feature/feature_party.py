"""The feature party: desensitises its columns once, sends codes, answers one question."""

from __future__ import annotations

import hashlib
import hmac
import json
import shutil
import tempfile
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import asdict
from functools import cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from opboost.columns.dataframes import column, column_names, is_frame
from opboost.columns.private_column import PrivateColumn
from opboost.columns.row_ids import Spelling, id_array, id_bytes
from opboost.config import Plan
from opboost.config.schema import plan_of
from opboost.errors import (
    ColumnError,
    DataError,
    ParameterError,
    PeerError,
    PrivacyError,
    WireError,
)
from opboost.files.read_tables import column_names as file_columns
from opboost.files.read_tables import csv_types, pieces, table_files
from opboost.files.stored_release import MANIFEST, StoredRelease
from opboost.grid import NumericMapping, RawUnits
from opboost.ledger import Drawing, Ledger
from opboost.ledger.renewal import over_time
from opboost.parties.feature.feature_psi import FeaturePsi
from opboost.parties.feature.outgoing_columns import OutgoingColumns, read_values
from opboost.parties.feature.outgoing_rows import ChosenRows, RawRows, StoredRows, without_forgotten
from opboost.promises import Joint
from opboost.protocol.messages import (
    Books,
    ColumnSchema,
    Cuts,
    Rows,
    Schema,
    SplitQuery,
    SplitValues,
    Units,
    Values,
    Welcome,
    check_party,
    decode,
    encode,
)
from opboost.psi.align_rules import AlignRules
from opboost.psi.row_keys import Digests, Normalisation, key_array, key_digests, row_keys
from opboost.storage import atomic_files
from opboost.storage.framing import framed_array

M = TypeVar("M")
RELEASE = "schema [0-9]*.arrow [0-9]*.values"
"""The files of a release, which the ledger's memory makes again."""

JobProgress = Callable[[str, int, int], None]
"""Told what is done, how much of it, and of how much in all."""


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
        self._table = Path(table) if isinstance(table, str | Path) else table
        self._ids = [] if ids is None else [ids] if isinstance(ids, str) else list(ids)
        self._recipient = recipient
        self._units, self._codebook = units, codebook
        self._hidden = names == "hidden"
        self._new = tuple(new_attributes)
        self._people = people or ", ".join(self._ids) or "row number"
        self._progress = progress or (lambda what, done, total: None)
        self._rules = AlignRules.of(align)
        self._spelling = (
            self._rules.normalisation if self._rules else normalisation or Normalisation()
        )
        if ledger is not None:
            self._check_spelling(ledger)
        if (ledger is not None or self._rules) and not self._ids:
            raise ParameterError(
                "A ledger remembers people, and rows are matched by them, so their IDs are needed. "
                "Give ids='customer_id'."
            )
        if self._rules is not None:
            self._spelling.check_columns(self._ids)
        if ledger is None or state is None:
            place = Path(tempfile.mkdtemp(prefix="opboost-"))
            self._end = weakref.finalize(self, shutil.rmtree, place, ignore_errors=True)
            state = state or place / "state"
            ids_are: Spelling = "exact" if self._spelling.spelling == "exact" else "canonical"
            ledger = ledger or Ledger(place / "ledger", place / "ledger.key", ids=ids_are)
        self._state, self._ledger = Path(state), ledger
        self._promise = over_time(self.plan.guarantee(), ledger)
        self._stored: StoredRelease | None = None
        if isinstance(self._table, Path) and (self._table / MANIFEST).exists():
            sampled = self.plan.budget is not None and self.plan.budget.columns_per_row is not None
            gaps = sampled or self._has_tombstones
            self._stored = StoredRelease.of(self._table, self.plan.private, ledger, gaps=gaps)
        self._check_names()
        self._columns = tuple(self._described())

    def guarantee(self) -> Joint:
        """What is promised about one person's record."""
        return self._promise

    def folder(self, job: str) -> Path:
        """Where the state of a job is kept."""
        return self._state / job

    def phase(self, job: str) -> str | None:
        """How far a job is here; None where nothing of it is known."""
        folder = self.folder(job)
        for file, phase in (
            ("answer", "answered"),
            ("schema", "released"),
            ("common", "aligned"),
            ("binding.json", "begun"),
        ):
            if (folder / file).exists():
                return phase
        return None

    def meeting(self, welcome: Welcome) -> FeaturePsi:
        """The alignment of a job with the label party's rows, from wherever it stands."""
        if self._rules is None:
            raise PeerError("The label party wants to align rows, which are given in this job.")
        job, nonce = welcome.job, welcome.nonce
        if (self.folder(job) / "binding.json").exists():
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
        """How many rows are given, and the digest of their IDs under the job's nonce."""
        digest, count = hmac.new(welcome.nonce, digestmod="sha256"), 0
        for table, _, _ in self._pieces():
            digest.update(framed_array(self._keys(table, count)))
            count += len(table)
        return Rows(self.name, welcome.job, count, digest.digest())

    def _chosen(self, welcome: Welcome) -> ChosenRows:
        return ChosenRows(self._digests, self.meeting(welcome).rows())

    def release(self, welcome: Welcome) -> tuple[Schema, list[Path]]:
        """The schema, and a file for each released column: made once a job, then found again."""
        folder = self.folder(welcome.job)
        self._bind(welcome.job, welcome.nonce)
        if not (folder / "schema").exists():
            self._make(welcome, folder)
        return self.released(welcome.job)

    def released(self, job: str) -> tuple[Schema, list[Path]]:
        """The release that was made for a job."""
        folder = self.folder(job)
        return _own(folder / "schema", Schema), sorted(folder.glob("*.arrow"))

    def _bind(self, job: str, nonce: bytes | None = None) -> None:
        """Tie a job's folder to its recipient and configuration; refuse it to any other."""
        about = {
            "recipient": self._recipient,
            "units": self._units,
            "codebook": self._codebook,
            "columns": [c.spec for c in self._columns],
            "attributes": list(self.plan.attributes),
            "align": asdict(self._spelling) if self._rules else "given",
        }
        text = json.dumps(about, sort_keys=True)
        file = self.folder(job) / "binding.json"
        if not file.exists():
            if nonce is None:
                raise PeerError(f"A split query came for job {job}, which was never released.")
            file.parent.mkdir(parents=True, exist_ok=True)
            plain = json.dumps({"nonce": nonce.hex(), "about": text}).encode()
            atomic_files.write(file, atomic_files.with_checksum(plain))
        known = atomic_files.read_json(
            file, dict[str, str], atomic_files.AT_FEATURE_PARTY, checksum=True
        )
        if set(known) != {"about", "nonce"}:
            raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY)
        if known["about"] != text or (nonce is not None and known["nonce"] != nonce.hex()):
            raise PrivacyError(
                f"Job {job} began with another recipient or configuration. Bring that "
                "configuration back to finish it, or let the label party begin a new job."
            )

    def answer(self, query: SplitQuery) -> SplitValues:
        """The values behind cuts: one query a job, the same answer whenever it is repeated."""
        folder = self.folder(query.job)
        self._bind(query.job)
        digest = hashlib.sha256(encode(query)).digest()
        made = folder / "answer"
        if made.exists():
            known = _own(made, SplitValues)
            if known.query != digest:
                raise self._second(query.job)
            return known
        if not (folder / "schema").exists():
            raise PeerError(f"A split query came for job {query.job}, which was never released.")
        answer = SplitValues(query.job, digest, tuple(self._values(folder, query)))
        self._record_answer(query, digest)
        atomic_files.write(made, encode(answer))
        return answer

    def _record_answer(self, query: SplitQuery, digest: bytes) -> None:
        """Log the answer before it leaves; the ledger, too, knows that there is one a job."""
        counts = {str(c.column): len(c.codes) for c in query.columns}
        body = {"job": query.job, "recipient": self._recipient, "cuts": counts}
        with self._ledger.writing():
            for entry in self._ledger.entries("answer"):
                if entry.body["job"] == query.job:
                    if entry.body["query"] != digest.hex():
                        raise self._second(query.job)
                    return
            self._ledger.append("answer", {**body, "query": digest.hex()})

    def _second(self, job: str) -> PrivacyError:
        return PrivacyError(
            f"{self._recipient!r} asks a second, different split query in job {job}. "
            "One is answered a job."
        )

    def _values(self, folder: Path, query: SplitQuery) -> Iterator[Values]:
        columns = [c for c in self.plan.private for _ in c.release_names()]
        for cuts in query.columns:
            if cuts.column >= len(columns) or not columns[cuts.column].has_order:
                raise PeerError(f"A split query names column {cuts.column}, which has no cuts.")
            values = read_values(folder / f"{cuts.column:05d}.arrow")
            if cuts.codes[-1] >= len(values):
                raise PeerError(
                    f"A split query names code {cuts.codes[-1]} of column {cuts.column}, "
                    f"which has {len(values)} codes."
                )
            yield self._answered(columns[cuts.column], cuts, values, query.left_up_to)

    def _answered(self, c: PrivateColumn, cuts: Cuts, values: Any, left_up_to: bool) -> Values:
        cells = [float(values[code]) for code in cuts.codes]
        if self._units == "raw" and isinstance(c.mapping, NumericMapping):
            raw = tuple(map(RawUnits(c.mapping, left_up_to), cells))
            inner = [(v, cell) for v, cell in zip(raw, cells, strict=True) if isfinite(v)]
            # Cells narrower than a 32-bit float tells apart have no thresholds of their own.
            if all(c.mapping.to_grid([v])[0] == cell for v, cell in inner):
                return Values(cuts.column, "raw", raw)
        return Values(cuts.column, "grid", tuple(cells))

    def _make(self, welcome: Welcome, folder: Path) -> None:
        for left in folder.glob("[0-9]*"):  # of a run that was cut short
            left.unlink()
        spool = OutgoingColumns(folder)
        digest = hmac.new(welcome.nonce, digestmod="sha256")
        chosen = self._chosen(welcome) if self._rules is not None else None
        drawing = Drawing(
            self._ledger,
            self.plan.private,
            self.plan.attributes,
            job=welcome.job,
            recipient=self._recipient,
            budget=self.plan.budget,
            new_attributes=self._new,
            people=self._people,
        )
        seen = 0
        with drawing:
            for table, done, total in self._pieces():
                rows = self._rows_of(table, seen)
                keys = self._keys(table, seen)
                people = self._people_of(table, seen, keys)
                if chosen is None:
                    digest.update(framed_array(keys))
                else:
                    here = chosen.among(seen, self._matched(table, seen, keys))
                    rows, people = rows.where(here), people.filter(pa.array(here))
                seen += len(table)
                if len(people):
                    spool.add(rows.released(drawing, people))
                self._progress("desensitised", done, total)
            self._progress("desensitised", 1, 1)
            if not spool.rows:
                raise DataError("The table has no rows")
        withheld = [
            self._codebook == "cuts" and c.has_order
            for c in self.plan.private
            for _ in c.release_names()
        ]
        spool.coded(
            withheld=withheld,
            order=None if chosen is None else chosen.order(),
            progress=lambda n: self._progress("coded", n, len(withheld)),
        )
        schema = Schema(
            self.name,
            welcome.job,
            spool.rows,
            digest.digest() if chosen is None else chosen.ids(welcome.nonce),
            self._codebook,
            self._units,
            self._columns,
            (self.plan.budget.columns_per_row or 0) if self.plan.budget else 0,
        )
        atomic_files.write(folder / "schema", encode(schema))

    def _rows_of(self, table: Any, first: int) -> RawRows | StoredRows:
        """Some rows before their release, or as a stored one holds them."""
        if self._stored is not None:
            return StoredRows(tuple(self._stored.columns(table)), self._stored.manifest.release)
        return RawRows(tuple(c.prepare(table, first) for c in self.plan.private))

    def _described(self) -> Iterator[ColumnSchema]:
        for number, c in enumerate(self.plan.private, 1):
            name = f"{self.name}-{number}" if self._hidden else str(c.name)
            yield ColumnSchema.of(c, name, self._units)

    def _pieces(self) -> Iterator[tuple[Any, int, int]]:
        """The table in pieces, with how much of it is done."""
        if not isinstance(self._table, Path):
            rows = len(self._table)
            yield self._table, rows, rows
            return
        if self._stored is not None:
            self._stored.check_parts()
        files = table_files(self._table)
        total, before = sum(f.stat().st_size for f in files), 0
        width = sum(len(c.release_names()) for c in self.plan.private) + len(self._ids)
        for file in files:
            used = 0

            def note(count: int) -> None:
                nonlocal used
                used = count

            for piece in pieces(file, csv_types(self.plan.private), note, width):
                yield piece, before + used, total
            before += file.stat().st_size

    @cached_property
    def _digests(self) -> Digests:
        """The digest of each row's key; the drawing sees to it that they are still the table's."""
        found, seen = [], 0
        for table, done, total in self._pieces():
            found.append(self._matched(table, seen, self._keys(table, seen)))
            seen += len(table)
            self._progress("IDs read", done, total)
        return np.concatenate(found) if found else key_digests([])

    def _matched(self, table: Any, first: int, keys: pa.LargeBinaryArray) -> Digests:
        """The digests by which rows are matched; those of forgotten people match nobody's."""
        found = key_digests(keys)
        if not self._has_tombstones:
            return found
        return without_forgotten(found, self._ledger, self._people_of(table, first, keys))

    @cached_property
    def _has_tombstones(self) -> bool:
        return len(self._ledger.tombstones()) > 0

    def _keys(self, table: Any, first: int) -> pa.LargeBinaryArray:
        """What rows are matched by: their IDs as the job spells them."""
        if isinstance(table, pa.Table) and self._ids:
            return key_array(table, self._ids, self._spelling, first)
        listed = [_listed(table, n) for n in self._ids]
        keys = row_keys(listed, self._ids, self._spelling) if self._ids else []
        return pa.array(keys, pa.large_binary())

    def _people_of(self, table: Any, first: int, keys: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        """What the ledger knows people by: their IDs as it spells them, the same in every job."""
        if not self._ids:
            return pa.array(_row_numbers(first, len(table)), pa.large_binary())
        spelling = self._ledger.ids
        if self._spelling.spelling == spelling and not self._spelling.parts:
            return keys
        if isinstance(table, pa.Table):
            return id_array(table, self._ids, first, spelling)
        listed = [_listed(table, n) for n in self._ids]
        return pa.array(id_bytes(listed, self._ids, first, spelling), pa.large_binary())

    def _check_spelling(self, ledger: Ledger) -> None:
        """Refuse a ledger that takes for two people whom the job takes for one."""
        if ledger.ids == "exact" and self._spelling.spelling != "exact":
            raise ParameterError(
                "The ledger tells IDs apart by every character, and the job does not: one person "
                'could be released as two. Write trim = false, case = "keep" and unicode = "none" '
                'in [align] of the job file, or begin a ledger with ids = "canonical".'
            )

    def _check_names(self) -> None:
        files = isinstance(self._table, Path)
        tables: list[list[Hashable]] = (
            [list(file_columns(f)) for f in table_files(self._table)]
            if files
            else [column_names(self._table)]
        )
        for names in tables:
            for name in [*self._declared(), *self._ids]:
                if name not in names:
                    raise ColumnError(
                        name, "is declared but not in the table", hint=f"It has {names}."
                    )
            if files and self._stored is None:
                kept = [str(n) for n in names if n not in self._ids]
                named = [*self.plan.drop, *self.plan.public]
                self.plan.check_names([*kept, *(i for i in named if i in self._ids)])

    def _declared(self) -> list[Hashable]:
        """The columns that a table must have; of a stored release those that came out."""
        if self._stored is not None:
            return [name for c in self.plan.private for name in c.release_names()]
        return [c.name for c in self.plan.private]


def _own(file: Path, kind: type[M]) -> M:
    """A message that this party wrote to its disk."""
    try:
        return decode(file.read_bytes(), kind)
    except WireError:
        raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY) from None


def _row_numbers(first: int, count: int) -> list[bytes]:
    """Stand-ins for IDs where a table has none: a row is its place."""
    return [str(row).encode() for row in range(first, first + count)]


def _listed(table: Any, name: str) -> list[Any]:
    if is_frame(table) and hasattr(table, "column"):
        found: list[Any] = table.column(name).to_pylist()
        return found
    values: list[Any] = np.asarray(column(table, name)).tolist()
    return values
