"""Draw a point on a line with a window of higher density, in 64.64-bit fixed point."""

from __future__ import annotations

import numpy as np

from opboost.distributions.fixed_point import mulhi
from opboost.runtime.compiling import njit

_HALF = np.uint64(1) << np.uint64(63)
_ZERO = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def _scaled(n, whole, part):  # type: ignore[no-untyped-def]
    """Return ``n * (whole + part / 2**64)`` as (integer, fraction)."""
    return n * whole + mulhi(n, part), n * part


@njit(cache=True, nogil=True, inline="always")
def _share(word, whole, part):  # type: ignore[no-untyped-def]
    """Return ``word / 2**64 * (whole + part / 2**64)`` as (integer, fraction), rounded down."""
    fraction = word * whole
    total = fraction + mulhi(word, part)
    return mulhi(word, whole) + np.uint64(total < fraction), total


@njit(cache=True, nogil=True, inline="always")
def _plus(a, a_part, b, b_part):  # type: ignore[no-untyped-def]
    part = a_part + b_part
    return a + b + np.uint64(part < a_part), part


@njit(cache=True, nogil=True)
def draw_pieces(x, centre, line, guard, words, out, undecided):  # type: ignore[no-untyped-def]
    """Write the cell (from 0, not clipped) of a point for each ``x`` to ``out``.

    ``line`` holds stretch, window and rest as (integer, fraction) pairs.  Points are measured from
    the line's left end, which lies one window and half a cell to the left of cell 0's middle.
    Return how many rows are flagged as undecided.
    """
    stretch, stretch_part, window, window_part, rest, rest_part = line
    flagged = 0
    for i in range(x.shape[0]):
        coin, word = words[0, i], words[1, i]
        before, before_part = _scaled(np.uint64(x[i]), stretch, stretch_part)
        open_row = coin == centre
        if coin < centre:
            along, along_part = _share(word, window, window_part)
            point, part = _plus(before, before_part, along, along_part)
        else:
            point, part = _share(word, rest, rest_part)
            gap = part - before_part
            cells = point - before - np.uint64(part < before_part)
            if (cells == _ZERO and gap <= guard) or (cells == _ONES and _ZERO - gap <= guard):
                open_row = True
            if cells < _HALF:  # not negative: the point lies beyond the window
                point, part = _plus(point, part, window, window_part)
        point, part = _plus(point, part, _ZERO, _HALF)
        cell = np.int64(point) - np.int64(window) - np.int64(part < window_part)
        spare = part - window_part
        if spare <= guard or _ZERO - spare <= guard:
            open_row = True
        out[i] = cell
        undecided[i] = open_row
        flagged += open_row
    return flagged
