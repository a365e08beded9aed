"""How often the same rows were released in this process.

A search that refits releases its rows again and again, with fresh noise; promises then add up.
This counts, by a salted hash of each row that never leaves the process, and only to state the
guarantee: no noise depends on it.
"""

from __future__ import annotations

import secrets
import threading

import numpy as np

from opboost._typing import IntArray, Words
from opboost.columns import Prepared
from opboost.kernels.cells import mix_rows

_SALT = np.uint64(secrets.randbits(64))
_lock = threading.Lock()
_seen: dict[str, tuple[Words, IntArray]] = {}


class RowHashes:
    """Hashes of rows, built up column by column."""

    def __init__(self, rows: int) -> None:
        self._total = np.full(rows, _SALT, dtype=np.uint64)
        self._names: list[str] = []

    def add(self, name: object, column: Prepared) -> None:
        """Mix one private column in."""
        self._names.append(repr(name))
        mix_rows(self._total, (column.raw.astype(np.float64) + 0.0).view(np.uint64))
        if column.missing.any():
            mix_rows(self._total, column.missing.astype(np.uint64))

    def count_release(self) -> int:
        """Note a release; the most often that any of these rows has been released by now.

        Rows with equal content count as one, so equal records of two people are counted too often
        rather than too rarely.
        """
        keys = np.unique(self._total)
        names = ", ".join(self._names)
        with _lock:
            old_keys, old_counts = _seen.get(names, (keys[:0], np.zeros(0, dtype=np.int64)))
            merged, where = np.unique(np.concatenate([old_keys, keys]), return_inverse=True)
            counts = np.zeros(len(merged), dtype=np.int64)
            np.add.at(counts, where[: len(old_keys)], old_counts)
            np.add.at(counts, where[len(old_keys) :], 1)
            _seen[names] = merged, counts
            return int(counts[where[len(old_keys) :]].max())
