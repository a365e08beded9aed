"""Released columns on disk, with the label party's own: read in runs, or at given places."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from opboost._typing import IntArray
from opboost.boosting.booster import Blocks, Matrix
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.columns.dataframes import rows_of as table_rows
from opboost.training.column_screening import constant
from opboost.training.feature_matrix import Books, Layout
from opboost.training.released_columns import ReleasedColumn, rows_of

READ_ROWS = 2**20
"""The number of rows read at a time to collect rows at given places."""


class ColumnOnDisk(Protocol):
    """A column that was received, or drawn, in a file."""

    @property
    def file(self) -> Path:
        """The file."""
        ...

    @property
    def book(self) -> Codebook | None:
        """The values behind codes; None if they are withheld."""
        ...

    def rows(self, rows: slice) -> CodedColumn:
        """Return some rows of the column."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PickedRows:
    """Some rows of a column on disk, at ascending places."""

    whole: ColumnOnDisk
    places: IntArray

    @property
    def file(self) -> Path:
        """The file of all rows."""
        return self.whole.file

    @property
    def book(self) -> Codebook | None:
        """The values behind codes; None if they are withheld."""
        return self.whole.book

    def rows(self, rows: slice) -> CodedColumn:
        """Return some of these rows; the rows between them are read as well."""
        wanted = self.places[rows]
        first = int(wanted[0])
        return self.whole.rows(slice(first, int(wanted[-1]) + 1)).where(wanted - first)


@dataclass(frozen=True, slots=True, eq=False)
class StoredRows:
    """The rows of a job whose columns are in files.

    Attributes:
        layout: Which columns are private and which are the label party's own.
        stored: The files of each private column.
        sent: The share of rows for which each private column is sent.
        table: The label party's own columns, or None.
        count: How many rows there are.
        left_out: Columns that say nothing about the label; they have no value in any row.
        scratch: The folder for new files; None for the folder of the columns.
    """

    layout: Layout
    stored: Mapping[Hashable, Sequence[ColumnOnDisk]]
    sent: Mapping[Hashable, float]
    table: Any
    count: int
    left_out: frozenset[Hashable] = frozenset()
    scratch: Path | None = None

    @property
    def folder(self) -> Path:
        """The folder for draws and bins."""
        if self.scratch is not None:
            return self.scratch
        return next(c.file.parent for columns in self.stored.values() for c in columns)

    @property
    def withheld(self) -> bool:
        """Whether the values behind some codes are not known."""
        return any(c.book is None for columns in self.stored.values() for c in columns)

    def without(self, names: frozenset[Hashable]) -> StoredRows:
        """Return the same rows without values in these columns."""
        return replace(self, left_out=names)

    def release(self, here: slice) -> list[ReleasedColumn]:
        """Read the released columns of a run of rows."""
        found = [
            ReleasedColumn(c, tuple(p.rows(here) for p in self.stored[c.name]), self.sent[c.name])
            for c in self.layout.private
        ]
        return [constant(c) if c.private.name in self.left_out else c for c in found]

    def own(self, here: slice | IntArray) -> Matrix:
        """Return the label party's own features of some rows."""
        rows = here.stop - here.start if isinstance(here, slice) else len(here)
        return self.layout.own_values(
            None if self.table is None else table_rows(self.table, here), rows
        )

    def take(self, places: IntArray) -> tuple[list[ReleasedColumn], Matrix]:
        """Read the rows at ascending places into memory, in one pass over the files."""
        pieces = []
        for here in _runs(self.count):
            first, last = np.searchsorted(places, [here.start, here.stop])
            if first < last:
                pieces.append(rows_of(self.release(here), places[first:last] - here.start))
        return [_joined(columns) for columns in zip(*pieces, strict=True)], self.own(places)


def stacked_blocks(draws: Sequence[StoredRows]) -> tuple[Blocks, Books]:
    """Return the matrix to train on, one block at a time, and the codebooks of its features.

    Several draws of the same rows are stacked.
    """
    first, size = draws[0], draws[0].count
    layout = first.layout

    def coded(draw: StoredRows, here: slice) -> tuple[Matrix, Books]:
        return layout.codes(draw.release(here), draw.own(here))

    def read(here: slice) -> Matrix:
        found = []
        for k in range(here.start // size, -(-here.stop // size)):
            inside = slice(max(here.start - k * size, 0), min(here.stop - k * size, size))
            found.append(coded(draws[k], inside)[0])
        return found[0] if len(found) == 1 else np.concatenate(found)

    _, books = coded(first, slice(0, 1))
    return Blocks((size * len(draws), len(layout.names())), read, first.folder), books


def _runs(rows: int) -> Iterator[slice]:
    return (slice(a, min(a + READ_ROWS, rows)) for a in range(0, rows, READ_ROWS))


def _joined(pieces: Sequence[ReleasedColumn]) -> ReleasedColumn:
    """Return the stacked runs of one column."""
    parts = [_stacked(parts) for parts in zip(*(c.parts for c in pieces), strict=True)]
    return replace(pieces[0], parts=tuple(parts))


def _stacked(parts: Sequence[CodedColumn]) -> CodedColumn:
    gaps = [
        np.zeros(len(p.codes), dtype=np.bool_) if p.missing is None else p.missing for p in parts
    ]
    missing = None if all(p.missing is None for p in parts) else np.concatenate(gaps)
    return CodedColumn(np.concatenate([p.codes for p in parts]), parts[0].book, missing)
