"""Entropy coding with a fixed table of frequencies: range asymmetric numeral systems.

J. Duda, "Asymmetric numeral systems", arXiv 1311.2540.  A state is a 64-bit integer from ``2**31``
to below ``2**63``; 32-bit words move in and out of it.  ``STATES`` states code the symbols in turn
and share the words, so that a processor works on several symbols at a time (F. Giesen, "Interleaved
entropy coders", arXiv 1402.3392).  The decoder is total: for any words it returns symbols of the
table or ``-1``, and never reads beyond the end.
"""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

STATES = 4
"""Symbol i belongs to state ``i % STATES``."""

MAX_PRECISION_BITS = 22
"""Frequencies add up to at most ``2**22``."""

_LOWEST = np.uint64(1 << 31)
_WORD = np.uint64(32)
_MASK = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def encode_symbols(symbols, frequencies, starts, precision, words):  # type: ignore[no-untyped-def]
    """Write symbols, the last first, into ``words`` from the end; return where they begin."""
    bits = np.uint64(precision)
    states = np.full(STATES, _LOWEST)
    place = words.shape[0]
    for i in range(symbols.shape[0] - 1, -1, -1):
        state, symbol = states[i % STATES], symbols[i]
        frequency = np.uint64(frequencies[symbol])
        if state >= ((_LOWEST >> bits) << _WORD) * frequency:
            place -= 1
            words[place] = np.uint32(state & _MASK)
            state >>= _WORD
        whole = state // frequency
        rest = state - whole * frequency
        states[i % STATES] = (whole << bits) + rest + np.uint64(starts[symbol])
    for state in states[::-1]:
        place -= 2
        words[place] = np.uint32(state >> _WORD)
        words[place + 1] = np.uint32(state & _MASK)
    return place


@njit(cache=True, nogil=True)
def decode_symbols(words, frequencies, starts, lookup, precision, out):  # type: ignore[no-untyped-def]
    """Read ``len(out)`` symbols; return how many words were used, or -1 for invalid words."""
    rows, size, place = out.shape[0], np.uint64(words.shape[0]), np.uint64(2 * STATES)
    if size < place:
        return -1
    bits = np.uint64(precision)
    slots = (np.uint64(1) << bits) - np.uint64(1)
    states = np.empty(STATES, dtype=np.uint64)
    for k in range(STATES):
        states[k] = (np.uint64(words[2 * k]) << _WORD) | np.uint64(words[2 * k + 1])
        if states[k] < _LOWEST or states[k] >> np.uint64(63):
            return -1
    done, last = 0, size - np.uint64(STATES)
    # Each state decodes a symbol, and takes a word without a branch, which would be mispredicted.
    while done + STATES <= rows and place <= last:
        for k in range(STATES):
            state = states[k]
            slot = state & slots
            symbol = lookup[slot]
            out[done + k] = symbol
            state = np.uint64(frequencies[symbol]) * (state >> bits)
            state += slot - np.uint64(starts[symbol])
            short = np.uint64(state < _LOWEST)
            states[k] = (state << (short * _WORD)) | (short * np.uint64(words[place]))
            place += short
        done += STATES
    # The same one by one, when fewer symbols or words than states are left.
    for i in range(done, rows):
        state = states[i % STATES]
        slot = state & slots
        symbol = lookup[slot]
        out[i] = symbol
        state = np.uint64(frequencies[symbol]) * (state >> bits) + slot - np.uint64(starts[symbol])
        if state < _LOWEST:
            if place >= size:
                return -1
            state = (state << _WORD) | np.uint64(words[place])
            place += np.uint64(1)
        states[i % STATES] = state
    return np.int64(place) if np.all(states == _LOWEST) else -1
