"""The figures of one mechanism: loss and order by distance, and what a receiver learns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.explorer.log_distributions import log_rows
from opboost.grid import Domain
from opboost.mechanisms import Mechanism
from opboost.metrics.expected_kendall import expected_kendall

MAX_DRAWN_CELLS = 128
"""On grids of up to this many cells, averages are over every value; else over 40 evenly spaced."""

FEW_CELLS = 48
"""On grids of up to this many cells, all pairs at all distances are evaluated, else a selection."""


@dataclass(frozen=True, slots=True)
class DistanceStep:
    """One distance: the largest loss of a pair with a promise, its bound, and the order kept.

    ``loss`` and ``bound`` are None if no pair at this distance has a promise.
    """

    distance: int
    loss: float | None
    bound: float | None
    gamma: float


@dataclass(frozen=True, slots=True)
class Figures:
    """A mechanism on its grid.

    ``moved`` is the mean distance in cells from a value to its output.  ``order`` is the expected
    weighted Kendall correlation of a column that fills the grid evenly.  ``total`` is the largest
    bound of the promise.
    """

    mechanism: Mechanism
    steps: tuple[DistanceStep, ...]
    moved: float
    order: float
    total: float


@lru_cache(maxsize=64)
def figures(mechanism: Mechanism) -> Figures:
    """Return the figures that do not depend on a person's value.

    >>> import opboost as op
    >>> found = figures(op.ClampMap(op.Domain(1, 10), epsilon=0.64))
    >>> round(found.steps[1].loss, 4), round(found.order, 3), round(found.moved, 3)
    (1.28, 0.848, 1.152)
    """
    domain = mechanism.domain
    x = domain.values() if domain.size <= MAX_DRAWN_CELLS else spread(domain.L, domain.R, 40)
    masses = np.exp(log_rows(mechanism, x))
    moved = (masses * np.abs(domain.values() - x[:, None])).sum(axis=1).mean()
    order = expected_kendall(masses, np.ones(len(x), dtype=np.int64))[0]
    steps = tuple(_step(mechanism, int(t)) for t in distances(domain))
    return Figures(mechanism, steps, float(moved), order, mechanism.guarantee().total)


def spread(first: int, last: int, most: int) -> IntArray:
    """Return the cells from first to last, or at most ``most`` of them, evenly spaced."""
    if last - first < most:
        return np.arange(first, last + 1)
    return np.unique(np.linspace(first, last, most).round().astype(np.int64))


def distances(domain: Domain) -> IntArray:
    """Return all distances on a small grid; on a larger grid, a selection that gets sparser."""
    if domain.size <= FEW_CELLS:
        return np.arange(1, domain.size)
    return np.unique(np.geomspace(1, domain.span, 10).round().astype(np.int64))


def starts(mechanism: Mechanism, distance: int) -> IntArray:
    """Return the lower ends of the pairs to evaluate at a distance: all, or a selection."""
    domain = mechanism.domain
    if domain.size <= FEW_CELLS:
        return np.arange(domain.L, domain.R - distance + 1)
    ends = [domain.L, domain.L + 1, domain.R - distance - 1, domain.R - distance]
    borders = [b + by for b in mechanism.landmarks() for by in (-1, -distance, -distance // 2)]
    few = np.unique(np.r_[spread(domain.L, domain.R - distance, 8), ends, borders])
    return few[(few >= domain.L) & (few <= domain.R - distance)].astype(np.int64)


def _step(mechanism: Mechanism, distance: int) -> DistanceStep:
    x = starts(mechanism, distance)
    low, high = log_rows(mechanism, x), log_rows(mechanism, x + distance)
    gamma = (np.exp(low).cumsum(axis=1)[:, :-1] * np.exp(high)[:, 1:]).sum(axis=1).min()
    losses = worst(low, high)
    promised = np.flatnonzero(np.isfinite(losses))
    if not promised.size:
        return DistanceStep(distance, None, None, float(gamma))
    at = promised[np.argmax(losses[promised])]
    bound = mechanism.guarantee().bound(int(x[at]), int(x[at]) + distance)
    return DistanceStep(distance, float(losses[at]), bound, float(gamma))


def worst(one: FloatArray, other: FloatArray) -> FloatArray:
    """Return each row pair's largest log-ratio; infinite if only one row can give an output."""
    with np.errstate(invalid="ignore"):
        gaps = np.abs(one - other)
    gaps[np.isnan(gaps)] = 0.0  # impossible under both
    return np.asarray(gaps.max(axis=1))


@dataclass(frozen=True, slots=True)
class ExamplePerson:
    """What the receiver learns about a person in ``cell``, with a uniform prior over cells.

    ``arrived`` is the likeliest output; if there are several, the one nearest to ``cell``.
    ``belief`` is the posterior given that output, ``interval`` the shortest range of cells that
    holds nine tenths of it.
    """

    cell: int
    sent: FloatArray
    arrived: int
    belief: FloatArray
    interval: tuple[int, int]
    inside: float

    @property
    def chance(self) -> float:
        """The probability of the likeliest output."""
        return float(self.sent.max())


def person(mechanism: Mechanism, cell: int, share: float = 0.9) -> ExamplePerson:
    """Return what the receiver learns about one value.

    >>> import opboost as op
    >>> seen = person(op.ClampMap(op.Domain(1, 10), epsilon=0.64), 5)
    >>> seen.arrived, seen.interval, round(seen.inside, 2)
    (5, (2, 8), 0.94)
    """
    lower, cells = mechanism.domain.L, mechanism.domain.values()
    sent = np.exp(log_rows(mechanism, [cell])[0])
    likeliest = cells[sent >= sent.max() * (1 - 1e-9)]
    arrived = int(likeliest[np.abs(likeliest - cell).argmin()])
    likelihood = np.exp(log_rows(mechanism, cells, [arrived])[:, 0])
    belief = likelihood / likelihood.sum()
    first, last = _shortest(belief, share)
    inside = float(belief[first : last + 1].sum())
    return ExamplePerson(cell, sent, arrived, belief, (lower + first, lower + last), inside)


def _shortest(belief: FloatArray, share: float) -> tuple[int, int]:
    """Return the shortest range of cells that holds the share; of several, the likeliest."""
    sums = np.r_[0.0, belief.cumsum()]
    # For each first cell, find the last cell with which the share is reached.
    ends = np.searchsorted(sums, sums[:-1] + share - 1e-12, side="left")
    best = (math.inf, 0.0, 0, 0)
    for first, end in enumerate(ends.tolist()):
        if end < len(sums):
            found = (end - first, -(sums[end] - sums[first]), first, end - 1)
            best = min(best, found)
    return best[2], best[3]
