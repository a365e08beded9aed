"""A check for duplicates among more names than fit in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from opboost._typing import IntArray, Words

BUCKETS = 256
"""Names are compared within a bucket, so only a 256th of them is in memory at a time."""

MAX_BYTES_IN_MEMORY = 1 << 23
"""Up to this many bytes stay in memory; more are written to a file."""

_NAME_BYTES = 16


class DuplicateIds:
    """A collection of 128-bit pseudo-random names, which are compared at the end.

    ``repeats()`` is the number of added names that equal an earlier one.  ``repeated()`` gives the
    number of names that occur more than once, and how often they occur in all.
    Cost: 16 bytes of disk per name; memory for a 256th of them.

    >>> import numpy as np
    >>> with DuplicateIds() as names:
    ...     names.add(np.array([[1, 2], [3, 4]], dtype=np.uint64))
    ...     names.add(np.array([[3, 5], [1, 2]], dtype=np.uint64))
    ...     names.repeats(), names.repeated()
    (1, (1, 2))
    """

    def __init__(self, folder: Path | None = None, *, max_bytes: int = MAX_BYTES_IN_MEMORY) -> None:
        place = None if folder is None else str(folder)
        self._file = tempfile.SpooledTemporaryFile(max_bytes, dir=place)  # noqa: SIM115
        self._borders: list[IntArray] = []
        self._size = 0

    def add(self, names: Words) -> None:
        """Add some names, two words each."""
        bucket = (names[:, 0] >> np.uint64(56)).astype(np.uint8)
        ordered = names[np.argsort(bucket, kind="stable")]
        borders = np.cumsum(np.r_[0, np.bincount(bucket, minlength=BUCKETS)])
        self._file.write(ordered.astype("<u8").tobytes())
        self._borders.append(self._size + borders)
        self._size += len(ordered)

    def repeats(self) -> int:
        """Return how many names repeat an earlier one."""
        names, rows = self.repeated()
        return rows - names

    def repeated(self) -> tuple[int, int]:
        """Return how many names occur more than once, and in how many rows."""
        found = np.zeros(2, dtype=np.int64)
        for bucket in range(BUCKETS):
            names = np.concatenate(
                [np.empty((0, 2), dtype="<u8"), *(self._read(b, bucket) for b in self._borders)]
            )
            names = names[np.argsort(names[:, 0])]
            same = names[1:, 0] == names[:-1, 0]
            if same.any():
                alike = names[np.r_[same, False] | np.r_[False, same]]
                _, times = np.unique(alike, axis=0, return_counts=True)
                found += (times > 1).sum(), times[times > 1].sum()
        return int(found[0]), int(found[1])

    def _read(self, borders: IntArray, bucket: int) -> Words:
        first, last = int(borders[bucket]), int(borders[bucket + 1])
        self._file.seek(first * _NAME_BYTES)
        return np.frombuffer(self._file.read((last - first) * _NAME_BYTES), dtype="<u8").reshape(
            -1, 2
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> DuplicateIds:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
