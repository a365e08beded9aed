"""Find exactly the points that two lists share, without holding the lists in memory.

Points are sorted into 256 buckets by their first byte, and compared bucket by bucket.  The buckets
are in memory as long as there are few points, and otherwise in a temporary file.  Raised points
look random, so a bucket holds about a 256th of them.  A peer that chooses points with the same
first byte puts all of them into one bucket; ``most_rows`` limits the memory for it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.errors import WireError
from opboost.psi.curve_points import POINT_BYTES, words_of

BUCKETS = 256

MAX_BYTES_IN_MEMORY = 1 << 23
"""The number of bytes that are kept in memory before a file is created."""

_TIE_ROWS = 1 << 16
"""The number of rows that are compared with their successors at once."""

_WORDS = POINT_BYTES // 8 + 1
Records = np.ndarray[Any, np.dtype[np.uint64]]
"""One row per point: its four words, and its place in the list."""


class PointList:
    """A list of points that arrives in pieces; repeated points are refused at the end.

    >>> with PointList() as ours, PointList() as theirs:
    ...     ours.add(bytes(32) + bytes([1] * 32))
    ...     theirs.add(bytes([1] * 32))
    ...     tuple(found.tolist() for found in common_places(ours, theirs))
    ([1], [0])
    """

    def __init__(self, folder: Path | None = None, *, max_bytes: int = MAX_BYTES_IN_MEMORY) -> None:
        place = None if folder is None else str(folder)
        self._file = tempfile.SpooledTemporaryFile(max_bytes, dir=place)  # noqa: SIM115
        self._borders: list[IntArray] = []
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, points: bytes) -> None:
        """Append points to the list."""
        words = words_of(points)
        records = np.empty((len(words), _WORDS), "<u8")
        records[:, :-1] = words
        records[:, -1] = np.arange(self._size, self._size + len(words))
        bucket = words[:, 0].astype(np.uint8)
        borders = np.cumsum(np.r_[0, np.bincount(bucket, minlength=BUCKETS)])
        self._file.write(records[np.argsort(bucket, kind="stable")].tobytes())
        self._borders.append(self._size + borders)
        self._size += len(words)

    def bucket(self, number: int) -> Records:
        """Return the points of a bucket, sorted by their words; refuse a repeated point."""
        found = [np.empty((0, _WORDS), "<u8"), *(self._read(b, number) for b in self._borders)]
        records = np.concatenate(found)
        records = records[order_of(records[:, :-1])]
        if (records[1:, :-1] == records[:-1, :-1]).all(axis=1).any():
            raise WireError("A point occurs twice; every party has each ID once.")
        return records

    def check_distinct(self) -> None:
        """Refuse a list in which a point occurs twice."""
        for number in range(BUCKETS):
            self.bucket(number)

    def _read(self, borders: IntArray, bucket: int) -> Records:
        first, last = int(borders[bucket]), int(borders[bucket + 1])
        self._file.seek(first * _WORDS * 8)
        data = self._file.read((last - first) * _WORDS * 8)
        return np.frombuffer(data, "<u8").reshape(-1, _WORDS)

    def close(self) -> None:
        """Discard the points."""
        self._file.close()

    def __enter__(self) -> PointList:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def common_places(ours: PointList, theirs: PointList) -> tuple[IntArray, IntArray]:
    """Return the places of equal points in both lists, neither of which repeats a point."""
    most = min(len(ours), len(theirs))
    # Two arrays, so that each can be freed by itself.
    left, right = np.empty(most, np.int64), np.empty(most, np.int64)
    count = 0
    for number in range(BUCKETS):
        a, b = ours.bucket(number), theirs.bucket(number)
        both = np.concatenate([a, b])
        order = order_of(both[:, :-1])
        both = both[order]
        same = np.flatnonzero((both[1:, :-1] == both[:-1, :-1]).all(axis=1))
        # Equal points are adjacent, ours first, because the sort is stable.
        end = count + len(same)
        left[count:end], right[count:end] = both[same, -1], both[same + 1, -1]
        count = end
    return left[:count], right[:count]


def order_of(words: np.ndarray[Any, Any]) -> IntArray:
    """Return the rows in ascending order, compared word by word; equal rows keep their order.

    >>> order_of(np.array([[2, 1], [1, 9], [2, 0]], dtype=np.uint64)).tolist()
    [1, 2, 0]
    """
    return order_by_first(words[:, 0].astype(np.uint64), lambda rows: words[rows])


def order_by_first(
    first: np.ndarray[Any, np.dtype[np.uint64]],
    whole: Callable[[IntArray], np.ndarray[Any, Any]],
) -> IntArray:
    """Return the rows in ascending order of their words; ``first`` holds the first word of each.

    The first word nearly always decides, so ``whole``, which returns all words of some rows, is
    called only for rows that share their first word.
    Equal rows keep their order.  Cost: 16 bytes per row.
    """
    order = np.argsort(first)
    found = [np.empty(0, np.int64)]
    for start in range(0, len(order), _TIE_ROWS):
        ranked = first[order[start : start + _TIE_ROWS + 1]]
        found.append(start + np.flatnonzero(ranked[1:] == ranked[:-1]))
    tied = np.concatenate(found)
    if len(tied):
        alike = np.union1d(tied, tied + 1)
        rows = order[alike]
        order[alike] = rows[np.lexsort((rows, *whole(rows).T[::-1]))]
    return order
