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
        raw = column.raw.astype(np.float64, copy=False)
        mix_rows(self._total, np.ascontiguousarray(raw).view(np.uint64))
        if column.missing.any():
            mix_rows(self._total, column.missing.astype(np.uint64))

    def count_release(self) -> int:
        """Note a release; the most often that any of these rows has been released by now.

        Rows with equal content count as one, so equal records of two people are counted too often
        rather than too rarely.
        """
        keys = self._total
        keys.sort()
        keys = keys[np.r_[True, keys[1:] != keys[:-1]]]
        names = ", ".join(self._names)
        with _lock:
            known, counts = _seen.get(names, (keys[:0], np.zeros(0, dtype=np.int32)))
            place = np.searchsorted(known, keys).astype(np.int32)
            found = np.zeros(len(keys), dtype=np.bool_)
            inside = place < len(known)
            found[inside] = known[place[inside]] == keys[inside]
            counts[place[found]] += 1
            most = int(counts[place[found]].max(initial=1))
            if not found.all():
                fresh = keys[~found]
                known = np.insert(known, place[~found], fresh)
                counts = np.insert(counts, place[~found], 1)
            _seen[names] = known, counts
            return most
