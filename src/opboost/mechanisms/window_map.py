"""Window-map: a window around the value at full weight, a slope, and a floor everywhere else."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from opboost._typing import FloatArray
from opboost.distributions import (
    Distribution,
    IntegerTable,
    KeepOrRedraw,
    Window,
    rounded_rows,
)
from opboost.distributions.window import FLOOR_BITS
from opboost.errors import ParameterError
from opboost.grid import Domain, checked_domain
from opboost.mechanisms.integer_weights import Rows, scale_bits
from opboost.mechanisms.mechanism import MAX_TABLE_BITS, MAX_TABLE_CELLS, Mechanism
from opboost.promises import LDP, CappedDLDP, checked_epsilon
from opboost.randomness.exact import Decay

MAX_REACH_CELLS = 2**15 - 1
"""The number of cells that a window may reach beyond the grid: an offset has 16 bits."""

_MAX_CELLS_TRIED = 512
"""On a larger grid, the width for a grid of this size is scaled up."""


@dataclass(frozen=True, slots=True)
class WindowMap(Mechanism):
    """``P[o | x]`` proportional to ``exp(−min(near · max(|x − o| − width, 0), total))``.

    Two cells at distance d differ in log-probability by at most ``min(near · d, total)``.
    ``near=None`` is plain LDP at ``total``: every pair is protected alike.  Outputs reach beyond
    both ends of the grid, so that every value has its whole window and all rows have the same sum.
    ``clipped`` moves outputs beyond the grid to its nearest end, which is post-processing.
    Denoising works better on unclipped outputs.

    ``width=None`` chooses the width whose outputs carry the most information about a uniform
    column.  It depends only on the number of cells, ``total`` and ``near``.

    With ``near >= total`` and a width above zero this is the square wave mechanism (Li et al.,
    SIGMOD 2020) on a grid; with width zero it is randomised response.

    Cost: one word per value up to 256 cells, two beyond.  Proof: docs/proofs/window-map.md.

    >>> m = WindowMap(Domain(0, 15), total=4.0)
    >>> m.window, m.guarantee().total, m.exact_epsilon() <= 4.0
    (0, 4.0, True)
    >>> WindowMap(Domain(0, 15), total=1.0, clipped=False).outputs
    Domain(L=-2, R=17)
    """

    domain: Domain
    total: float
    near: float | None = None
    width: int | None = None
    clipped: bool = True

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        object.__setattr__(self, "total", checked_epsilon("total", self.total))
        if self.near is not None:
            near = checked_epsilon("near", self.near)
            if near > self.total:
                raise ParameterError(
                    f"near must not exceed total, which is {self.total:g}; got {self.near!r}. "
                    "Leave near out for plain LDP."
                )
            object.__setattr__(self, "near", near)
        if self.width is not None and not (
            isinstance(self.width, int | np.integer)
            and not isinstance(self.width, bool)
            and 0 <= self.width < self.domain.size
        ):
            raise ParameterError(
                f"width must be a whole number of cells from 0 to {self.domain.span}; "
                f"got {self.width!r}. Leave it out to let OpBoost choose it."
            )
        if self.reach > MAX_REACH_CELLS:
            raise ParameterError(
                f"The window of {self.domain.size} cells at total={self.total:g} reaches "
                f"{self.reach} cells beyond the grid, above the limit of {MAX_REACH_CELLS}. "
                "Use a coarser grid or a larger near."
            )

    @property
    def slope(self) -> float:
        """The level per cell on the slope of the window: ``near``, or ``total``."""
        return self.total if self.near is None else self.near

    @property
    def window(self) -> int:
        """How many cells on either side of the value have the full weight."""
        if self.width is not None:
            return int(self.width)
        return best_width(self.domain.size, self.total, self.slope)

    @property
    def steps(self) -> int:
        """The distance from the window at which the floor begins: ``⌈total / near⌉``."""
        return math.ceil(Fraction(self.total) / Fraction(self.slope))

    @property
    def reach(self) -> int:
        """How many cells an output may lie beyond the grid."""
        return self.window + self.steps - 1

    @property
    def outputs(self) -> Domain:
        """The grid; without clipping, with ``reach`` more cells on either side."""
        beyond = 0 if self.clipped else self.reach
        return Domain(self.domain.L - beyond, self.domain.R + beyond)

    def guarantee(self) -> LDP | CappedDLDP:
        """Return total-LDP, or the bound ``min(near · distance, total)``."""
        if self.near is None or self.near >= self.total:
            return LDP(self.total)
        return CappedDLDP(self.near, self.total, self.domain)

    def nominal_epsilon(self) -> float:
        """Return the total, which is also the level of a nominal column."""
        return self.total

    def on(self, domain: Domain) -> WindowMap:
        """Return the same levels on another grid."""
        return replace(self, domain=domain)

    def scaled(self, factor: float) -> WindowMap:
        """Return the same mechanism with both levels multiplied by ``factor``."""
        near = None if self.near is None else self.near * factor
        return replace(self, total=self.total * factor, near=near)

    def profile(self) -> tuple[list[int], int]:
        """Return the weights by distance up to ``reach``, and the floor, as integers on one scale.

        No weight falls faster than the promise allows: each rate is lowered by ``SLACK``, and the
        floor is the decay of one step of ``total``.
        """
        bits = scale_bits(self.total, 1)
        slope = Decay.of_rate(Fraction(self.slope))
        floor = Decay.of_rate(Fraction(self.total)).power(1, bits)[1]
        falling = [max(slope.power(d, bits)[0], floor) for d in range(self.steps)]
        return [falling[0]] * self.window + falling, floor

    def _build_distribution(self) -> Distribution:
        profile, floor = self.profile()
        outputs = self.domain.size + 2 * self.reach
        bits = self.total * 1.4427 + 192
        if (
            self.domain.size <= MAX_TABLE_CELLS
            and self.domain.size * outputs * bits <= MAX_TABLE_BITS
        ):
            return self._table(profile, floor)
        return self._closed_form(profile, floor)

    def _table(self, profile: list[int], floor: int) -> IntegerTable:
        rows = self.weight_rows(profile, floor)
        weights, bits = rounded_rows(rows, *table_bits(self))
        return IntegerTable(self.domain, self.outputs, weights, bits)

    def weight_rows(self, profile: list[int], floor: int) -> Rows:
        """Return the weights of all outputs, one row per cell; clipping sums the flanks."""
        cells, reach = self.domain.size, self.reach
        rows = []
        for x in range(cells):
            distances = (abs(x - o) for o in range(-reach, cells + reach))
            row = [profile[d] if d <= reach else floor for d in distances]
            if self.clipped and reach:
                row = [
                    sum(row[: reach + 1]),
                    *row[reach + 1 : -reach - 1],
                    sum(row[-reach - 1 :]),
                ]
            rows.append(row)
        return rows

    def _closed_form(self, profile: list[int], floor: int) -> Distribution:
        if not self.reach:
            return KeepOrRedraw(self.domain, Fraction(profile[0], floor))
        excess = [weight - floor for weight in profile]
        row = [*excess[:0:-1], *excess]
        (weights,), bits = rounded_rows([row], *table_bits(self))
        reach = self.reach
        outputs = self.domain.size + 2 * reach
        # A grid has at least two cells, so the table of offsets has two equal rows.
        offsets = IntegerTable(Domain(0, 1), Domain(-reach, reach), (weights, weights), bits)
        share = Fraction(floor * outputs, floor * outputs + sum(row))
        # Rounded up: a larger floor only lowers the loss.
        floor_weight = math.ceil(share * (1 << FLOOR_BITS))
        return Window(self.domain, floor_weight, offsets, self.clipped)


def table_bits(m: WindowMap) -> tuple[int, int]:
    """Return how many bits the smallest weight and the sum of a row must have at least.

    As in :func:`opboost.mechanisms.integer_weights.table`.
    """
    guard = 64 + 40 + 24 + max(0, math.ceil(-math.log2(m.slope)))
    return guard, math.ceil(m.total * 1.4427) + 64


@lru_cache(maxsize=4096)
def best_width(cells: int, total: float, near: float) -> int:
    """Return the width with the largest mutual information for a uniform column.

    >>> [best_width(16, total, total) for total in (1.0, 2.0, 4.0)]
    [2, 1, 0]
    >>> [best_width(32, total, total) for total in (1.0, 2.0, 4.0)]
    [5, 3, 1]
    """
    if cells > _MAX_CELLS_TRIED:
        scale = cells / _MAX_CELLS_TRIED
        return round(best_width(_MAX_CELLS_TRIED, total, min(near * scale, total)) * scale)
    information = [mutual_information(cells, total, near, w) for w in range((cells + 1) // 2)]
    return int(np.argmax(information))


def mutual_information(cells: int, total: float, near: float, width: int) -> float:
    """Return the information of one output about a uniform column, in nats."""
    steps = math.ceil(total / near)
    distance = np.arange(width + steps)
    falling = np.exp(-np.minimum(near * np.maximum(distance - width, 0), total)) - math.exp(-total)
    excess = np.concatenate([falling[:0:-1], falling])
    outputs = cells + 2 * (width + steps - 1)
    floor = np.full(outputs, math.exp(-total))
    whole = floor.sum() + excess.sum()
    column = (np.convolve(np.full(cells, 1 / cells), excess) + floor) / whole
    row = floor / whole
    row[: len(excess)] += excess / whole
    return _entropy(column) - _entropy(row)


def _entropy(p: FloatArray) -> float:
    return float(-(p * np.log(p)).sum())
