"""Mechanisms at the same exact level: find the factor that scales each one to the same loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from opboost._typing import IntArray
from opboost.explorer.log_distributions import log_rows
from opboost.explorer.mechanism_figures import spread, worst
from opboost.mechanisms import LocalMap, Mechanism, Piecewise, WindowMap

Measure = Literal["cell", "whole"]
"""Which loss to equalise: the worst between neighbouring cells, or between the grid's two ends."""

MAX_LEVEL = 300.0
"""The highest level that the search tries."""


@lru_cache(maxsize=256)
def level(mechanism: Mechanism, measure: Measure) -> float:
    """Return the exact loss to ten digits; for Local-map, only between values in one run.

    >>> import opboost as op
    >>> m = op.GlobalMap(op.Domain(1, 10), epsilon=0.64)
    >>> round(level(m, "cell"), 6) == round(m.exact_epsilon(), 6)
    True
    """
    if measure == "cell":
        x = _neighbours(mechanism)
        losses = worst(log_rows(mechanism, x), log_rows(mechanism, x + 1))
        return float(losses[np.isfinite(losses)].max(initial=0.0))
    ends = mechanism.domain.L, mechanism.domain.R
    if isinstance(mechanism, LocalMap):
        widest = max(mechanism.partition.runs(), key=lambda run: run[1] - run[0])
        ends = widest
    one, other = log_rows(mechanism, np.array(ends))
    return float(worst(one[None], other[None])[0])


def _neighbours(mechanism: Mechanism) -> IntArray:
    """Return the lower cells of some pairs of neighbours, among which is the worst.

    They are at the ends, at the borders of runs, and spread evenly in between.
    """
    domain = mechanism.domain
    most = 24 if isinstance(mechanism, Piecewise) else 8
    borders = np.array([b + by for b in mechanism.landmarks() for by in (-2, -1, 0)], np.int64)
    found = np.unique(np.r_[spread(domain.L, domain.R, most), domain.R - 1, borders])
    return found[(found >= domain.L) & (found < domain.R)]


def matched(mechanism: Mechanism, goal: float, measure: Measure) -> Mechanism | None:
    """Return the mechanism scaled until its exact loss is ``goal``; None if no level reaches it.

    >>> import opboost as op
    >>> m = matched(op.GlobalMap(op.Domain(1, 10), epsilon=0.64), 0.64, "cell")
    >>> round(m.epsilon, 3), round(m.exact_epsilon(), 4)
    (0.875, 0.64)
    """
    if isinstance(mechanism, WindowMap) and mechanism.width is None:
        # A width that changed with the level would make the loss jump.
        mechanism = replace(mechanism, width=replace(mechanism, total=_bounded(goal)).window)
    largest = max(_levels(mechanism))
    if not 0 < goal < math.inf or level(mechanism, measure) == 0:
        return None
    gap: Callable[[float], float] = lambda log_factor: (  # noqa: E731
        math.log(level(mechanism.scaled(math.exp(log_factor)), measure)) - math.log(goal)
    )
    low, high = math.log(1e-3), math.log(MAX_LEVEL / largest)
    guess = math.log(goal / level(mechanism, measure))
    for begin, end in ((guess - 0.7, guess + 0.7), (low, high)):
        begin, end = max(begin, low), min(end, high)
        if begin < end and gap(begin) <= 0 <= gap(end):
            return mechanism.scaled(math.exp(brentq(gap, begin, end, xtol=1e-8)))
    return None


def _levels(mechanism: Mechanism) -> list[float]:
    names = ("epsilon", "eps_prt", "eps_ner", "total")
    return [float(getattr(mechanism, name)) for name in names if hasattr(mechanism, name)]


def _bounded(goal: float) -> float:
    return min(max(goal, 1e-3), MAX_LEVEL)
