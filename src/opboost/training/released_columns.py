"""Released columns as training and prediction read them: codes and a codebook."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.columns.codebook import Codebook, CodedColumn, encode
from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedColumn:
    """A private column as it was released.

    Attributes:
        private: Its declaration, under the name that it has in the model.
        parts: Its codes; a column of unary bits has a part for each category.
        sent: The share of rows for which this column is sent, a public setting of its party.
        absent: The rows of people whom its party does not know; None if it knows everybody.
    """

    private: PrivateColumn
    parts: tuple[CodedColumn, ...]
    sent: float = 1.0
    absent: BoolArray | None = None

    def __len__(self) -> int:
        return len(self.parts[0].codes)

    @property
    def withheld(self) -> bool:
        """Whether the values behind its codes are not known."""
        return any(part.book is None for part in self.parts)

    def where(self, rows: BoolArray | IntArray | slice) -> ReleasedColumn:
        """Return some of the rows."""
        absent = None if self.absent is None else self.absent[rows]
        return replace(self, parts=tuple(part.where(rows) for part in self.parts), absent=absent)

    def dense(self) -> ReleasedColumn:
        """Return the same values, with codes only for those that occur."""
        return replace(self, parts=tuple(part.dense() for part in self.parts))


def rows_of(
    release: Iterable[ReleasedColumn], rows: BoolArray | IntArray | slice
) -> list[ReleasedColumn]:
    """Return some rows of a release."""
    return [column.where(rows) for column in release]


def from_sample(
    private: Iterable[PrivateColumn],
    released: Mapping[Hashable, Sequence[OutColumn]],
    sent: float,
) -> list[ReleasedColumn]:
    """Return released values as codes, with codebooks of the values that occur."""
    return [
        ReleasedColumn(c, tuple(_coded(out) for out in released[c.name]), sent) for c in private
    ]


def _coded(out: OutColumn) -> CodedColumn:
    if out.missing is None or not out.missing.any():
        return CodedColumn(*encode(out.values))
    there = ~out.missing
    if not there.any():  # even gaps need a codebook; any value will do
        gaps = np.zeros(len(out.values), dtype=np.uint8)
        return CodedColumn(gaps, Codebook(np.array([int(out.values[0])])), out.missing)
    present, book = encode(out.values[there])
    codes = np.zeros(len(out.values), dtype=present.dtype)
    codes[there] = present
    return CodedColumn(codes, book, out.missing)
