"""64-bit fixed-point helpers for the compiled loops."""

from __future__ import annotations

import numpy as np

from opboost.runtime.compiling import njit

_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True, inline="always")
def mulhi(a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of the 128-bit product of two unsigned words."""
    a0, a1 = a & _LOW, a >> _HALF
    b0, b1 = b & _LOW, b >> _HALF
    middle = a1 * b0 + ((a0 * b0) >> _HALF)
    cross = (middle & _LOW) + a0 * b1
    return a1 * b1 + (middle >> _HALF) + (cross >> _HALF)
