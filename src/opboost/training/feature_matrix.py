"""From a table to the matrix that a booster sees, in codes for training and in values after."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.boosting.booster import Matrix
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.columns.dataframes import Encoded, as_numbers, categories, column, column_names
from opboost.columns.date_columns import as_days, holds_dates
from opboost.columns.private_column import MAX_FLOAT32_INTEGER, Prepared, PrivateColumn
from opboost.errors import ColumnError
from opboost.grid import NumericMapping
from opboost.mechanisms import NominalMechanism
from opboost.scores.clean_features import feature_block, one_hot
from opboost.training.released_columns import ReleasedColumn

Books = Mapping[int, Codebook | None]
"""The codebook of each feature that has an order; None where it is withheld."""

MAX_OWN_TEXTS = 64
"""Most different texts of an own column: a model file lists each, and more are often names."""


@dataclass(frozen=True, slots=True)
class OwnColumn:
    """A column of the label party: numbers as they are, dates as days, or categories one-hot."""

    name: Hashable
    categories: tuple[Any, ...] | None

    @classmethod
    def of(cls, table: Any, name: Hashable) -> OwnColumn:
        """What a column of the training table is."""
        if column(table, name).dtype.kind in "iufb" or holds_dates(table, name):
            return cls(name, None)
        return cls(name, tuple(sorted(categories(table, name).values, key=repr)))

    def names(self) -> list[str]:
        """The features that it becomes."""
        if self.categories is None:
            return [str(self.name)]
        return [f"{self.name}={c}" for c in self.categories]

    def block(self, table: Any) -> Matrix:
        """Its features; a category that training did not show has all of them zero."""
        if self.categories is not None:
            return self.block_of(categories(table, self.name))
        if holds_dates(table, self.name):
            return self.block_of(as_days(table, self.name))
        return self.block_of(as_numbers(self.name, column(table, self.name)))

    def block_of(self, values: Encoded | np.ndarray[Any, Any]) -> Matrix:
        """The same for values that were read already: numbers (NaN for a gap), or categories.

        >>> OwnColumn("city", ("north", "south")).block_of(Encoded(np.array([0, -1]), ["south"]))
        array([[0, 1],
               [0, 0]], dtype=uint8)
        """
        if not isinstance(values, Encoded):
            return values.astype(np.float32)[:, None]
        assert self.categories is not None
        known = {c: i for i, c in enumerate(self.categories)}
        position = np.array([*(known.get(v, -1) for v in values.values), -1], dtype=np.int64)
        return one_hot(position[values.codes], len(self.categories))


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


@dataclass(frozen=True, slots=True, eq=False)
class OwnTable:
    """The label party's own columns, and the table that holds them, perhaps beside others."""

    table: Any
    columns: tuple[OwnColumn, ...]

    @classmethod
    def of(cls, table: Any, without: Iterable[Hashable] = ()) -> OwnTable:
        """All columns of a table except some; no columns where there is no table."""
        others = set(without)
        names = [] if table is None else [n for n in column_names(table) if n not in others]
        return cls(table, own_columns(table, names))


