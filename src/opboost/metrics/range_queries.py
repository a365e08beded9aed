"""Range queries: how far counts in ranges of a released column are from the true ones."""

from __future__ import annotations

import numpy as np

from opboost._typing import ArrayLike, FloatArray, IntArray
from opboost.errors import DataError
from opboost.grid import Domain
from opboost.randomness.streams import Rng, default_rng


def range_query_mse(values: ArrayLike, noisy: ArrayLike, queries: ArrayLike) -> float:
    """Return the mean squared error of range counts, each as a fraction of all rows.

    ``queries`` has one row per range, both ends included.  Cost: O((n + queries) · log n).

    >>> range_query_mse([1, 2, 3, 4], [1, 2, 2, 4], [[1, 2], [3, 4]])
    0.0625
    """
    ranges = np.asarray(queries)
    if ranges.ndim != 2 or ranges.shape[1] != 2 or not len(ranges):
        raise DataError(f"queries must have shape (n, 2); got {ranges.shape}")
    if (ranges[:, 0] > ranges[:, 1]).any():
        raise DataError("A query must not end before it begins")
    gaps = _shares(np.asarray(values), ranges) - _shares(np.asarray(noisy), ranges)
    return float(np.mean(gaps**2))


def _shares(column: FloatArray | IntArray, ranges: FloatArray | IntArray) -> FloatArray:
    if not column.size:
        raise DataError("A column without rows has no counts")
    ordered = np.sort(column, axis=None)
    begin = np.searchsorted(ordered, ranges[:, 0], side="left")
    end = np.searchsorted(ordered, ranges[:, 1], side="right")
    return np.asarray((end - begin) / len(ordered))


def random_queries(domain: Domain, count: int, rng: Rng | None = None) -> IntArray:
    """Return ranges whose two ends are uniform cells."""
    words = default_rng(rng).open().words(2, 0, count)
    ends = domain.L + (words % np.uint64(domain.size)).astype(np.int64)
    return np.sort(ends.T, axis=1)
