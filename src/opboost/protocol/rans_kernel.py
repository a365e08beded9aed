"""Entropy coding with a fixed table of frequencies: range asymmetric numeral systems.

J. Duda, "Asymmetric numeral systems", arXiv 1311.2540.  The state is a 64-bit integer in
``[2**31, 2**63)`` that moves 32-bit words in and out.  The decoder is total: any words give symbols
of the table or ``-1``, never a read beyond the end.
"""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

LOWEST = np.uint64(1 << 31)
MOST_PRECISION = 22
"""Frequencies add up to at most ``2**22``."""

_WORD = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def encode_symbols(symbols, frequencies, starts, precision, words):  # type: ignore[no-untyped-def]
    """Write symbols, the last first, into ``words`` from the end; returns where they begin."""
    bits = np.uint64(precision)
    state = LOWEST
    place = words.shape[0]
    for i in range(symbols.shape[0] - 1, -1, -1):
        frequency = np.uint64(frequencies[symbols[i]])
        if state >= ((LOWEST >> bits) << _WORD) * frequency:
            place -= 1
            words[place] = np.uint32(state & _MASK)
            state >>= _WORD
        start = np.uint64(starts[symbols[i]])
        state = ((state // frequency) << bits) + (state % frequency) + start
    words[place - 1] = np.uint32(state & _MASK)
    words[place - 2] = np.uint32(state >> _WORD)
    return place - 2


@njit(cache=True, nogil=True)
def decode_symbols(words, frequencies, starts, lookup, precision, out):  # type: ignore[no-untyped-def]
    """Read ``len(out)`` symbols; returns how many words were used, -1 for words that lie."""
    if words.shape[0] < 2:
        return -1
    bits = np.uint64(precision)
    slots = (np.uint64(1) << bits) - np.uint64(1)
    state = (np.uint64(words[0]) << _WORD) | np.uint64(words[1])
    if state < LOWEST or state >> np.uint64(63):
        return -1
    place = 2
    for i in range(out.shape[0]):
        slot = state & slots
        symbol = lookup[slot]
        out[i] = symbol
        state = np.uint64(frequencies[symbol]) * (state >> bits) + slot - np.uint64(starts[symbol])
        if state < LOWEST:
            if place >= words.shape[0]:
                return -1
            state = (state << _WORD) | np.uint64(words[place])
            place += 1
    return place if state == LOWEST else -1
