"""Turn a table into the matrix that a booster sees: codes for training, values for prediction."""

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
"""The codebook of each ordered feature; None if it is withheld."""

MAX_OWN_TEXTS = 64
"""The most distinct texts of an own column.

A model file lists them all, and a column with more of them may hold names of people.
"""


@dataclass(frozen=True, slots=True)
class OwnColumn:
    """A column of the label party: numbers, dates as days, or one-hot categories."""

    name: Hashable
    categories: tuple[Any, ...] | None

    @classmethod
    def of(cls, table: Any, name: Hashable) -> OwnColumn:
        """Determine the kind of a column of the training table."""
        if column(table, name).dtype.kind in "iufb" or holds_dates(table, name):
            return cls(name, None)
        return cls(name, tuple(sorted(categories(table, name).values, key=repr)))

    def names(self) -> list[str]:
        """The names of the column's features."""
        if self.categories is None:
            return [str(self.name)]
        return [f"{self.name}={c}" for c in self.categories]

    def block(self, table: Any) -> Matrix:
        """Return the column's features; all are zero for a category that training did not see."""
        if self.categories is not None:
            return self.block_of(categories(table, self.name))
        if holds_dates(table, self.name):
            return self.block_of(as_days(table, self.name))
        return self.block_of(as_numbers(self.name, column(table, self.name)))

    def block_of(self, values: Encoded | np.ndarray[Any, Any]) -> Matrix:
        """Return the features of values already read: numbers (NaN if missing) or categories.

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
    """Return the label party's own columns; refuse one with too many distinct texts."""
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
    """The label party's own columns, and the table that holds them and perhaps others."""

    table: Any
    columns: tuple[OwnColumn, ...]

    @classmethod
    def of(cls, table: Any, without: Iterable[Hashable] = ()) -> OwnTable:
        """Take all columns of a table except some; no columns if there is no table."""
        others = set(without)
        names = [] if table is None else [n for n in column_names(table) if n not in others]
        return cls(table, own_columns(table, names))


@dataclass(frozen=True, slots=True)
class Layout:
    """The features of a table: their positions by column, and their names."""

    private: tuple[PrivateColumn, ...]
    own: tuple[OwnColumn, ...]
    parties: tuple[str, ...] = ()
    """The party of each private column if each tree uses one party's columns; otherwise empty."""

    def groups(self) -> dict[str | None, tuple[int, ...]]:
        """Return the features of each party, the label party's own (None) first.

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
        """Return the features' names, private ones first, then the label party's own."""
        return [
            *(name for c in self.private for name in c.feature_names()),
            *(name for c in self.own for name in c.names()),
        ]

    def widths(self) -> list[tuple[Hashable, int]]:
        """Return the number of features of each column, in their order."""
        private = [(c.name, len(c.feature_names())) for c in self.private]
        return [*private, *((c.name, len(c.names())) for c in self.own)]

    def own_values(self, table: Any, rows: int) -> Matrix:
        """Return the label party's own features."""
        return self.own_matrix([c.block(table) for c in self.own], rows)

    def own_matrix(self, blocks: list[Matrix], rows: int) -> Matrix:
        """Stack blocks of own features into a matrix, and empty the list of blocks."""
        return _stacked(blocks) if blocks else np.zeros((rows, 0), dtype=np.uint8)

    def codes(self, release: list[ReleasedColumn], own: Matrix) -> tuple[Matrix, Books]:
        """Return the matrix to train on, and the codebooks of its features.

        The list ``release`` is emptied on the way, so at most one column is in memory twice.
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
        """Return released grid values (not codes), followed by own features."""
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
        """Return grid values without noise, followed by own features, for rows known in the clear.

        ``floats`` is the type that the booster's library compares.  With 32-bit floats,
        numbers are rounded first, so that the stock model in raw units sees the same cell.
        """
        return self.plain_matrix(prepared, [c.block(table) for c in self.own], floats)

    def plain_matrix(
        self,
        prepared: Mapping[Hashable, Prepared],
        own: Iterable[Matrix],
        floats: type[np.floating[Any]] = np.float32,
    ) -> Matrix:
        """Return the same as :meth:`plain_values`, from own features that exist already."""
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
    """Return the cells of a column's values, rounded to the floats that a library compares."""
    if floats is np.float64 or not isinstance(private.mapping, NumericMapping):
        return prepared.cells
    largest = np.finfo(floats).max
    return private.mapping.to_grid(np.clip(prepared.raw, -largest, largest).astype(floats))


def _values(part: CodedColumn) -> IntArray:
    """Return the grid values behind codes, as bytes if they fit."""
    if part.book is None:
        return part.values  # raises an error
    book = part.book.values
    narrow = book[0] >= 0 and book[-1] < 256
    return np.asarray((book.astype(np.uint8) if narrow else book)[part.codes])


def _bits(column: ReleasedColumn) -> Matrix:
    """Return one feature for each category of a column without order."""
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
    """Stack blocks into one matrix, of bytes if all features are bytes, otherwise of 32-bit floats.

    The list of blocks is emptied on the way, so at most one of them is in memory twice.
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
