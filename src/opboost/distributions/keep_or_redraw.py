"""Keep the value, or redraw it uniformly: randomised response on any grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.distributions.lazy_uniform import LazyUniform, word_floor
from opboost.distributions.uniform_kernel import draw_keep
from opboost.grid import Domain
from opboost.randomness.exact import float_above, log_ratio
from opboost.randomness.streams import Bits, Source


@dataclass(frozen=True, slots=True)
class KeepOrRedraw:
    """A distribution in which the value itself is ``ratio`` times as likely as any other cell.

    A draw keeps the value with probability ``(ratio − 1) / (ratio + k − 1)``, else it is uniform on
    all k cells.
    """

    outputs: Domain
    ratio: Fraction

    @property
    def _keep(self) -> Fraction:
        return (self.ratio - 1) / (self.ratio + self.outputs.span)

    def _keep_bounds(self, bits: int) -> tuple[int, int]:
        scaled = self._keep * (1 << bits)
        return int(scaled), -int(-scaled // 1)

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value, from two words."""
        n = len(x)
        words = source.words(2, start, start + n)
        out = np.empty(n, dtype=np.int64)
        undecided = np.empty(n, dtype=np.bool_)
        keep = np.uint64(word_floor(self._keep_bounds))
        lower, size = np.int64(self.outputs.L), np.uint64(self.outputs.size)
        if draw_keep(x, lower, size, keep, words, out, undecided):
            for i in np.flatnonzero(undecided).tolist():
                out[i] = self.exact(int(x[i]), words[:, i].tolist(), source.further(start + i))
        return out

    def exact(self, x: int, words: list[int], source: Bits) -> int:
        """Return the draw that starts with these words, taking as many more bits as it needs."""
        if LazyUniform(words[0], source).below(self._keep_bounds):
            return x
        return self.outputs.L + LazyUniform(words[1], source).index(self.outputs.size)

    def mass(self, x: int) -> FloatArray:
        """Return the probabilities: one cell is high, all others are equal."""
        other = 1 / (self.ratio + self.outputs.span)
        mass = np.full(self.outputs.size, float(other))
        mass[x - self.outputs.L] = float(self.ratio * other)
        return mass

    def gain(self, x: int, y: int) -> float:
        """Return ``ln(ratio)`` for different values, zero for equal ones."""
        if x == y:
            return 0.0
        return float_above(log_ratio(self.ratio.numerator, self.ratio.denominator))

    def step_loss(self) -> float:
        """Return ``ln(ratio)``."""
        return self.gain(self.outputs.L, self.outputs.L + 1)
