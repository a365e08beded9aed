"""From a table to the matrix that a booster sees, in codes for training and in values after."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.boosting.booster import Blocks, Matrix, Replace
from opboost.columns.codebook import Codebook, CodedColumn, encode
from opboost.columns.dataframes import OutColumn, as_numbers, categories, column, rows_of
from opboost.columns.private_column import MAX_FLOAT32_INTEGER, Prepared, PrivateColumn
from opboost.errors import ColumnError
from opboost.grid import NumericMapping, RawUnits
from opboost.mechanisms import UnaryEncoding
from opboost.protocol.stored_columns import StoredColumn

MAX_OWN_TEXTS = 64
"""Most different texts of an own column: a model file lists each, and more are often names."""


@dataclass(frozen=True, slots=True)
class OwnColumn:
    """A column of the label party: numbers as they are, or categories one-hot."""

    name: Hashable
    categories: tuple[Any, ...] | None

    @classmethod
    def of(cls, table: Any, name: Hashable) -> OwnColumn:
        """What a column of the training table is."""
        if column(table, name).dtype.kind in "iufb":
            return cls(name, None)
        return cls(name, tuple(sorted(categories(table, name).values, key=repr)))

    def names(self) -> list[str]:
        """The features that it becomes."""
        if self.categories is None:
            return [str(self.name)]
        return [f"{self.name}={c}" for c in self.categories]

    def block(self, table: Any) -> Matrix:
        """Its features; a category that training did not show has all of them zero."""
        if self.categories is None:
            return as_numbers(self.name, column(table, self.name)).astype(np.float32)[:, None]
        rows = categories(table, self.name)
        known = {c: i for i, c in enumerate(self.categories)}
        position = np.array([*(known.get(v, -1) for v in rows.values), -1], dtype=np.int64)
        return _one_hot(position[rows.codes], len(self.categories))


def own_columns(table: Any, names: Iterable[Hashable]) -> tuple[OwnColumn, ...]:
    """The label party's own columns; one with many different texts is refused."""
    found = tuple(OwnColumn.of(table, name) for name in names)
    for c in found:
        if len(c.categories or ()) > MAX_OWN_TEXTS:
            raise ColumnError(
                c.name,
                f"holds more than {MAX_OWN_TEXTS} different texts, and a model lists them all",
                detail=f"{len(c.names())} different ones",
                hint=f"Declare them as public (categories={{{c.name!r}: [...]}}), replace them by "
                "numbers or fewer groups, or drop the column.",
            )
    return found


Released = OutColumn | CodedColumn


@dataclass(frozen=True, slots=True)
class Layout:
    """The features of a table: where each column's stand, and what they are called."""

    private: tuple[PrivateColumn, ...]
    own: tuple[OwnColumn, ...]

    def names(self) -> list[str]:
        """Private features first, then the label party's own."""
        return [
            *(name for c in self.private for name in c.feature_names()),
            *(name for c in self.own for name in c.names()),
        ]

    def widths(self) -> list[tuple[Hashable, int]]:
        """How many features each column becomes, in their order."""
        private = [(c.name, len(c.feature_names())) for c in self.private]
        return [*private, *((c.name, len(c.names())) for c in self.own)]

    def own_values(self, table: Any, rows: int) -> Matrix:
        """The label party's own features."""
        blocks = [c.block(table) for c in self.own]
        return _stacked(blocks) if blocks else np.zeros((rows, 0), dtype=np.uint8)

    def coded(
        self, released: dict[Hashable, Sequence[Released]], own: Matrix
    ) -> tuple[Matrix, dict[int, Codebook | None]]:
        """The same as :meth:`training`, for own features that are there already."""
        blocks: list[Matrix] = []
        books: dict[int, Codebook | None] = {}
        place = 0
        for private in self.private:
            out = released.pop(private.name)
            if private.has_order:
                codes, book = _codes(out[0])
                books[place] = book
                blocks.append(codes[:, None])
            else:
                blocks.append(_released_bits(private, out))
            place += blocks[-1].shape[1]
        return _stacked([*blocks, own]), books

    def blocks(
        self, stored: Mapping[Hashable, Sequence[StoredColumn]], table: Any, rows: int
    ) -> tuple[Blocks, dict[int, Codebook | None]]:
        """The same as :meth:`training`, for columns that stay on disk: a block at a time."""

        def coded(here: slice) -> tuple[Matrix, dict[int, Codebook | None]]:
            own = None if table is None else rows_of(table, here)
            released: dict[Hashable, Sequence[Released]] = {
                name: [c.rows(here) for c in columns] for name, columns in stored.items()
            }
            return self.coded(released, self.own_values(own, here.stop - here.start))

        _, books = coded(slice(0, 1))
        folder = next(c.file.parent for columns in stored.values() for c in columns)
        return Blocks((rows, len(self.names())), lambda here: coded(here)[0], folder), books

    def released_values(
        self, table: Any, released: Mapping[Hashable, Sequence[OutColumn]]
    ) -> Matrix:
        """Released grid values (not codes) beside own features."""
        return self.values(released, self.own_values(table, _rows(released)))

    def values(self, released: Mapping[Hashable, Sequence[OutColumn]], own: Matrix) -> Matrix:
        """The same as :meth:`released_values`, for own features that are there already."""
        blocks = [
            _with_gaps(released[c.name][0].values, released[c.name][0].missing)[:, None]
            if c.has_order
            else _released_bits(c, released[c.name])
            for c in self.private
        ]
        return _stacked([*blocks, own])

    def plain_values(self, table: Any, prepared: Mapping[Hashable, Prepared]) -> Matrix:
        """Grid values without noise beside own features: for rows that may be seen."""
        blocks: list[Matrix] = []
        for private in self.private:
            cells = prepared[private.name]
            if private.has_order:
                gaps = cells.missing if private.flagged() is not None else None
                blocks.append(_with_gaps(cells.cells, gaps)[:, None])
            else:
                first = 0 if private.mapping is None else private.mapping.domain.L
                positions = cells.cells.astype(np.int64) - first
                blocks.append(_one_hot(positions, len(private.feature_names())))
        return _stacked([*blocks, *(c.block(table) for c in self.own)])

    def raw_units(self, left_up_to: bool) -> dict[int, Replace]:
        """For each numeric private feature: from a cut in grid values to one in raw units."""
        found: dict[int, Replace] = {}
        place = 0
        for private in self.private:
            if isinstance(private.mapping, NumericMapping):
                found[place] = RawUnits(private.mapping, left_up_to)
            place += len(private.feature_names())
        return found


