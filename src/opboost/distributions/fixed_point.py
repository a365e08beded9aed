"""64-bit fixed-point helpers for the compiled loops."""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

_HALF_WORD_BITS = np.uint64(32)
_LOW_MASK = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def mulhi(a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of the 128-bit product of two unsigned words."""
    a0, a1 = a & _LOW_MASK, a >> _HALF_WORD_BITS
    b0, b1 = b & _LOW_MASK, b >> _HALF_WORD_BITS
    middle = a1 * b0 + ((a0 * b0) >> _HALF_WORD_BITS)
    cross = (middle & _LOW_MASK) + a0 * b1
    return a1 * b1 + (middle >> _HALF_WORD_BITS) + (cross >> _HALF_WORD_BITS)
