"""A window of higher density on a line, rounded to cells: the piecewise mechanism on any grid.

With ``s = e**(eps/2)``, the window of x has ``s**2`` times the density of the rest.  Here s is an
exact fraction, so every mass is one too, and the promise is exactly ``s**2 <= e**eps``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.distributions.distribution import loss
from opboost.distributions.lazy_uniform import LazyUniform, word_floor
from opboost.distributions.piecewise_kernel import draw_pieces
from opboost.grid import Domain
from opboost.randomness.exact import float_above, log_ratio
from opboost.randomness.streams import Bits, Source

_HALF = Fraction(1, 2)


@dataclass(frozen=True, slots=True)
class PiecewiseDensity:
    """The piecewise mechanism of Wang et al. (ICDE 2019) on a grid.

    Counted in cells from L, the line reaches from ``−w`` to ``span + w`` with ``w = span / (s−1)``;
    the window of x begins at ``x · s/(s−1) − w`` and is w wide.  A point is uniform on the window
    with probability ``s / (s+1)``, else uniform on the rest.  It is rounded to the nearest cell
    and, if ``clipped``, moved to the nearest end of the grid.
    """

    domain: Domain
    s: Fraction
    clipped: bool

    @property
    def outputs(self) -> Domain:
        """The grid, or all cells that the line reaches."""
        if self.clipped:
            return self.domain
        reach = ceil(self.window + _HALF) - 1
        return Domain(self.domain.L - reach, self.domain.R + reach)

    @property
    def window(self) -> Fraction:
        """The width of the window, in cells."""
        return self.domain.span / (self.s - 1)

    @property
    def stretch(self) -> Fraction:
        """How far the window moves when x moves by one."""
        return self.s / (self.s - 1)

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value from two words: in the window or not, and where."""
        n = len(x)
        words = source.words(2, start, start + n)
        out = np.empty(n, dtype=np.int64)
        undecided = np.empty(n, dtype=np.bool_)
        inside, outside = self.window, self.window * self.s
        line = tuple(
            np.uint64(part)
            for real in (self.stretch, inside, outside)
            for part in divmod(int(real * 2**64), 2**64)
        )
        guard = np.uint64(self.domain.span + 2 * int(outside) + 16)
        centre = np.uint64(word_floor(self._centre))
        if draw_pieces(x - self.domain.L, centre, line, guard, words, out, undecided):
            for i in np.flatnonzero(undecided).tolist():
                out[i] = self._offset(int(x[i]), words[:, i].tolist(), source.further(start + i))
        out += self.domain.L
        return np.clip(out, self.domain.L, self.domain.R) if self.clipped else out

    def exact(self, x: int, words: list[int], source: Bits) -> int:
        """Return the draw that starts with these words, taking as many more bits as it needs."""
        y = self.domain.L + self._offset(x, words, source)
        return self.domain.clamp(y) if self.clipped else y

    def _offset(self, x: int, words: list[int], source: Bits) -> int:
        """Return the cell into which the point falls, counted from L and not clipped."""
        before = (x - self.domain.L) * self.stretch
        in_window = LazyUniform(words[0], source).below(self._centre)
        uniform = LazyUniform(words[1], source)
        bits = 64
        while True:
            value = uniform.to(bits)
            reals = Fraction(value, 1 << bits), Fraction(value + 1, 1 << bits)
            cells = {self._cell(u, before, in_window) for u in reals}
            if len(cells) == 1:
                return cells.pop()
            bits *= 2

    def _cell(self, u: Fraction, before: Fraction, in_window: bool) -> int:
        if in_window:
            point = before + u * self.window
        else:
            along = u * self.window * self.s
            point = along if along < before else along + self.window
        return floor(point - self.window + _HALF)

    def _centre(self, bits: int) -> tuple[int, int]:
        scaled = self.s / (self.s + 1) * (1 << bits)
        return floor(scaled), floor(scaled) + 1

    def exact_mass(self, x: int, y: int) -> Fraction:
        """Return ``P[y | x]``, exactly."""
        outputs = self.outputs
        low = 1 / ((self.s + 1) * self.window * self.s)
        high = low * self.s**2
        span, begin = self.domain.span, (x - self.domain.L) * self.stretch - self.window
        line = -self.window, span + self.window
        left = line[0] if y == outputs.L else Fraction(y - self.domain.L) - _HALF
        right = line[1] if y == outputs.R else Fraction(y - self.domain.L) + _HALF
        left, right = max(left, line[0]), min(right, line[1])
        covered = max(min(right, begin + self.window) - max(left, begin), Fraction(0))
        return low * (right - left) + (high - low) * covered

    def mass(self, x: int) -> FloatArray:
        """Return the masses of all outputs, each rounded to the nearest float."""
        return np.array([float(self.exact_mass(x, int(y))) for y in self.outputs.values()])

    def gain(self, x: int, y: int) -> float:
        """Return the largest log-ratio over the cells at the windows' ends and their neighbours.

        Between those cells, both inputs have constant density, so no other cell can be worse.
        """
        worst = max(
            self.exact_mass(x, cell) / self.exact_mass(y, cell) for cell in self._corners(x, y)
        )
        return float_above(log_ratio(worst.numerator, worst.denominator))

    def _corners(self, x: int, y: int) -> Iterator[int]:
        outputs = self.outputs
        yield from (outputs.L, outputs.R)
        for value in (x, y):
            begin = (value - self.domain.L) * self.stretch - self.window
            for edge in (begin, begin + self.window):
                cell = self.domain.L + floor(edge + _HALF)
                yield from (outputs.clamp(cell + step) for step in (-1, 0, 1))

    def step_loss(self) -> float:
        """Return the largest loss over all neighbours; above 4,096 cells, an upper bound on it.

        Pairs differ only in where a window's end falls inside a cell, so larger grids use the
        density ratio ``2 ln(s)``, which bounds every pair.
        """
        grid = self.domain
        if grid.size <= 4096:
            return max(loss(self, x, x + 1) for x in range(grid.L, grid.R))
        ratio = self.s**2
        return float_above(log_ratio(ratio.numerator, ratio.denominator))
