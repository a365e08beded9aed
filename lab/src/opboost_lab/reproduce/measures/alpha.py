"""Which of two ratios α keeps more order, and at which ε this changes."""

from __future__ import annotations

import math

import numpy as np

from opboost.grid import Domain
from opboost.metrics.expected_kendall import expected_kendall
from opboost_lab.reproduce.columns import column
from opboost_lab.reproduce.methods import Level, Method
from opboost_lab.reproduce.task import Json

LOW, HIGH = 0.01, 20.48
STEPS = 12
"""Halvings of a bracket of ratio two: the crossing is known to 0.02 %."""


def orders(
    values: str,
    grid: list[int],
    rows: int,
    theta: int,
    alphas: list[float],
    at: Level,
    epsilons: list[float],
) -> Json:
    """Return expected weighted Kendall by ε and α, and where the least α overtakes the largest."""
    found = _Expected(values, Domain(*grid), rows, theta, at)
    table = [[found.kendall(a, e) for a in alphas] for e in epsilons]
    return {"table": table, "crossings": found.crossings(min(alphas), max(alphas))}


class _Expected:
    def __init__(self, values: str, domain: Domain, rows: int, theta: int, at: Level) -> None:
        x = column(values, domain.L, domain.R, rows)
        self._counts = np.bincount(x - domain.L, minlength=domain.size)
        self._domain, self._theta, self._at = domain, theta, at

    def kendall(self, alpha: float, epsilon: float) -> float:
        method = Method("Adj-map", theta=self._theta, alpha=alpha, at=self._at)
        matrix = method.mechanism(self._domain, epsilon).transition_matrix()
        return expected_kendall(matrix, self._counts)[0]

    def crossings(self, small: float, large: float) -> list[float]:
        """Return every ε in the range at which the sign of the difference changes."""

        def ahead(epsilon: float) -> float:
            return self.kendall(small, epsilon) - self.kendall(large, epsilon)

        levels = [LOW * 2**k for k in range(round(math.log2(HIGH / LOW)) + 1)]
        signs = [ahead(e) > 0 for e in levels]
        found = []
        for k in range(len(levels) - 1):
            if signs[k] == signs[k + 1]:
                continue
            low, high = levels[k], levels[k + 1]
            for _ in range(STEPS):
                middle = math.sqrt(low * high)
                low, high = (middle, high) if (ahead(middle) > 0) == signs[k] else (low, middle)
            found.append(math.sqrt(low * high))
        return found
