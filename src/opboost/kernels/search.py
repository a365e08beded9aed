"""Look-up of pseudo-random 128-bit handles in a sorted array."""

from __future__ import annotations

import numpy as np

from opboost.kernels.compiling import njit

_STEP = 8
"""The first stride around the place where a uniform handle is expected."""


@njit(cache=True, nogil=True)
def find(known, wanted, places):  # type: ignore[no-untyped-def]
    """Put the place of each ``wanted`` pair of words among ``known`` pairs, or -1, into ``places``.

    ``known`` is sorted by its first word.  Handles are uniform, so the search gallops outwards from
    the place at which a uniform handle is expected: O(log log n) for each.
    """
    count = known.shape[0]
    for i in range(wanted.shape[0]):
        places[i] = -1
        word = wanted[i, 0]
        low = min(np.int64(np.float64(word) * 2.0**-64 * count), count - 1)
        step = _STEP
        if count and known[low, 0] < word:
            high = low + 1
            while high < count and known[high, 0] < word:
                low = high
                high += step
                step *= 2
            high = min(high, count)
        else:
            high = low + 1
            while low > 0 and known[low, 0] >= word:
                high = low
                low -= step
                step *= 2
            low = max(low, 0)
        while low < high:
            middle = (low + high) // 2
            if known[middle, 0] < word:
                low = middle + 1
            else:
                high = middle
        while low < count and known[low, 0] == word:
            if known[low, 1] == wanted[i, 1]:
                places[i] = low
                break
            low += 1
