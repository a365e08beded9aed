"""Draw a run of cells first, then a cell inside it: Adj-map and Local-map on any grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.distributions.clamped_laplace import ClampedLaplace
from opboost.distributions.distribution import loss
from opboost.distributions.truncated_geometric import draw_within, sum_log_ratio
from opboost.grid import Domain, Partition
from opboost.randomness.exact import Decay, float_above
from opboost.randomness.streams import Source


@dataclass(frozen=True, slots=True)
class CellRuns:
    """``P[y | x] = P[run of y | run of x] · P[y in its run | x clamped to that run]``.

    The run follows the truncated two-sided geometric distribution with decay ``outer``, without
    truncation if the partition has no end.  It stays the same if ``outer`` is None.  Inside a run,
    ``q**|x−y|`` depends on x only through x clamped to the run: the rest cancels.
    """

    partition: Partition
    outer: Decay | None
    inner: Decay
    outputs: Domain

    def draw(self, x: IntArray, source: Source, start: int) -> IntArray:
        """Return one output per value; the words for the run come before those for the cell."""
        index: IntArray = self.partition.indices(x)
        if self.outer is not None:
            if self.partition.domain is None:
                runs = Domain(*(self.partition.index(e) for e in (self.outputs.L, self.outputs.R)))
                index = ClampedLaplace(runs, self.outer).draw(index, source, start)
            else:
                lowest = np.zeros(len(x), dtype=np.int64)
                highest = np.full(len(x), self.partition.count - 1, dtype=np.int64)
                index = draw_within(self.outer, index, lowest, highest, source, start)
        first, last = self.partition.ends(index)
        drawn = draw_within(self.inner, x, first, last, source, start)
        if self.partition.domain is None:
            return np.clip(drawn, self.outputs.L, self.outputs.R)
        return drawn

    def mass(self, x: int) -> FloatArray:
        """Return the product of the two stages, run by run."""
        here = self.partition.index(x)
        runs = self.partition.runs()
        if self.outer is None:
            outer = np.arange(len(runs)) == here
        else:
            rate = float(self.outer.log())
            weights = np.exp(-rate * np.abs(np.arange(len(runs)) - here))
            outer = weights / weights.sum()
        rate = float(self.inner.log())
        cells = np.arange(runs[0][0], runs[-1][1] + 1)
        widths = np.array([last + 1 - first for first, last in runs])
        first, last = (np.repeat([run[k] for run in runs], widths) for k in (0, 1))
        weights = np.exp(-rate * np.abs(cells - np.clip(x, first, last)))
        sums = np.add.reduceat(weights, widths.cumsum() - widths)
        return np.asarray(np.repeat(outer / sums, widths) * weights)

    def gain(self, x: int, y: int) -> float:
        """Return the largest log-ratio over the runs of both values and the runs next to them.

        No other run can be worse, except in an uneven partition: there, all runs in between count.
        """
        here, there = self.partition.index(x), self.partition.index(y)
        if self.outer is None and here != there:
            return math.inf
        if self.outer is None:
            runs = {here}
        else:
            low, high = min(here, there), max(here, there)
            runs = {low, high, min(low + 1, high), max(high - 1, low)}
            if not isinstance(self.partition.theta, int):
                runs |= set(range(low, high + 1))
        return float_above(max(self._log_ratio(run, x, y) for run in runs))

    def _log_ratio(self, run: int, x: int, y: int) -> Fraction:
        """Return the worst log-ratio of ``x`` over ``y`` for outputs in ``run``, rounded up."""
        ends = self.partition.run(run)
        a, b = (min(max(v, ends[0]), ends[1]) for v in (x, y))
        inside = self.inner.log() * abs(a - b) + sum_log_ratio(self.inner, ends, b, a)
        if self.outer is None:
            return inside
        m, n = self.partition.index(x), self.partition.index(y)
        steps = abs(n - run) - abs(m - run)
        # ln(1/q) is rounded up; with a minus sign it must be rounded down.
        between = self.outer.log() * steps if steps >= 0 else -(self.outer.log_below() * -steps)
        if self.partition.domain is None:
            return inside + between
        return inside + between + sum_log_ratio(self.outer, (0, self.partition.count - 1), n, m)

    def step_loss(self) -> float:
        """Return the largest loss of neighbours inside a run of each width and across a border."""
        if self.outer is None and self.partition.domain is not None and self.partition.count > 1:
            return math.inf
        losses = [0.0]
        for first, last in self._distinct_runs():
            if last > first:
                losses.append(loss(self, first, first + 1))
        if self.partition.domain is None:
            assert isinstance(self.partition.theta, int)
            losses.append(loss(self, self.partition.theta - 1, self.partition.theta))
        elif self.partition.count > 1:
            border = self.partition.run(1)[0]
            losses.append(loss(self, border - 1, border))
        return max(losses)

    def _distinct_runs(self) -> list[tuple[int, int]]:
        if self.partition.domain is None:
            return [self.partition.run(0)]
        if isinstance(self.partition.theta, int):
            return [self.partition.run(0), self.partition.run(self.partition.count - 1)]
        return self.partition.runs()
