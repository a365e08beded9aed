"""How often the same rows were released in this process.

A search that refits releases its rows again and again, with fresh noise; promises then add up.
This counts, by a salted hash of each row that never leaves the process, and only to state the
guarantee: no noise depends on it.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence

import numpy as np

from opboost._typing import IntArray, Words
from opboost.columns import Prepared, PrivateColumn
from opboost.rng import mixed

_SALT = np.uint64(secrets.randbits(64))
_lock = threading.Lock()
_seen: dict[str, tuple[Words, IntArray]] = {}


def count_release(columns: Sequence[tuple[PrivateColumn, Prepared]]) -> int:
    """Note a release; the largest number of times that any of its rows has been released now.

    Rows with equal content count as one, so equal records of two people are counted too often
    rather than too rarely.
    """
    names = repr([c.name for c, _ in columns])
    keys = np.unique(_row_hashes([p for _, p in columns]))
    with _lock:
        old_keys, old_counts = _seen.get(names, (keys[:0], np.zeros(0, dtype=np.int64)))
        merged, where = np.unique(np.concatenate([old_keys, keys]), return_inverse=True)
        counts = np.zeros(len(merged), dtype=np.int64)
        np.add.at(counts, where[: len(old_keys)], old_counts)
        np.add.at(counts, where[len(old_keys) :], 1)
        _seen[names] = merged, counts
        return int(counts[where[len(old_keys) :]].max())


def _row_hashes(prepared: Sequence[Prepared]) -> Words:
    total = np.full(len(prepared[0].cells), _SALT, dtype=np.uint64)
    for column in prepared:
        raw = column.raw.astype(np.float64) + 0.0
        total = mixed(total ^ mixed(raw.view(np.uint64)) ^ column.missing.astype(np.uint64))
    return total
