"""Codebooks map grid values to dense codes, and a cut between codes back to a value.

Trees need only the order, so a party sends a column as codes 0, 1, 2, ... of the values that occur
in it.  A tree splits rows at a cut between codes; the cut's value splits them in the same way.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import ArrayLike, BoolArray, IntArray
from opboost.errors import DataError, PrivacyError


@dataclass(frozen=True, slots=True, eq=False)
class Codebook:
    """The distinct values of a column in increasing order: code k means ``values[k]``.

    >>> codes, book = encode([7, 3, 3, 9])
    >>> codes.tolist(), book.values.tolist()
    ([1, 0, 0, 2], [3, 7, 9])
    """

    values: IntArray

    def __post_init__(self) -> None:
        values = np.asarray(self.values)
        if values.ndim != 1 or not values.size or values.dtype.kind not in "iu":
            raise DataError("A codebook holds the distinct integers of a column, at least one")
        if (np.diff(values.astype(np.int64)) <= 0).any():
            raise DataError("The values of a codebook must increase")
        object.__setattr__(self, "values", values)

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Codebook) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(tuple(self.values.tolist()))

    def decode(self, codes: ArrayLike) -> IntArray:
        """Return the values of codes."""
        index = np.asarray(codes)
        if index.size and (index.min() < 0 or index.max() >= len(self)):
            raise DataError(f"A code lies outside 0..{len(self) - 1}")
        return np.asarray(self.values[index])

    def places(self, values: ArrayLike) -> IntArray:
        """Return the codes of values; a new value gets the code of its lower neighbour.

        So ``code < cut`` iff ``value < value_of(cut)`` holds for new values too, at any cut.
        """
        return np.maximum(np.searchsorted(self.values, np.asarray(values), side="right") - 1, 0)

    def value_of(self, cut: float) -> float:
        """Return the value that splits rows as the cut does: ``code < cut`` iff ``value < it``.

        It is −inf for a cut at or below the first code, and +inf above the last code.

        >>> book = Codebook(np.array([3, 7, 9]))
        >>> book.value_of(0.5), book.value_of(0), book.value_of(2.5)
        (7.0, -inf, inf)
        """
        if not math.isfinite(cut):
            return cut
        code = math.ceil(cut)
        return self._at(code) if code > 0 else -math.inf

    def last_of(self, cut: float) -> float:
        """Return the value for trees that send ties left: ``code <= cut`` iff ``value <= it``.

        >>> book = Codebook(np.array([3, 7, 9]))
        >>> book.last_of(0.5), book.last_of(-1), book.last_of(2)
        (3.0, -inf, 9.0)
        """
        if not math.isfinite(cut):
            return cut
        code = math.floor(cut)
        return self._at(code) if code >= 0 else -math.inf

    def _at(self, code: int) -> float:
        return float(self.values[code]) if code < len(self) else math.inf


@dataclass(frozen=True, slots=True, eq=False)
class CodedColumn:
    """A released column as codes, as it is sent; ``book`` is None if it is withheld.

    Rows without a value have an arbitrary code and are marked in ``missing``.
    """

    codes: IntArray
    book: Codebook | None
    missing: BoolArray | None = None

    @property
    def values(self) -> IntArray:
        """The grid values behind the codes."""
        if self.book is None:
            raise PrivacyError("The codebook of this column is withheld.")
        return self.book.decode(self.codes)

    def where(self, rows: BoolArray | IntArray | slice) -> CodedColumn:
        """Return some of the rows."""
        missing = None if self.missing is None else self.missing[rows]
        return CodedColumn(self.codes[rows], self.book, missing)

    def dense(self) -> CodedColumn:
        """Return the same column with a codebook of only the values that occur.

        >>> column = CodedColumn(np.array([3, 0, 3]), Codebook(np.array([2, 4, 6, 8])))
        >>> column.dense().codes.tolist(), column.dense().book.values.tolist()
        ([1, 0, 1], [2, 8])
        """
        there = slice(None) if self.missing is None else ~self.missing
        found, present = numbered(self.codes[there])
        if self.book is None or not found.size:
            return self
        codes = np.zeros(len(self.codes), dtype=present.dtype)
        codes[there] = present
        return CodedColumn(codes, Codebook(self.book.values[found]), self.missing)


PIECE_ROWS = 2**20
"""The number of rows processed at a time, which keeps temporary arrays small."""


def encode(values: ArrayLike) -> tuple[IntArray, Codebook]:
    """Return a column's codes, in the narrowest type, and its codebook.  Cost: O(n + range)."""
    column = np.asarray(values)
    if column.dtype.kind not in "iu" or column.ndim != 1 or not column.size:
        raise DataError(f"encode takes a column of integers; got {column.dtype}, {column.shape}")
    found, codes = numbered(column)
    return codes, Codebook(found.astype(np.int64) if found.dtype.itemsize < 8 else found)


def distinct(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the distinct values of a column in increasing order, in the column's type."""
    return numbered(values)[0] if _is_narrow(values) else np.unique(values)


def numbered(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], IntArray]:
    """Return the distinct values of a column in increasing order, and each row's position in them.

    Integers in a small range are counted; other values are sorted.

    >>> found, codes = numbered(np.array(["no", "yes", "no"]))
    >>> found.tolist(), codes.tolist(), codes.dtype.name
    (['no', 'yes'], [0, 1, 0], 'uint8')
    """
    if not _is_narrow(values):
        found, codes = np.unique(values, return_inverse=True)
        return found, codes.astype(_kind(len(found)))
    low, high = int(values.min()), int(values.max())
    present = np.zeros(high - low + 1, dtype=np.bool_)
    for piece in _pieces(values):
        present[piece - low] = True
    places = np.flatnonzero(present)
    rank = (np.cumsum(present) - 1).astype(_kind(len(places)))
    out = np.empty(len(values), dtype=rank.dtype)
    for start, piece in enumerate(_pieces(values)):
        out[start * PIECE_ROWS : start * PIECE_ROWS + len(piece)] = rank[piece - low]
    return (places + low).astype(values.dtype), out


def _is_narrow(values: np.ndarray[Any, Any]) -> bool:
    if values.dtype.kind not in "iub" or not values.size:
        return False
    return int(values.max()) - int(values.min()) < max(1024, 4 * values.size)


def _pieces(values: np.ndarray[Any, Any]) -> Iterator[IntArray]:
    for start in range(0, len(values), PIECE_ROWS):
        piece = values[start : start + PIECE_ROWS]
        yield piece if piece.dtype.itemsize == 8 else piece.astype(np.int64)


def _kind(count: int) -> np.dtype[Any]:
    return np.min_scalar_type(max(0, count - 1))
