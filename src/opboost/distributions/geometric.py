"""A geometric variable with an exactly known decay, by independent digits.

If ``P[G = g]`` falls by a factor q from one g to the next, digit ``level`` of G in base 2048 is a
truncated geometric variable with decay ``q**(2048**level)``, independent of all other digits.  The
tables here hold the first 64 bits of the digits' cumulative probabilities.
:meth:`Geometric.exact` uses the exact decay to decide what those bits leave open.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opboost._typing import Words
from opboost.distributions.geometric_kernel import BASE, DIGIT_BITS
from opboost.distributions.lazy_uniform import LazyUniform, word_floor
from opboost.randomness.exact import Decay, quotient_bounds
from opboost.randomness.streams import Bits


@dataclass(frozen=True, slots=True, eq=False)
class Geometric:
    """A geometric variable on 0, 1, 2, ... with decay q, ready to be sampled."""

    decay: Decay
    thresholds: Words
    guides: np.ndarray[tuple[int, int], np.dtype[np.uint16]]
    powers: Words

    @property
    def levels(self) -> int:
        """The number of digits per draw; one more would be nonzero with a chance below 2**-64."""
        return int(self.thresholds.shape[0])

    def digit_cumulative(self, level: int, d: int, bits: int) -> tuple[int, int]:
        """Return bounds on P[digit <= d]; the last digit has no upper limit."""
        step = BASE**level
        one = 1 << bits
        low, high = self.decay.power((d + 1) * step, bits)
        if level == self.levels - 1:
            return one - high, one - low
        whole_low, whole_high = self.decay.power(BASE * step, bits)
        return quotient_bounds((one - high, one - low), (one - whole_high, one - whole_low), bits)

    def exact(self, words: list[int], source: Bits) -> int:
        """Return the draw that starts with these words, taking as many more bits as it needs."""
        total = 0
        for level, word in enumerate(words):
            uniform = LazyUniform(word, source)
            count = BASE - 1 if level < self.levels - 1 else BASE
            d = uniform.rank(lambda d, bits, at=level: self.digit_cumulative(at, d, bits), count)  # type: ignore[misc]
            if d == BASE:  # beyond the last digit's table: the tail is geometric again
                while not uniform.below(
                    lambda bits, d=d: self.digit_cumulative(self.levels - 1, d, bits)  # type: ignore[misc]
                ):
                    d += 1
            total += d << (level * DIGIT_BITS)
        return total


@lru_cache(maxsize=64)
def geometric_of(decay: Decay) -> Geometric:
    """Return the sampler of a decay.  Cost: once, about 2,048 products of 128 bits per level."""
    levels = 1
    while decay.power(BASE**levels, 64)[1] > 1:
        levels += 1
    shape = (levels, BASE)
    distribution = Geometric(
        decay,
        np.full(shape, 2**64 - 1, dtype=np.uint64),
        np.empty(shape, dtype=np.uint16),
        np.zeros(shape, dtype=np.uint64),
    )
    for level in range(levels):
        _fill_level(distribution, level)
    return distribution


def _fill_level(distribution: Geometric, level: int) -> None:
    last = level == distribution.levels - 1
    count = BASE if last else BASE - 1
    for d in range(count):
        distribution.thresholds[level, d] = word_floor(
            lambda bits, d=d: distribution.digit_cumulative(level, d, bits)  # type: ignore[misc]
        )
    distribution.powers[level, 0] = 2**64 - 1
    for d in range(1, BASE):
        distribution.powers[level, d] = min(
            distribution.decay.power(d * BASE**level, 64)[0], 2**64 - 1
        )
    starts = np.arange(BASE, dtype=np.uint64) << np.uint64(64 - DIGIT_BITS)
    # A word's digit is the number of thresholds at or below it; the scan starts there.
    distribution.guides[level] = np.searchsorted(
        distribution.thresholds[level, :count], starts, side="right"
    )
