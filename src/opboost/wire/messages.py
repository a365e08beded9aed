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
or cut short are refused.  ``meeting.py``, ``matching.py``, ``release.py`` and ``splits.py`` hold
them by what they are for; all are had from here.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any, TypeVar

from opboost.errors import WireError
from opboost.wire.envelope import seal, unseal
from opboost.wire.matching import MOST_POINTS, Aligned, Points, PointsQuery, Rows, Step
from opboost.wire.meeting import Ack, Farewell, Hello, Poll, Welcome
from opboost.wire.release import MOST_COLUMNS, Books, ColumnSchema, Receipt, Schema
from opboost.wire.rules import PARTY_NAME, Units, check, check_job, check_party, job_number
from opboost.wire.splits import Cuts, SplitQuery, SplitValues, Values

__all__ = [
    "KINDS",
    "MOST_COLUMNS",
    "MOST_POINTS",
    "PARTY_NAME",
    "Ack",
    "Aligned",
    "Books",
    "ColumnSchema",
    "Cuts",
    "Farewell",
    "Hello",
    "Points",
    "PointsQuery",
    "Poll",
    "Receipt",
    "Rows",
    "Schema",
    "SplitQuery",
    "SplitValues",
    "Step",
    "Units",
    "Values",
    "Welcome",
    "check_job",
    "check_party",
    "decode",
    "encode",
    "job_number",
]

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
        check(isinstance(spec, str), "A column's description is text.")
        return ColumnSchema(spec)
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in (spec or {}).items()}
    flat = [x for v in values.values() for x in (v if isinstance(v, tuple) else (v,))]
    check(bool(values) and None not in flat, "A list of columns has a gap.")
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
