"""Lower bounds on a loss from counts: the most revealing event, and its exact confidence bound."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import betainccinv, betaincinv

from opboost._typing import BoolArray, FloatArray, IntArray

Counts = tuple[IntArray, IntArray]
"""How often each outcome was drawn from x, and from y."""


def proportion_below(count: int, n: int, risk: float) -> float:
    """Return a lower bound on a chance that fails with probability ``risk`` (Clopper-Pearson).

    >>> proportion_below(0, 100, 0.05), round(proportion_below(50, 100, 0.05), 4)
    (0.0, 0.4136)
    """
    return 0.0 if count == 0 else float(betaincinv(count, n - count + 1, risk))


def proportion_above(count: int, n: int, risk: float) -> float:
    """Return an upper bound on a chance that fails with probability ``risk`` (Clopper-Pearson).

    >>> proportion_above(100, 100, 0.05), round(proportion_above(0, 100, 0.05), 4)
    (1.0, 0.0295)
    """
    return 1.0 if count == n else float(betainccinv(count + 1, n - count, risk))


def loss_below(count_x: int, n_x: int, count_y: int, n_y: int, risk: float) -> float:
    """Return a lower bound on ``ln P[E | x] − ln P[E | y]`` that fails with probability ``risk``.

    Each proportion gets half of the risk, so the two need not be independent.
    """
    low = proportion_below(count_x, n_x, risk / 2)
    if low == 0.0:
        return 0.0
    return max(0.0, math.log(low) - math.log(proportion_above(count_y, n_y, risk / 2)))


def most_revealing_event(ranking: Counts, choosing: Counts, grown: float, risk: float) -> BoolArray:
    """Return the outcomes that favour x over y most, by counts of a first part of the samples.

    The candidates are single outcomes, everything up to or from an outcome, and the outcomes with
    the largest ratios in ``ranking`` together.  ``choosing``, which is independent of the ranking,
    decides between them.  The bound will use ``grown`` times as many samples.
    """
    quantile = math.sqrt(2 * math.log(2 / risk))
    rising = np.arange(len(ranking[0]))
    best: tuple[float, IntArray] = (-math.inf, rising[:0])
    for order, single in (
        (rising, True),
        (rising[::-1], False),
        (_by_ratio(ranking, 0.5), False),
        (_by_ratio(ranking, quantile), False),
    ):
        a, b = (np.asarray(c[order] * grown, dtype=np.float64) for c in choosing)
        alone = _score(a, b, quantile, grown)
        together = _score(np.cumsum(a), np.cumsum(b), quantile, grown)
        if single and alone.max() > best[0]:
            best = (float(alone.max()), order[[int(alone.argmax())]])
        if together.max() > best[0]:
            best = (float(together.max()), order[: int(together.argmax()) + 1])
    event = np.zeros(len(rising), dtype=np.bool_)
    event[best[1]] = True
    return event


def _by_ratio(counts: Counts, prior: float) -> IntArray:
    """Return outcomes by decreasing ratio; the prior moves rare outcomes to the back."""
    ratio = (counts[0] + prior) / (counts[1] + prior)
    return np.argsort(-ratio, kind="stable")


def _score(a: FloatArray, b: FloatArray, quantile: float, grown: float) -> FloatArray:
    """Return roughly the result of ``loss_below`` for counts like these.

    The counts are extrapolated by the factor ``grown``.  Each is then moved by one standard error
    against the event, so that an outcome that was frequent by chance does not look revealing.
    """
    low = np.maximum(a - quantile * np.sqrt(a) - np.sqrt(grown * a), 1e-300)
    high = b + quantile * np.sqrt(b) + quantile**2 / 2 + np.sqrt(grown * np.maximum(b, grown))
    return np.asarray(np.log(low) - np.log(high), dtype=np.float64)
