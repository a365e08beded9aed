"""The finaliser of splitmix64, which scatters the bits of seeded noise and row hashes."""

from __future__ import annotations

import numpy as np

from opboost._typing import Words
from opboost.runtime.compiling import njit


def splitmix64(x: Words) -> Words:
    """Return each word with its 64 bits scattered (Steele, Lea and Flood, OOPSLA 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


splitmix64_compiled = njit(cache=True, nogil=True, inline="always")(splitmix64)
"""The same function for one word, for use in compiled loops."""


@njit(cache=True, nogil=True)
def add_hashes(total, bits):  # type: ignore[no-untyped-def]
    """Add the hash of each row's bits to its total."""
    for i in range(total.shape[0]):
        total[i] += splitmix64_compiled(bits[i])
