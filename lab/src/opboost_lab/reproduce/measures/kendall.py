"""Weighted Kendall of a desensitised column: measured, and expected from the distribution."""

from __future__ import annotations

import math

import numpy as np

from opboost.grid import Domain
from opboost.mechanisms import Piecewise
from opboost.metrics import expected_kendall, weighted_kendall
from opboost.randomness.streams import SeededRng
from opboost_lab.reproduce.columns import column
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json


def kendall(
    method: Json, values: str, grid: list[int], rows: int, epsilons: list[float], seeds: list[int]
) -> Json:
    """Return, by ε, the value measured with each seed, the expectation, and one draw's error."""
    domain = Domain(*grid)
    x = column(values, domain.L, domain.R, rows)
    counts = np.bincount(x - domain.L, minlength=domain.size)
    found = []
    for epsilon in epsilons:
        mechanism = Method(**method).mechanism(domain, epsilon)
        expected, error = expected_kendall(mechanism.transition_matrix(), counts)
        exact = mechanism.exact_epsilon()
        line = {
            "expected": expected,
            "error": error,
            "exact": exact if math.isfinite(exact) else None,
            "measured": [
                weighted_kendall(x, mechanism.sample(x, rng=SeededRng(s).child(method)))
                for s in seeds
            ],
        }
        if isinstance(mechanism, Piecewise):
            loose = Piecewise(domain, mechanism.epsilon, clipped=False)
            line["unclipped"] = expected_kendall(loose.transition_matrix(), counts)[0]
        found.append(line)
    return found