def check_sizes(private: Sequence[PrivateColumn]) -> None:
    """Refuse grids whose values a booster could not tell apart."""
    for c in private:
        if (
            c.mapping is not None
            and max(abs(c.mapping.domain.L), abs(c.mapping.domain.R)) > MAX_FLOAT32_INTEGER
        ):
            raise ColumnError(
                c.name,
                "has a grid beyond 2**24, which boosters' 32-bit floats cannot tell apart",
                hint="Use a coarser grid.",
            )


def _rows(released: Mapping[Hashable, Sequence[Released]]) -> int:
    first = next(iter(released.values()))[0]
    return len(first.codes if isinstance(first, CodedColumn) else first.values)


def _codes(out: Released) -> tuple[Matrix, Codebook | None]:
    if isinstance(out, CodedColumn):
        return _with_gaps(out.codes, out.missing), out.book
    if out.missing is None or not out.missing.any():
        return encode(out.values)
    present, book = encode(out.values[~out.missing])
    codes = np.full(len(out.values), np.nan, dtype=np.float32)
    codes[~out.missing] = present
    return codes, book


def _released_bits(private: PrivateColumn, out: Sequence[Released]) -> Matrix:
    if isinstance(private.mechanism, UnaryEncoding):
        return np.column_stack([_with_gaps(c.values, c.missing) for c in out])
    assert private.mapping is not None
    positions = out[0].values.astype(np.int64) - private.mapping.domain.L
    if out[0].missing is not None:
        positions = np.where(out[0].missing, -1, positions)
    return _one_hot(positions, len(private.feature_names()))


def _one_hot(positions: IntArray, width: int) -> Matrix:
    bits = np.zeros((len(positions), width), dtype=np.uint8)
    known = positions >= 0
    bits[np.flatnonzero(known), positions[known]] = 1
    return bits


def _with_gaps(values: IntArray, missing: BoolArray | None) -> Matrix:
    if missing is None or not missing.any():
        return values
    return np.where(missing, np.nan, values).astype(np.float32)


def _stacked(blocks: list[Matrix]) -> Matrix:
    """One matrix: bytes where all features are, 32-bit floats where one is not.

    The blocks are used up, so that at most one of them is held twice.
    """
    narrow = all(b.dtype == np.uint8 for b in blocks)
    width = sum(b.shape[1] for b in blocks)
    whole = np.empty((len(blocks[0]), width), dtype=np.uint8 if narrow else np.float32)
    place = 0
    while blocks:
        block = blocks.pop(0)
        whole[:, place : place + block.shape[1]] = block
        place += block.shape[1]
    return whole
