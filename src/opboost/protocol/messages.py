"""The small messages, in the order in which they are sent.

::

    feature party                      label party
    Hello            ->                             who it is, which job, how much it reveals
                     <-           Challenge         a nonce to sign
    Login            ->                             the signature, and the certificate
                     <-           Welcome           the job's number, a nonce, a session, and what
                                                    a continued model needs of the party
                     <-           ScoreTask         only if a score is wanted: its trees
    PointsQuery      ->                             only if rows are aligned privately:
                     <-           Points            the label party's blinded IDs, in pieces
    Points           ->                             its own points, and the label party's, raised
                     <-           Aligned           which of its points are common to all parties
    Claim            ->                             a proof that it knows those rows
                     <-           Proof             the label party's proof that it knows them
    Rows             ->                             only if rows are given: a digest of their IDs
    Schema, (codes), Receipt ->                     only if there is a pilot: its release
                     <-           Weights           how often each column is then sent
    Schema           ->                             columns and promises, or only the score
    (codes)          ->                             one stream per column, see column_streams.py
    Receipt          ->                             the head of the ledger's chain, signed
                     <-           SplitQuery        the cuts that the trees use, once they exist;
                                                    none if rows are predicted
    SplitValues      ->                             the values behind them
                     <-           Farewell          the job is done

Each message is a frozen value with one Arrow form: ``decode(encode(m)) == m``, and altered or
truncated bytes are refused.  ``session_messages.py``, ``psi_messages.py``, ``release_messages.py``,
``score_messages.py`` and ``split_messages.py`` define the messages, grouped by purpose; import them
from here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import fields
from typing import Any, NamedTuple, TypeVar, cast

from opboost.errors import WireError
from opboost.protocol.envelope import pack_message, unpack_message
from opboost.protocol.message_rules import (
    PARTY_NAME,
    Units,
    check,
    check_job,
    check_party,
    job_number,
)
from opboost.protocol.packed_lists import is_text, packed, unpacked
from opboost.protocol.psi_messages import (
    MAX_POINTS,
    Aligned,
    Claim,
    Points,
    PointsQuery,
    Proof,
    Rows,
    Step,
)
from opboost.protocol.release_messages import (
    MAX_COLUMNS,
    Books,
    ColumnSchema,
    Receipt,
    Schema,
    Weights,
)
from opboost.protocol.score_messages import ScoreTask
from opboost.protocol.session_messages import Ack, Challenge, Farewell, Hello, Login, Poll, Welcome
from opboost.protocol.split_messages import Cuts, SplitQuery, SplitValues, Values

__all__ = [
    "KINDS",
    "MAX_COLUMNS",
    "MAX_POINTS",
    "PARTY_NAME",
    "Ack",
    "Aligned",
    "Books",
    "Challenge",
    "Claim",
    "ColumnSchema",
    "Cuts",
    "Farewell",
    "Hello",
    "Login",
    "Points",
    "PointsQuery",
    "Poll",
    "Proof",
    "Receipt",
    "Rows",
    "Schema",
    "ScoreTask",
    "SplitQuery",
    "SplitValues",
    "Step",
    "Units",
    "Values",
    "Weights",
    "Welcome",
    "check_job",
    "check_party",
    "decode",
    "decode_receipt",
    "encode",
    "job_number",
]

KINDS: dict[str, Any] = {
    m.KIND: m
    for m in (
        Hello,
        Challenge,
        Login,
        Welcome,
        PointsQuery,
        Points,
        Aligned,
        Claim,
        Proof,
        Rows,
        Schema,
        Receipt,
        Weights,
        ScoreTask,
        SplitQuery,
        SplitValues,
        Poll,
        Ack,
        Farewell,
    )
}
M = TypeVar("M")


def encode(message: Any) -> bytes:
    """Return the bytes of a message."""
    return pack_message(message.KIND, message.ARROW, _row(message))


def decode_receipt(data: bytes) -> Receipt:
    """Read a receipt of version 1, 2 or 3: its form is the same, and receipts are kept for good."""
    return decode(data, Receipt, versions=(1, 2))


def decode(data: bytes, *expected: type[M], versions: Collection[int] = ()) -> M:
    """Read a message, which must be of one of the expected classes.

    ``versions`` are earlier versions in which it had the same form.
    """
    forms = {m.KIND: m.ARROW for m in expected}  # type: ignore[attr-defined]
    kind, row = unpack_message(data, forms, versions)
    if None in row.values():
        raise WireError(f"A {kind} lacks a field.")
    if kind in _COLUMNS:
        row["columns"] = tuple(_COLUMNS[kind].read(row["columns"]))
    elif "columns" in row:
        row["columns"] = tuple(row["columns"])
    made: M = KINDS[kind](**row)
    return made


def _row(message: Any) -> dict[str, Any]:
    row = {f.name: getattr(message, f.name) for f in fields(message)}
    if message.KIND in _COLUMNS:
        row["columns"] = _COLUMNS[message.KIND].write(row["columns"])
    return row


class _Form(NamedTuple):
    """The functions that write and read a message's list of columns."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Iterator[Any]]


def _read_schemas(data: bytes) -> Iterator[ColumnSchema]:
    for spec in unpacked(data, MAX_COLUMNS):
        check(isinstance(spec, str) and is_text(spec), "A column's description must be text.")
        yield ColumnSchema(spec)


def _read_cuts(rows: list[Any]) -> Iterator[Cuts]:
    for row in rows:
        check(row is not None and None not in row.values(), "A list of columns has a gap.")
        check(None not in row["codes"], "A list of columns has a gap.")
        yield Cuts(row["column"], tuple(row["codes"]))


def _read_values(data: bytes) -> Iterator[Values]:
    for item in unpacked(data, MAX_COLUMNS):
        check(isinstance(item, list) and len(item) == 3, "Split values name column and units.")
        column, units, values = item
        check(type(column) is int and type(units) is str, "Split values name column and units.")
        check(
            isinstance(values, list) and all(type(v) is float for v in values),
            "A split value must be a number.",
        )
        yield Values(column, cast("Units", units), tuple(values))


_SCHEMAS = _Form(lambda many: packed([c.spec for c in many]), _read_schemas)

_COLUMNS: dict[str, _Form] = {
    Welcome.KIND: _SCHEMAS,
    Schema.KIND: _SCHEMAS,
    SplitQuery.KIND: _Form(
        lambda many: [{"column": c.column, "codes": c.codes} for c in many], _read_cuts
    ),
    SplitValues.KIND: _Form(
        lambda many: packed([[v.column, v.units, [float(x) for x in v.values]] for v in many]),
        _read_values,
    ),
}
