"""Look-up of pseudo-random 128-bit handles in a sorted array, and of the records beside them."""

from __future__ import annotations

import numpy as np

from opboost.kernels.compiling import njit

_STEP = 8
"""The first stride around the place where a uniform handle is expected."""


@njit(cache=True, nogil=True)
def find(known, wanted, order, places):  # type: ignore[no-untyped-def]
    """Put the place of each ``wanted`` pair of words among ``known`` pairs, or -1, into ``places``.

    ``known`` is sorted by its first word.  Handles are uniform, so the search gallops outwards from
    the place at which a uniform handle is expected: O(log log n) for each.  ``order`` sorts the
    wanted ones, so that neighbours touch the same memory.
    """
    count = known.shape[0]
    for i in order:
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


@njit(cache=True, nogil=True)
def recall(order, places, records, columns, tags, decided, sent, draws):  # type: ignore[no-untyped-def]
    """Take over what records say of cells about which nothing was decided before.

    ``records`` are a run's bits (decided, sent) and draws.  A row of ``columns`` is a column of the
    release, a column of the run, where its draw lies in the run and in ``draws``, its bytes, and
    where its tag lies in the run (-1: it has none).  A draw whose tag differs is passed over.
    """
    says, was_sent, drawn = records
    for i in order:
        place = places[i]
        if place < 0:
            continue
        for c in range(columns.shape[0]):
            j, k, source, target, width, tag = columns[c]
            bit = np.uint8(128) >> np.uint8(k & 7)
            if decided[i, j] or not says[place, k >> 3] & bit:
                continue
            is_sent = (was_sent[place, k >> 3] & bit) != 0
            if is_sent and tag >= 0:
                found = np.uint64(0)
                for b in range(8):
                    found |= np.uint64(drawn[place, tag + b]) << np.uint64(8 * b)
                if found != tags[i, j]:
                    continue
            decided[i, j] = True
            sent[i, j] = is_sent
            if is_sent:
                for b in range(width):
                    draws[i, target + b] = drawn[place, source + b]
