"""Two-sided geometric noise, clamped to a range."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.distributions.geometric import geometric_of
from opboost.distributions.geometric_kernel import draw_laplace
from opboost.distributions.lazy_uniform import LazyUniform, word_floor
from opboost.grid import Domain
from opboost.randomness.exact import Decay, float_above, quotient_bounds
from opboost.randomness.streams import Bits, Source


@dataclass(frozen=True, slots=True)
class ClampedLaplace:
    """``P[y | x] = (1−q)/(1+q) · q**|x−y|`` inside the range; each end gets the mass beyond it."""

    outputs: Domain
    decay: Decay

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value: draw a side, then a geometric distance, then clamp."""
        distribution = geometric_of(self.decay)
        n = len(x)
        words = source.words(1 + distribution.levels, start, start + n)
        out = np.empty(n, dtype=np.int64)
        undecided = np.empty(n, dtype=np.bool_)
        lower, upper = np.int64(self.outputs.L), np.int64(self.outputs.R)
        right = np.uint64(word_floor(self._right))
        if draw_laplace(
            x,
            lower,
            upper,
            words,
            right,
            distribution.thresholds,
            distribution.guides,
            out,
            undecided,
        ):
            for i in np.flatnonzero(undecided).tolist():
                out[i] = self.exact(int(x[i]), words[:, i].tolist(), source.further(start + i))
        return out

    def exact(self, x: int, words: list[int], source: Bits) -> int:
        """Return the draw that starts with these words, taking as many more bits as it needs."""
        on_right = LazyUniform(words[0], source).below(self._right)
        distance = geometric_of(self.decay).exact(words[1:], source)
        return self.outputs.clamp(x + distance if on_right else x - 1 - distance)

    def _right(self, bits: int) -> tuple[int, int]:
        """Return bounds on P[noise >= 0] = 1 / (1 + q)."""
        one = 1 << bits
        low, high = self.decay.power(1, bits)
        return quotient_bounds((one, one), (one + low, one + high), bits)

    def mass(self, x: int) -> FloatArray:
        """Return two geometric flanks; each end also has the mass beyond it."""
        rate = float(self.decay.log())
        y = np.arange(self.outputs.L, self.outputs.R + 1, dtype=np.int64)
        mass: FloatArray = -np.expm1(-rate) / (1 + np.exp(-rate)) * np.exp(-rate * np.abs(y - x))
        mass[0] = np.exp(-rate * (x - self.outputs.L)) / (1 + np.exp(-rate))
        mass[-1] = np.exp(-rate * (self.outputs.R - x)) / (1 + np.exp(-rate))
        return mass

    def gain(self, x: int, y: int) -> float:
        """Return ``|x − y| · ln(1/q)``, which is reached at the end of the range on x's side."""
        return float_above(self.decay.log() * abs(x - y))

    def step_loss(self) -> float:
        """Return ``ln(1/q)``."""
        return float_above(self.decay.log())
