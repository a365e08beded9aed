"""The small messages, in the order in which they are sent.

::

    feature party                      label party
    Hello            ->                             who am I, which job
                     <-           Welcome           the job's number, a nonce, what comes next
    PointsQuery      ->                             only where rows are aligned privately:
                     <-           Points            the label party's blinded IDs, in pieces
    Points           ->                             its own, and the label party's raised
                     <-           Aligned           which of its points are common to all parties
    Rows             ->                             how many, and a digest of their IDs
    Schema           ->                             columns and promises
    (codes)          ->                             one stream a column, see columns.py
    Receipt          ->                             the head of the ledger's chain, signed
                     <-           SplitQuery        the cuts that the trees use, when there are any;
                                                    none where rows are predicted
    SplitValues      ->                             the values behind them
                     <-           Farewell          the job is done

Each is a frozen value with one Arrow form: ``decode(encode(m)) == m``, and bytes that were altered
or cut short are refused.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, TypeVar

import pyarrow as pa

from opboost.align.points import check_points, piece_count, piece_of
from opboost.columns import PrivateColumn
from opboost.domain import NumericMapping
from opboost.errors import OpBoostError, WireError, in_words
from opboost.mechanisms import UnaryEncoding
from opboost.specs import column_from_dict, column_to_dict
from opboost.wire.envelope import seal, unseal

Units = Literal["grid", "raw"]
Books = Literal["full", "cuts"]
Step = Literal["label", "feature", "raised"]
"""Whose points: the label party's, the feature party's, or the former raised by the latter."""
PARTY_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
MOST_COLUMNS = 10_000
MOST_POINTS = 30_000_000
"""Rows of the largest table that can be aligned: a bitmap of them is one message."""


_text, _bytes, _int, _float = pa.string(), pa.binary(), pa.int64(), pa.float64()


def _fields(**kinds: pa.DataType) -> pa.Schema:
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def _check(rule: bool, words: str) -> None:
    if not rule:
        raise WireError(words)


def check_party(name: str) -> str:
    """A party's name: it stands in certificates, so it is short and plain."""
    if not PARTY_NAME.fullmatch(name):
        raise WireError(
            f"A party's name is made of a-z, 0-9 and '-' (at most 63); got {name[:80]!r}."
        )
    return name


_JOB = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")


def check_job(job: str) -> str:
    """A job's number: it names folders, so it has one form."""
    _check(_JOB.fullmatch(job) is not None, "A job's number has another form.")
    return job


def job_number(job_hash: bytes) -> str:
    """A number for a run of a job: later ones sort behind earlier ones."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{job_hash[:4].hex()}"


@dataclass(frozen=True, slots=True)
class Hello:
    """A feature party says who it is and which job file it holds."""

    party: str
    job_hash: bytes

    KIND: ClassVar = "hello"
    ARROW: ClassVar = _fields(party=_text, job_hash=_bytes)

    def __post_init__(self) -> None:
        check_party(self.party)
        _check(len(self.job_hash) == 32, "A job file's hash has 32 bytes.")


@dataclass(frozen=True, slots=True)
class Welcome:
    """The label party's answer: the job's number, and the key for the digest of the row IDs.

    ``receipt`` is the newest receipt that the label party holds of this party's ledger, sealed;
    empty if there is none.
    """

    job: str
    nonce: bytes
    receipt: bytes

    KIND: ClassVar = "welcome"
    ARROW: ClassVar = _fields(job=_text, nonce=_bytes, receipt=_bytes)

    def __post_init__(self) -> None:
        check_job(self.job)
        _check(len(self.nonce) == 32, "A nonce has 32 bytes.")


@dataclass(frozen=True, slots=True)
class PointsQuery:
    """A feature party asks for a piece of the label party's points."""

    job: str
    piece: int

    KIND: ClassVar = "points query"
    ARROW: ClassVar = _fields(job=_text, piece=_int)

    def __post_init__(self) -> None:
        check_job(self.job)
        _check(self.piece >= 0, "Pieces are numbered from 0.")


