"""Draw one output per value from a table of integer weights, by Walker's alias method."""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

THRESHOLD_BITS = 48
"""The number of threshold bits in the fast path; an entry is threshold << 16 | alias."""

_THRESHOLD_SHIFT = np.uint64(64 - THRESHOLD_BITS)
_ALIAS_MASK = np.uint64(0xFFFF)


@njit(cache=True, nogil=True)
def draw_alias(x, lower, first, packed, column_bits, words, out):  # type: ignore[no-untyped-def]
    """Fill ``out`` with draws for the grid values ``x``; return how many rows stay undecided.

    ``packed`` holds ``2**column_bits`` entries per row of the table.  The top bits of a word choose
    the entry, and the next 48 are compared with its threshold.  A word below it keeps the entry's
    own output, a word above it takes the alias, and an equal word is left to the caller.
    """
    shift = np.uint64(64 - column_bits)
    stride = np.int64(1) << np.int64(column_bits)
    up = np.uint64(column_bits)
    flagged = np.int64(0)
    for i in range(x.shape[0]):
        word = words[i]
        column = np.int64(word >> shift)
        entry = packed[np.int64(x[i] - lower) * stride + column]
        coin = (word << up) >> _THRESHOLD_SHIFT
        threshold = entry >> _THRESHOLD_SHIFT
        alias = np.int64(entry & _ALIAS_MASK)
        out[i] = first + column + (alias - column) * np.int64(coin >= threshold)
        flagged += np.int64(coin == threshold)
    return flagged


@njit(cache=True, nogil=True)
def flagged_rows(x, lower, packed, column_bits, words):  # type: ignore[no-untyped-def]
    """Return the rows of ``x`` whose coin equals its threshold."""
    shift = np.uint64(64 - column_bits)
    stride = np.int64(1) << np.int64(column_bits)
    up = np.uint64(column_bits)
    rows = []
    for i in range(x.shape[0]):
        column = np.int64(words[i] >> shift)
        entry = packed[np.int64(x[i] - lower) * stride + column]
        if (words[i] << up) >> _THRESHOLD_SHIFT == entry >> _THRESHOLD_SHIFT:
            rows.append(i)
    return rows
