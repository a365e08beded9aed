"""A window around the value and a floor everywhere else, for grids without a table.

A draw is uniform over all outputs with the floor's probability, else the value plus an offset from
one public row of integers.  Every input uses the same row, shifted, so the distribution depends
only on the difference between value and output, and all of its masses are exact fractions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.distributions.distribution import loss
from opboost.distributions.integer_table import IntegerTable
from opboost.distributions.lazy_uniform import LazyUniform
from opboost.distributions.window_kernel import draw_window
from opboost.grid import Domain
from opboost.randomness.exact import float_above, log_ratio
from opboost.randomness.streams import Bits, Source

FLOOR_BITS = 192
"""The bits in the probability that a draw is uniform over all outputs."""


@dataclass(frozen=True, slots=True)
class Window:
    """``P[o | x] = F/M + (1 − F) · offsets[o − x]``, with M outputs from ``L − reach`` on.

    ``floor_weight / 2**FLOOR_BITS`` is F.  ``offsets`` is a table of one row over
    ``−reach..reach``.  If ``clipped``, an output beyond the grid moves to the nearest end.
    """

    domain: Domain
    floor_weight: int
    offsets: IntegerTable
    clipped: bool

    @property
    def reach(self) -> int:
        """How far beyond the grid an output may lie."""
        return self.offsets.outputs.R

    @property
    def beyond(self) -> Domain:
        """The grid, extended on both sides by the reach of the window."""
        return Domain(self.domain.L - self.reach, self.domain.R + self.reach)

    @property
    def outputs(self) -> Domain:
        """The grid, or the wider range if outputs are not clipped."""
        return self.domain if self.clipped else self.beyond

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value from two words: floor or window, and where."""
        n = len(x)
        words = source.words(2, start, start + n)
        out = np.empty(n, dtype=np.int64)
        undecided = np.empty(n, dtype=np.bool_)
        alias = self.offsets.alias
        wide = self.beyond
        place = np.int64(wide.L), np.uint64(wide.size), np.int64(self.reach)
        floor = np.uint64(self.floor_weight >> (FLOOR_BITS - 64))
        if draw_window(x, place, floor, alias.packed, alias.column_bits, words, out, undecided):
            for i in np.flatnonzero(undecided).tolist():
                out[i] = self._wide(int(x[i]), words[:, i].tolist(), source.further(start + i))
        return np.clip(out, self.domain.L, self.domain.R) if self.clipped else out

    def exact(self, x: int, words: list[int], source: Bits) -> int:
        """Return the draw that starts with these words, taking as many more bits as it needs."""
        y = self._wide(x, words, source)
        return self.domain.clamp(y) if self.clipped else y

    def _wide(self, x: int, words: list[int], source: Bits) -> int:
        if LazyUniform(words[0], source).below(self._floor_bounds):
            return self.beyond.L + LazyUniform(words[1], source).index(self.beyond.size)
        return x + self.offsets.exact(0, words[1], source)

    def _floor_bounds(self, bits: int) -> tuple[int, int]:
        if bits >= FLOOR_BITS:
            exact = self.floor_weight << (bits - FLOOR_BITS)
            return exact, exact
        shift = FLOOR_BITS - bits
        return self.floor_weight >> shift, -(-self.floor_weight >> shift)

    def weight(self, difference: int) -> int:
        """Return the mass at ``output − value``, times a common factor (:meth:`whole`)."""
        inside = 0
        if abs(difference) <= self.reach:
            inside = self.offsets.weights[0][difference + self.reach]
        floor = self.floor_weight << self.offsets.bits
        return floor + ((1 << FLOOR_BITS) - self.floor_weight) * self.beyond.size * inside

    def whole(self) -> int:
        """Return the sum of the weights of all outputs, which is the same for every value."""
        return self.beyond.size << (FLOOR_BITS + self.offsets.bits)

    def mass(self, x: int) -> FloatArray:
        """Return the masses of all outputs, each rounded to the nearest float."""
        whole = self.whole()
        wide = [self.weight(o - x) for o in range(self.beyond.L, self.beyond.R + 1)]
        if not self.clipped:
            return np.array([w / whole for w in wide])
        flank = self.reach + 1
        kept = [sum(wide[:flank]), *wide[flank:-flank], sum(wide[-flank:])]
        return np.array([w / whole for w in kept])

    def gain(self, x: int, y: int) -> float:
        """Return the largest log-ratio over the outputs in either window, and the ends if clipped.

        Everywhere else, both inputs give the floor.
        """
        worst = (1, 1)
        for a, b in self._weights(x, y):
            if a * worst[1] > worst[0] * b:
                worst = a, b
        return float_above(log_ratio(*worst))

    def _weights(self, x: int, y: int) -> Iterator[tuple[int, int]]:
        ends = (self.domain.L, self.domain.R) if self.clipped else (self.beyond.L - 1,) * 2
        for value in (x, y):
            for o in range(value - self.reach, value + self.reach + 1):
                if not self.clipped or ends[0] < o < ends[1]:
                    yield self.weight(o - x), self.weight(o - y)
        if self.clipped:
            low, high = range(self.beyond.L, ends[0] + 1), range(ends[1], self.beyond.R + 1)
            for flank in (low, high):
                yield sum(self.weight(o - x) for o in flank), sum(self.weight(o - y) for o in flank)

    def step_loss(self) -> float:
        """Return the gain between neighbours in the middle; if an end is near, the largest loss.

        Clipping only lowers a gain.  If the window is narrower than half the grid, no output in
        the middle pair's windows is clipped.
        """
        middle = self.domain.L + self.domain.span // 2
        if not self.clipped or self.reach + 1 < self.domain.span // 2:
            return self.gain(middle, middle + 1)
        return max(loss(self, x, x + 1) for x in range(self.domain.L, self.domain.R))