@dataclass(frozen=True, slots=True)
class Layout:
    """The features of a table: where each column's stand, and what they are called."""

    private: tuple[PrivateColumn, ...]
    own: tuple[OwnColumn, ...]
    parties: tuple[str, ...] = ()
    """Whose each private column is, where each tree keeps to one party; else empty."""

    def groups(self) -> dict[str | None, tuple[int, ...]]:
        """The features of each party, the label party's own (None) first.

        >>> import opboost as op
        >>> city = op.UnaryEncoding(["north", "south"], 1.0)
        >>> columns = (op.PrivateColumn(name, None, city) for name in ("home", "work"))
        >>> Layout(tuple(columns), (OwnColumn("age", None),), ("shop", "telco")).groups()
        {None: (4,), 'shop': (0, 1), 'telco': (2, 3)}
        """
        found: dict[str | None, tuple[int, ...]] = {None: ()}
        place = 0
        owners = [*self.parties, *(None for _ in self.own)]
        for owner, (_, width) in zip(owners, self.widths(), strict=True):
            found[owner] = (*found.get(owner, ()), *range(place, place + width))
            place += width
        return found

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
        return self.own_matrix([c.block(table) for c in self.own], rows)

    def own_matrix(self, blocks: list[Matrix], rows: int) -> Matrix:
        """The same of columns whose features were made already; they are used up."""
        return _stacked(blocks) if blocks else np.zeros((rows, 0), dtype=np.uint8)

    def codes(self, release: list[ReleasedColumn], own: Matrix) -> tuple[Matrix, Books]:
        """The matrix to train on, and the codebooks of its features.

        The release is used up, so that at most one of its columns is held twice.
        """
        blocks: list[Matrix] = []
        books: dict[int, Codebook | None] = {}
        place = 0
        while release:
            column = release.pop(0)
            if column.private.has_order:
                part = column.parts[0]
                books[place] = part.book
                blocks.append(_with_gaps(part.codes, part.missing)[:, None])
            else:
                blocks.append(_bits(column))
            place += blocks[-1].shape[1]
        return _stacked([*blocks, own]), books

    def values(self, release: Sequence[ReleasedColumn], own: Matrix) -> Matrix:
        """Released grid values (not codes) beside own features."""
        blocks = [
            _with_gaps(_values(c.parts[0]), c.parts[0].missing)[:, None]
            if c.private.has_order
            else _bits(c)
            for c in release
        ]
        return _stacked([*blocks, own])

    def plain_values(
        self,
        table: Any,
        prepared: Mapping[Hashable, Prepared],
        floats: type[np.floating[Any]] = np.float32,
    ) -> Matrix:
        """Grid values without noise beside own features: for rows that may be seen.

        ``floats`` is what the booster's library compares: with 32-bit floats a number counts as its
        rounding, so that the stock model in raw units sees the same cell.
        """
        return self.plain_matrix(prepared, [c.block(table) for c in self.own], floats)

    def plain_matrix(
        self,
        prepared: Mapping[Hashable, Prepared],
        own: Iterable[Matrix],
        floats: type[np.floating[Any]] = np.float32,
    ) -> Matrix:
        """The same beside features of own columns that were made already."""
        blocks: list[Matrix] = []
        for private in self.private:
            cells = prepared[private.name]
            if private.has_order:
                gaps = cells.missing if private.flagged() is not None else None
                blocks.append(_with_gaps(_rounded_cells(private, cells, floats), gaps)[:, None])
            else:
                blocks.append(feature_block(private, cells))
        return _stacked([*blocks, *own])


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


def _rounded_cells(
    private: PrivateColumn, prepared: Prepared, floats: type[np.floating[Any]]
) -> IntArray:
    """The cells of a column's values, rounded to the floats that a library compares."""
    if floats is np.float64 or not isinstance(private.mapping, NumericMapping):
        return prepared.cells
    largest = np.finfo(floats).max
    return private.mapping.to_grid(np.clip(prepared.raw, -largest, largest).astype(floats))


def _values(part: CodedColumn) -> IntArray:
    """The grid values behind codes, as bytes where they fit."""
    if part.book is None:
        return part.values  # refused
    book = part.book.values
    narrow = book[0] >= 0 and book[-1] < 256
    return np.asarray((book.astype(np.uint8) if narrow else book)[part.codes])


def _bits(column: ReleasedColumn) -> Matrix:
    """One feature for each category of a column without order."""
    private, first = column.private, column.parts[0]
    if isinstance(private.mechanism, NominalMechanism):
        return np.column_stack([_with_gaps(_values(c), c.missing) for c in column.parts])
    assert private.mapping is not None
    positions = first.values.astype(np.int64) - private.mapping.domain.L
    if first.missing is not None:
        positions = np.where(first.missing, -1, positions)
    return one_hot(positions, len(private.feature_names()))


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
