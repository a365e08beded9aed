"""The chance that two values at a distance keep their order: exact, and counted in draws."""

from __future__ import annotations

import numpy as np

from opboost.grid import Domain
from opboost.randomness.streams import SeededRng
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json


def gammas(
    method: Json, factor: float, grid: list[int], epsilon: float, drawn: list[int], pairs: int
) -> Json:
    """Return the chance by distance 1, 2, …: mean and minimum of all pairs; shares of drawn pairs.

    ``factor`` multiplies ε (the paper gives randomised response θε besides ε).
    """
    domain = Domain(*grid)
    mechanism = Method(**method).mechanism(domain, epsilon * factor)
    matrix = mechanism.transition_matrix()
    below = np.hstack([np.zeros((len(matrix), 1)), matrix.cumsum(axis=1)[:, :-1]])
    rises = below @ matrix.T
    found = [np.diag(rises, t) for t in range(1, domain.size)]
    counted = []
    for t in drawn:
        rng = SeededRng(0).child((method, factor, t))
        x = domain.L + np.arange(pairs) % (domain.size - t)
        low, high = (mechanism.sample(v, rng=rng.child(k)) for k, v in enumerate((x, x + t)))
        counted.append(float(np.mean(high > low)))
    return {
        "mean": [float(d.mean()) for d in found],
        "minimum": [float(d.min()) for d in found],
        "drawn": counted,
    }
