"""The label party's checks of incoming messages, the same for every channel."""

from __future__ import annotations

import hashlib
import hmac
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from opboost.columns.codebook import Codebook
from opboost.columns.private_column import MAX_FLOAT32_INTEGER, PrivateColumn
from opboost.errors import PeerError
from opboost.grid import NumericMapping
from opboost.mechanisms import Mechanism
from opboost.promises import Joint
from opboost.protocol.messages import Rows, Schema, SplitQuery, SplitValues, encode


def check_schema(schema: Schema | Rows, party: str, job: str, rows: int, ids: bytes) -> None:
    """Refuse a release of another party, job or set of rows; ``ids`` is the expected digest."""
    if schema.party != party:
        raise PeerError(f"Party {party!r} sent a release in the name of {schema.party!r}.")
    if schema.job != job:
        raise PeerError(f"Party {party!r} sent a release of job {schema.job!r}.")
    if schema.rows != rows:
        raise PeerError(
            f"Party {party!r} sent {schema.rows:,} rows; the label party has {rows:,}. " + _NEXT
        )
    if not hmac.compare_digest(schema.ids, ids):
        raise PeerError(
            f"The row IDs of party {party!r} are not the label party's in the same order. " + _NEXT
        )


_NEXT = (
    "Where rows are given, sort both tables by ID and keep the common rows; where they were "
    "aligned, a table changed since: begin a new job (--again)."
)


def check_private(private: Sequence[PrivateColumn]) -> None:
    """Refuse columns that no booster could train on."""
    for c in private:
        if c.mapping is not None and max(map(abs, ends(c))) > MAX_FLOAT32_INTEGER:
            raise PeerError(
                f"Column {c.name!r} has a grid beyond 2**24, which boosters' 32-bit floats cannot "
                "tell apart. Use a coarser one."
            )


def check_total(schema: Schema, told: float) -> None:
    """Refuse a release that reveals more about one person than its party announced."""
    promises = {c.name: c.guarantee() for c in schema.private()}
    found = Joint(promises, schema.columns_per_row or None).total
    if found > told and not math.isclose(found, told, rel_tol=1e-9):
        raise PeerError(
            f"Party {schema.party!r} said that it reveals {told:g} about one person, but its "
            f"release reveals {found:g}. It must join again with a single plan."
        )


def check_values_shown(schema: Schema) -> None:
    """Refuse codes without values, from which nothing can be predicted."""
    if schema.codebook != "full":
        raise PeerError(
            f"Party {schema.party!r} withholds its codebook, and codes without values cannot be "
            'predicted from. To take part in predictions, it needs codebook = "full" under [party].'
        )


def check_answer(
    query: SplitQuery,
    answer: SplitValues,
    private: Sequence[PrivateColumn],
    books: Mapping[int, Codebook | None],
) -> dict[int, list[float]]:
    """Return the cells behind each column's cuts; refuse an answer that cannot be true."""
    if answer.job != query.job or answer.query != hashlib.sha256(encode(query)).digest():
        raise PeerError("The answer belongs to another split query.")
    if [c.column for c in answer.columns] != [c.column for c in query.columns]:
        raise PeerError("The answer leaves out columns or contains others.")
    released = [c for c in private for _ in c.release_names()]
    found = {}
    for cuts, values in zip(query.columns, answer.columns, strict=True):
        number, column = cuts.column, released[cuts.column]
        if len(values.values) != len(cuts.codes):
            raise PeerError(f"The answer lacks some cuts of column {number}.")
        cells = [_cell(column, values.units, v) for v in values.values]
        lower, upper = ends(column) if values.units == "grid" else _grid(column)
        inside = all(lower <= c <= upper for c in cells)
        # In raw units, a split among outputs beyond the grid is placed at the bound.
        rises = all(a < b or a == b in (lower, upper) for a, b in pairwise(cells))
        if not inside or not rises:
            raise PeerError(f"The values of column {number} do not ascend on its grid.")
        book = books[number]
        if book is not None:
            known = np.clip(book.values[list(cuts.codes)], lower, upper).tolist()
            if cells != known or (values.units == "grid" and len(set(cells)) < len(cells)):
                raise PeerError(f"The values of column {number} contradict its codebook.")
        found[number] = cells
    return found


def _cell(column: PrivateColumn, units: str, value: float) -> float:
    """Convert a split value to a cell; in raw units, to the cell that contains the threshold."""
    if units == "grid":
        return value
    if not isinstance(column.mapping, NumericMapping):
        raise PeerError("A split value is in raw units, which its column does not have.")
    if math.isinf(value):
        return float(column.mapping.domain.R if value > 0 else column.mapping.domain.L)
    return float(column.mapping.to_grid([value])[0])


def ends(column: PrivateColumn) -> tuple[int, int]:
    """Return the lowest and the highest output of a column on a grid."""
    assert isinstance(column.mechanism, Mechanism)
    return column.mechanism.outputs.L, column.mechanism.outputs.R


def _grid(column: PrivateColumn) -> tuple[int, int]:
    assert column.mapping is not None
    return column.mapping.domain.L, column.mapping.domain.R
