"""Weighted Kendall: how much of a column's order a release keeps."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from opboost._typing import ArrayLike, FloatArray, IntArray
from opboost.errors import DataError, ParameterError
from opboost.metrics.kendall_kernel import concordance


def weighted_kendall(
    r: ArrayLike,
    s: ArrayLike,
    *,
    normalise: Literal["paper", "reference"] = "paper",
    ranks: Literal["average", "dense"] = "average",
) -> float:
    """Return Kendall's tau, with pairs weighted by the distance of their ranks in sorted ``r``.

    It is ``⟨r,s⟩ / sqrt(⟨r,r⟩ · ⟨s,s⟩)``, where ``⟨r,s⟩`` is the sum over pairs of
    sgn(r_i−r_j)·sgn(s_i−s_j)·w, and w is this distance.  The result is 1 iff the order is kept
    strictly.

    Args:
        r: The values before the release.
        s: The values after it.
        normalise: ``"paper"`` as above; ``"reference"`` divides only by ⟨r,r⟩, as the authors'
            code does, so that ties in s count as lost order.
        ranks: ``"average"`` gives equal values of r the mean of their ranks; ``"dense"`` counts
            distinct values, so that equal values use up only one rank.

    Cost: O(n log n).

    >>> round(weighted_kendall([1, 2, 3, 4], [1, 2, 4, 3]), 3)
    0.8
    """
    before, after = _two_columns(r, s)
    if normalise not in ("paper", "reference"):
        raise ParameterError(f"normalise must be 'paper' or 'reference'; got {normalise!r}.")
    if ranks not in ("average", "dense"):
        raise ParameterError(f"ranks must be 'average' or 'dense'; got {ranks!r}.")
    order = np.argsort(before, kind="stable")
    place = _places(before[order], ranks)
    after_rank = np.unique(after[order], return_inverse=True)[1].astype(np.int64) + 1
    own = _all_pairs(place)
    kept = float(concordance(place, after_rank, int(after_rank.max())))
    if normalise == "reference":
        return kept / own if own else math.nan
    other = own - _tied_pairs(place, after_rank)
    return kept / math.sqrt(own * other) if own and other else math.nan


def _two_columns(r: ArrayLike, s: ArrayLike) -> tuple[FloatArray, FloatArray]:
    columns = []
    for name, values in (("r", r), ("s", s)):
        column = np.asarray(values)
        if column.ndim != 1 or column.dtype.kind not in "iufb":
            raise DataError(f"{name} must be one column of numbers; got {column.dtype}")
        if column.dtype.kind == "f" and np.isnan(column).any():
            raise DataError(f"{name} holds NaN, which has no order", hint="Drop those rows.")
        columns.append(column)
    if len(columns[0]) != len(columns[1]):
        raise DataError(f"r and s differ in length: {len(columns[0])} and {len(columns[1])}")
    if len(columns[0]) < 2:
        raise DataError("weighted_kendall needs at least two rows")
    return columns[0], columns[1]


def _places(ordered: FloatArray, ranks: str) -> FloatArray:
    """Return the rank of each row of a sorted column; equal values share one."""
    fresh = np.r_[True, ordered[1:] != ordered[:-1]]
    group = fresh.cumsum() - 1
    if ranks == "dense":
        return np.asarray(group, dtype=np.float64)
    starts = np.flatnonzero(fresh)
    ends = np.r_[starts[1:], len(ordered)]
    return np.asarray(((starts + ends - 1) / 2)[group])


def _all_pairs(place: FloatArray) -> float:
    """Return the sum of |place_i − place_j| over all pairs of a sorted column."""
    n = len(place)
    return float((place * (2 * np.arange(n) - n + 1)).sum())


def _tied_pairs(place: FloatArray, group: IntArray) -> float:
    """Return the sum of |place_i − place_j| over pairs inside a group; ``place`` is sorted."""
    order = np.argsort(group, kind="stable")
    members, grouped = place[order], group[order]
    starts = np.flatnonzero(np.r_[True, np.diff(grouped) != 0])
    sizes = np.diff(np.r_[starts, len(members)])
    inside = np.arange(len(members)) - np.repeat(starts, sizes)
    return float((members * (2 * inside - np.repeat(sizes, sizes) + 1)).sum())
