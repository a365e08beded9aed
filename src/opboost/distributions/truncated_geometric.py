"""The two-sided geometric distribution on a range: the paper's Global-map on any grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.distributions.distribution import loss
from opboost.distributions.geometric import geometric_of
from opboost.distributions.geometric_kernel import draw_two_sided
from opboost.distributions.lazy_uniform import LazyUniform
from opboost.grid import Domain
from opboost.randomness.exact import Decay, float_above, log_ratio, quotient_bounds
from opboost.randomness.streams import Bits, Source

_SUM_BITS = 256


@dataclass(frozen=True, slots=True)
class TruncatedGeometric:
    """``P[y | x]`` proportional to ``q**|x−y|`` on the range.

    A draw chooses a side, then a geometric distance modulo the number of cells on it.  No draw is
    ever rejected, so the number of words does not depend on the data.
    """

    outputs: Domain
    decay: Decay

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value, on the whole range."""
        n = len(x)
        lower = np.full(n, self.outputs.L, dtype=np.int64)
        upper = np.full(n, self.outputs.R, dtype=np.int64)
        return draw_within(self.decay, x, lower, upper, source, start)

    def mass(self, x: int) -> FloatArray:
        """Return the weights divided by their sum."""
        rate = float(self.decay.log())
        y = np.arange(self.outputs.L, self.outputs.R + 1, dtype=np.int64)
        weights = np.exp(-rate * np.abs(y - x))
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def gain(self, x: int, y: int) -> float:
        """Return ``|x − y| · ln(1/q) + ln(S_y / S_x)``, where S is the sum of the weights."""
        ends = self.outputs.L, self.outputs.R
        return float_above(self.decay.log() * abs(x - y) + sum_log_ratio(self.decay, ends, y, x))

    def step_loss(self) -> float:
        """Return the loss at an end of the range, where the sums differ most."""
        return loss(self, self.outputs.L, self.outputs.L + 1)


def sum_log_ratio(decay: Decay, ends: tuple[int, int], x: int, y: int) -> Fraction:
    """Return ``ln(S_x / S_y)``, rounded up; ``S_x`` is the sum of ``q**|x−z|`` over the range."""
    return Fraction(0) if x == y else log_ratio(_sum(decay, ends, x)[1], _sum(decay, ends, y)[0])


def _sum(decay: Decay, ends: tuple[int, int], x: int) -> tuple[int, int]:
    """Return bounds on ``(1−q) · S_x = 1 + q − q**(a+1) − q**(b+1)``: a cells left, b right."""
    near = decay.power(1, _SUM_BITS)
    left, right = decay.power(x - ends[0] + 1, _SUM_BITS), decay.power(ends[1] - x + 1, _SUM_BITS)
    one = 1 << _SUM_BITS
    return one + near[0] - left[1] - right[1], one + near[1] - left[0] - right[0]


def draw_within(
    decay: Decay, x: IntArray, lower: IntArray, upper: IntArray, source: Source, start: int
) -> IntArray:
    """Return a two-sided draw per value on ``lower[i]..upper[i]``, to which x is clamped first."""
    distribution = geometric_of(decay)
    n = len(x)
    words = source.words(1 + distribution.levels, start, start + n)
    out = np.empty(n, dtype=np.int64)
    undecided = np.empty(n, dtype=np.bool_)
    if draw_two_sided(
        x,
        lower,
        upper,
        words,
        distribution.powers,
        distribution.thresholds,
        distribution.guides,
        out,
        undecided,
    ):
        for i in np.flatnonzero(undecided).tolist():
            ends, more = (int(lower[i]), int(upper[i])), source.further(start + i)
            out[i] = exact_within(decay, int(x[i]), *ends, words[:, i].tolist(), more)
    return out


def exact_within(
    decay: Decay, x: int, lower: int, upper: int, words: list[int], source: Bits
) -> int:
    """Return the draw that starts with these words, taking as many more bits as it needs."""
    value = min(max(x, lower), upper)
    cells_left, cells_right = value - lower + 1, upper - value

    def left(bits: int) -> tuple[int, int]:
        one = 1 << bits
        near, far_left = decay.power(1, bits), decay.power(cells_left, bits)
        far_right = decay.power(cells_right + 1, bits)
        top = one - far_left[1], one - far_left[0]
        rest = near[0] - far_right[1], near[1] - far_right[0]
        return quotient_bounds(top, (top[0] + rest[0], top[1] + rest[1]), bits)

    distance = geometric_of(decay).exact(words[1:], source)
    if cells_right == 0 or LazyUniform(words[0], source).below(left):
        return value - distance % cells_left
    return value + 1 + distance % cells_right