@dataclass(frozen=True, slots=True)
class Points:
    """A piece of blinded IDs, in the secret order of the party whose IDs they are.

    ``tag`` tells the sender's secret from others, so that pieces of two are never mixed.
    """

    job: str
    step: Step
    tag: bytes
    total: int
    piece: int
    points: bytes

    KIND: ClassVar = "points"
    ARROW: ClassVar = _fields(
        job=_text, step=_text, tag=_bytes, total=_int, piece=_int, points=_bytes
    )

    def __post_init__(self) -> None:
        check_job(self.job)
        _check(self.step in ("label", "feature", "raised"), "Points are of one of three steps.")
        _check(len(self.tag) == 16, "A secret's tag has 16 bytes.")
        _check(0 < self.total <= MOST_POINTS, "There are too few or too many points.")
        _check(0 <= self.piece < piece_count(self.total), "A piece lies beyond the last point.")
        place = piece_of(self.piece, self.total)
        check_points(self.points, place.stop - place.start)


@dataclass(frozen=True, slots=True)
class Aligned:
    """Which of a feature party's points are common to all parties: a bitmap in their order.

    ``proof`` is a keyed digest of the common rows' keys, which only who has the keys can make.
    """

    job: str
    tag: bytes
    total: int
    count: int
    bitmap: bytes
    proof: bytes

    KIND: ClassVar = "aligned"
    ARROW: ClassVar = _fields(
        job=_text, tag=_bytes, total=_int, count=_int, bitmap=_bytes, proof=_bytes
    )

    def __post_init__(self) -> None:
        check_job(self.job)
        _check(len(self.proof) == 32, "A proof of common rows has 32 bytes.")
        _check(0 < self.total <= MOST_POINTS, "There are too few or too many points.")
        _check(len(self.bitmap) == -(-self.total // 8), "A bitmap has a bit a point.")
        ones = int.from_bytes(self.bitmap, "big").bit_count()
        spare = int.from_bytes(self.bitmap[-1:], "big") & ((1 << -self.total % 8) - 1)
        _check(ones == self.count and not spare, "A bitmap has as many ones as it says.")


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows, and the keyed digest of their IDs: compared before anything is drawn."""

    party: str
    job: str
    rows: int
    ids: bytes

    KIND: ClassVar = "rows"
    ARROW: ClassVar = _fields(party=_text, job=_text, rows=_int, ids=_bytes)

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        _check(self.rows > 0 and len(self.ids) == 32, "A release has rows and their digest.")


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """What is public about one private column: ``spec`` is its description as data.

    With units ``"grid"`` bounds and category names stay at home: cells are numbered.
    """

    spec: str

    @classmethod
    def of(cls, column: PrivateColumn, name: str, units: Units) -> ColumnSchema:
        """The description of a column under the name that the label party may know."""
        spec = column_to_dict(column) | {"name": name}
        if units == "grid":
            spec = _without_units(column, spec)
        return cls(json.dumps(spec, sort_keys=True, ensure_ascii=False))

    def column(self) -> PrivateColumn:
        """The column as declared, or, in grid units, as one whose raw values are its cells."""
        try:
            found = column_from_dict(json.loads(self.spec))
            _check(isinstance(found.name, str) and 0 < len(found.name) <= 200, "A bad name.")
            found.guarantee()
        except WireError:
            raise
        except (OpBoostError, ValueError, TypeError, RecursionError, OverflowError) as error:
            raise WireError(f"A column's description cannot be used: {in_words(error)}.") from None
        return found


def _without_units(column: PrivateColumn, spec: dict[str, Any]) -> dict[str, Any]:
    """The same column with cells in the place of raw values, and positions for categories."""
    if column.mapping is None:
        assert isinstance(column.mechanism, UnaryEncoding)
        positions = list(range(1, len(column.mechanism.categories) + 1))
        spec["mechanism"] = {**spec["mechanism"], "categories": positions}
        spec["missing"] = {"policy": "raise"}
        return spec
    grid = column.mapping.domain
    if isinstance(column.mapping, NumericMapping):
        spec["mapping"] = {
            "grid": [grid.L, grid.R],
            "bounds": [grid.L - 0.5, grid.R + 0.5],
            "scale": "linear",
            "mapping": "cells",
        }
    else:
        spec["mapping"] = {"grid": [grid.L, grid.R], "order": list(range(grid.L, grid.R + 1))}
    flagged = column.flagged()
    spec["missing"] = {"policy": "raise"}
    if flagged is not None:
        level, cell = flagged.eps_missing, flagged.constant
        spec["missing"] = {"policy": "flag", "eps_missing": level, "constant": cell}
    return spec


@dataclass(frozen=True, slots=True)
class Schema:
    """What a feature party is about to send."""

    party: str
    job: str
    rows: int
    ids: bytes
    codebook: Books
    units: Units
    columns: tuple[ColumnSchema, ...]
    columns_per_row: int

    KIND: ClassVar = "schema"
    ARROW: ClassVar = _fields(
        party=_text,
        job=_text,
        rows=_int,
        ids=_bytes,
        codebook=_text,
        units=_text,
        columns=pa.list_(_text),
        columns_per_row=_int,
    )

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        _check(self.rows > 0, "A release has rows.")
        _check(len(self.ids) == 32, "The digest of the row IDs has 32 bytes.")
        _check(self.codebook in ("full", "cuts"), "codebook is 'full' or 'cuts'.")
        _check(self.units in ("grid", "raw"), "units are 'grid' or 'raw'.")
        _check(0 < len(self.columns) <= MOST_COLUMNS, "A release has columns, 10,000 at most.")
        _check(0 <= self.columns_per_row <= len(self.columns), "columns_per_row is too large.")

    def private(self) -> tuple[PrivateColumn, ...]:
        """The private columns, as far as the label party knows them; their names differ."""
        found = tuple(c.column() for c in self.columns)
        names = [str(name) for c in found for name in c.release_names()]
        _check(len(set(names)) == len(names), "A column's name stands twice.")
        _check(len(names) <= MOST_COLUMNS, "A release has 10,000 columns at most.")
        return found


@dataclass(frozen=True, slots=True)
class Receipt:
    """The head of a feature party's ledger at the time of a release, signed by that party."""

    party: str
    job: str
    entry: int
    head: bytes
    certificate: bytes
    signature: bytes

    KIND: ClassVar = "receipt"
    ARROW: ClassVar = _fields(
        party=_text, job=_text, entry=_int, head=_bytes, certificate=_bytes, signature=_bytes
    )

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        _check(self.entry >= 0 and len(self.head) == 32, "A receipt names an entry and its hash.")

    def signed(self) -> bytes:
        """The bytes that the signature covers."""
        words = ["opboost receipt 1", self.party, self.job, str(self.entry), self.head.hex()]
        return "\n".join(words).encode()


@dataclass(frozen=True, slots=True)
class Cuts:
    """The distinct codes, rising, at which trees part the rows of one released column."""

    column: int
    codes: tuple[int, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in zip(self.codes, self.codes[1:], strict=False))
        _check(rising and bool(self.codes) and self.codes[0] >= 0, "Cuts are codes that rise.")
        _check(self.column >= 0, "A column has a number from 0.")


@dataclass(frozen=True, slots=True)
class SplitQuery:
    """Which values the label party needs: cuts by column, nothing of trees.

    ``left_up_to`` tells on which side a value equal to the threshold goes; raw units need it.
    """

    job: str
    left_up_to: bool
    columns: tuple[Cuts, ...]

    KIND: ClassVar = "split query"
    ARROW: ClassVar = _fields(
        job=_text,
        left_up_to=pa.bool_(),
        columns=pa.list_(pa.struct([("column", _int), ("codes", pa.list_(_int))])),
    )

    def __post_init__(self) -> None:
        check_job(self.job)
        numbers = [c.column for c in self.columns]
        _check(numbers == sorted(set(numbers)), "A split query names each column once, in order.")


@dataclass(frozen=True, slots=True)
class Values:
    """What stands behind the cuts of one column, in the same order."""

    column: int
    units: Units
    values: tuple[float, ...]

    def __post_init__(self) -> None:
        _check(self.units in ("grid", "raw"), "units are 'grid' or 'raw'.")
        _check(not any(map(math.isnan, self.values)), "A split value is a number.")


@dataclass(frozen=True, slots=True)
class SplitValues:
    """The answer to the split query whose digest it names."""

    job: str
    query: bytes
    columns: tuple[Values, ...]

    KIND: ClassVar = "split values"
    ARROW: ClassVar = _fields(
        job=_text,
        query=_bytes,
        columns=pa.list_(
            pa.struct([("column", _int), ("units", _text), ("values", pa.list_(_float))])
        ),
    )

    def __post_init__(self) -> None:
        check_job(self.job)


@dataclass(frozen=True, slots=True)
class Poll:
    """A feature party asks whether there is something for it to do."""

    job: str

    KIND: ClassVar = "poll"
    ARROW: ClassVar = _fields(job=_text)

    def __post_init__(self) -> None:
        check_job(self.job)


@dataclass(frozen=True, slots=True)
class Ack:
    """What was received so far: streams of columns by number, or a step's name."""

    job: str
    step: str
    columns: tuple[int, ...] = ()

    KIND: ClassVar = "ack"
    ARROW: ClassVar = _fields(job=_text, step=_text, columns=pa.list_(_int))


@dataclass(frozen=True, slots=True)
class Farewell:
    """The job is done; nothing more will be asked."""

    job: str

    KIND: ClassVar = "farewell"
    ARROW: ClassVar = _fields(job=_text)


KINDS: dict[str, Any] = {
    m.KIND: m
    for m in (
        Hello,
        Welcome,
        PointsQuery,
        Points,
        Aligned,
        Rows,
        Schema,
        Receipt,
        SplitQuery,
        SplitValues,
        Poll,
        Ack,
        Farewell,
    )
}
_PARTS: dict[str, Any] = {
    Schema.KIND: ColumnSchema,
    SplitQuery.KIND: Cuts,
    SplitValues.KIND: Values,
}

M = TypeVar("M")


def encode(message: Any) -> bytes:
    """The bytes of a message."""
    return seal(message.KIND, message.ARROW, _row(message))


def decode(data: bytes, *expected: type[M]) -> M:
    """The message of these bytes, which must be of one of the expected classes."""
    kind, row = unseal(data, {m.KIND: m.ARROW for m in expected})  # type: ignore[attr-defined]
    if None in row.values():
        raise WireError(f"A {kind} lacks a field.")
    part = _PARTS.get(kind)
    if part is not None:
        row["columns"] = tuple(_part(part, spec) for spec in row["columns"])
    elif "columns" in row:
        row["columns"] = tuple(row["columns"])
    made: M = KINDS[kind](**row)
    return made


def _part(part: Any, spec: Any) -> Any:
    if part is ColumnSchema:
        _check(isinstance(spec, str), "A column's description is text.")
        return ColumnSchema(spec)
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in (spec or {}).items()}
    flat = [x for v in values.values() for x in (v if isinstance(v, tuple) else (v,))]
    _check(bool(values) and None not in flat, "A list of columns has a gap.")
    return part(**values)


def _row(message: Any) -> dict[str, Any]:
    row = {f.name: getattr(message, f.name) for f in fields(message)}
    if message.KIND in _PARTS:
        row["columns"] = [_part_row(part) for part in message.columns]
    return row


def _part_row(part: Any) -> Any:
    if isinstance(part, ColumnSchema):
        return part.spec
    return {f.name: getattr(part, f.name) for f in fields(part)}
