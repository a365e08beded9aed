"""Geometric noise on grids of any size, digit by digit.

The digits of a geometric variable in any base are independent, so a variable with any spread takes
a fixed number of words, one per digit.  A digit is looked up among cumulative thresholds that are
rounded down; a word that equals one of them flags its row.
"""

from __future__ import annotations

import numpy as np

from opboost.distributions.fixed_point import mulhi
from opboost.runtime.compiling import njit

DIGIT_BITS = 11
"""Digits have base 2048: the thresholds of one digit fill 16 KiB, half a first-level cache."""

BASE = 1 << DIGIT_BITS

GUARD = 64
"""The error bound of a side's probability, in units of 2**-63; rows within it are flagged."""

_GUIDE_SHIFT = np.uint64(64 - DIGIT_BITS)
_ONE = np.uint64(1) << np.uint64(63)


@njit(cache=True, nogil=True, inline="always")
def geometric(words, i, first, thresholds, guides):  # type: ignore[no-untyped-def]
    """Return a geometric variable from the words of row ``i``, one per digit from ``first`` on.

    A digit is the number of thresholds that its word reaches; the guide says where the search
    starts.  Also return whether a word equals a threshold or lies beyond the last one: such a
    row is undecided.
    """
    total = np.int64(0)
    undecided = np.int64(0)
    count = thresholds.shape[1]
    for level in range(thresholds.shape[0]):
        word = words[first + level, i]
        d = np.int64(guides[level, np.int64(word >> _GUIDE_SHIFT)])
        while d < count and word >= thresholds[level, d]:
            d += 1
        undecided |= np.int64(d == count) | np.int64(thresholds[level, max(d - 1, 0)] == word)
        total += d << np.int64(level * DIGIT_BITS)
    return total, undecided


@njit(cache=True, nogil=True, inline="always")
def power(n, powers):  # type: ignore[no-untyped-def]
    """Return ``q**n`` in units of 2**-64, at most 16 units too small.

    ``powers[level, d]`` holds ``q**(d·2048**level)``.
    """
    result = np.uint64(0xFFFFFFFFFFFFFFFF)
    for level in range(powers.shape[0]):  # all digits, so that time does not reveal which are zero
        result = mulhi(result, powers[level, n & np.int64(BASE - 1)])
        n >>= np.int64(DIGIT_BITS)
    return result * np.uint64(n == 0)


@njit(cache=True, nogil=True)
def draw_laplace(x, lower, upper, words, right, thresholds, guides, out, undecided):  # type: ignore[no-untyped-def]
    """Write ``x`` plus two-sided geometric noise, clamped to ``lower..upper``, to ``out``.

    Draw 0 chooses the side (``right`` is the rounded-down threshold of "not below x"); the other
    draws are the digits of the distance.  Return how many rows are flagged as undecided.
    """
    flagged = np.int64(0)
    for i in range(x.shape[0]):
        value = np.int64(x[i])
        distance, open_row = geometric(words, i, 1, thresholds, guides)
        coin = words[0, i]
        moved = value + distance if coin < right else value - 1 - distance
        out[i] = min(max(moved, lower), upper)
        open_row |= np.int64(coin == right)
        undecided[i] = open_row
        flagged += open_row
    return flagged


@njit(cache=True, nogil=True)
def draw_two_sided(x, lower, upper, words, powers, thresholds, guides, out, undecided):  # type: ignore[no-untyped-def]
    """Write draws with weights ``q**|x − y|`` on ``lower[i]..upper[i]`` to ``out``.

    Draw 0 chooses the side: left (``y <= x``) has weight ``1 − q**(a+1)`` and right has
    ``q − q**(b+1)``, for a cells to the left and b to the right.  The distance along the side is a
    geometric variable modulo the number of cells there, which is exactly the truncated
    distribution.  Return how many rows are flagged as undecided.
    """
    q = power(np.int64(1), powers) >> np.uint64(1)
    guard = np.uint64(GUARD)
    flagged = np.int64(0)
    for i in range(x.shape[0]):
        value = min(max(np.int64(x[i]), lower[i]), upper[i])
        cells_left = value - lower[i] + 1
        cells_right = upper[i] - value
        left = _ONE - (power(cells_left, powers) >> np.uint64(1))
        far = power(cells_right + 1, powers) >> np.uint64(1)
        right = q - far if q > far else np.uint64(0)
        distance, open_row = geometric(words, i, 1, thresholds, guides)
        position = mulhi(words[0, i], left + right)
        on_left = cells_right == 0 or position < left
        cells = cells_left if on_left else cells_right
        if distance >= cells:  # rare: division is slow
            distance %= cells
        out[i] = value - distance if on_left else value + 1 + distance
        gap = left - position if position < left else position - left
        open_row |= np.int64(cells_right > 0) & np.int64(gap <= guard)
        undecided[i] = open_row
        flagged += open_row
    return flagged
