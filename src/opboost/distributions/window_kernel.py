"""Draw from a floor over all outputs or from a window around the value."""

from __future__ import annotations

import numpy as np

from opboost.distributions.alias_kernel import THRESHOLD_BITS
from opboost.distributions.fixed_point import mulhi
from opboost.runtime.compiling import njit

_THRESHOLD_SHIFT = np.uint64(64 - THRESHOLD_BITS)
_ALIAS_MASK = np.uint64(0xFFFF)
_ZERO = np.uint64(0)


@njit(cache=True, nogil=True)
def draw_window(x, place, floor, packed, column_bits, words, out, undecided):  # type: ignore[no-untyped-def]
    """Fill ``out`` with draws; return how many rows are left to the caller.

    If the first word is below ``floor``, the second one gives a uniform output of ``place`` (first
    output, number of outputs, reach); otherwise it draws an offset from the alias row.
    """
    first, size, reach = place
    shift, up = np.uint64(64 - column_bits), np.uint64(column_bits)
    flagged = 0
    for i in range(x.shape[0]):
        coin, word = words[0, i], words[1, i]
        if coin < floor:
            out[i] = first + np.int64(mulhi(word, size))
            open_row = word * size > _ZERO - size
        else:
            column = np.int64(word >> shift)
            entry = packed[column]
            part, threshold = (word << up) >> _THRESHOLD_SHIFT, entry >> _THRESHOLD_SHIFT
            alias = np.int64(entry & _ALIAS_MASK)
            offset = column + (alias - column) * np.int64(part >= threshold)
            out[i] = np.int64(x[i]) - reach + offset
            open_row = coin == floor or part == threshold
        undecided[i] = open_row
        flagged += open_row
    return flagged
