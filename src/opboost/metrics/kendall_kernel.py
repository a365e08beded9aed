"""Weighted concordance of two rankings, by two Fenwick trees."""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit


@njit(cache=True, nogil=True)
def concordance(place, after, groups):  # type: ignore[no-untyped-def]
    """Return the sum of sgn(after_i − after_j)·(place_i − place_j) over pairs of rows.

    Each pair counts once, with place_i > place_j.  ``place`` is sorted; ``after`` holds
    ranks 1..groups.  The trees hold the count and the sum of ``place`` of the earlier rows at each
    rank of ``after``.
    """
    counts = np.zeros(groups + 1, dtype=np.int64)
    places = np.zeros(groups + 1, dtype=np.float64)
    total = 0.0
    all_count = np.int64(0)
    all_place = 0.0
    n = place.shape[0]
    start = 0
    while start < n:
        stop = start + 1
        while stop < n and place[stop] == place[start]:
            stop += 1
        for i in range(start, stop):  # rows with equal place are not compared
            rank = after[i]
            below_count, below_place = np.int64(0), 0.0
            k = rank - 1
            while k > 0:
                below_count += counts[k]
                below_place += places[k]
                k -= k & -k
            upto_count, upto_place = np.int64(0), 0.0
            k = rank
            while k > 0:
                upto_count += counts[k]
                upto_place += places[k]
                k -= k & -k
            above_count, above_place = all_count - upto_count, all_place - upto_place
            total += place[i] * (below_count - above_count) - (below_place - above_place)
        for i in range(start, stop):
            k = after[i]
            while k <= groups:
                counts[k] += 1
                places[k] += place[i]
                k += k & -k
            all_count += 1
            all_place += place[i]
        start = stop
    return total
