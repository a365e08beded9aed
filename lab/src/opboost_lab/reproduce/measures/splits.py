"""How often a split survives: β by formula, and best gains in draws."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from opboost._typing import FloatArray, IntArray
from opboost.errors import ParameterError
from opboost.grid import Domain
from opboost.randomness.streams import SeededRng
from opboost.theory import best_gain, beta
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Json


def value_set(shape: str, rows: int, domain: Domain) -> IntArray:
    """Return sorted, evenly spaced quantiles of a shape on the grid, without randomness.

    A normal set has its mean in the middle of the grid, three standard deviations from each end.
    """
    share = (np.arange(rows) + 0.5) / rows
    if shape == "uniform":
        raw = domain.L - 0.5 + share * domain.size
    elif shape == "normal":
        raw = (domain.L + domain.R) / 2 + norm.ppf(share) * domain.size / 6
    else:
        raise ParameterError(f"No set of values is called {shape!r}.")
    return np.clip(np.rint(raw), domain.L, domain.R).astype(np.int64)


def betas(
    method: Json, shape: str, rows: int, grid: list[int], epsilons: list[float], shares: list[float]
) -> Json:
    """Return β, exact and as printed, by the share of values on the left and by ε."""
    domain = Domain(*grid)
    values = value_set(shape, rows, domain)
    found = []
    for share in shares:
        cut = values[int(share * rows) - 1]
        left, right = values[values <= cut], values[values > cut]
        mechanisms = [Method(**method).mechanism(domain, e) for e in epsilons]
        found.append(
            {
                "left": len(left),
                "exact": [beta(m, left, right) for m in mechanisms],
                "as_printed": [beta(m, left, right, "as_printed") for m in mechanisms],
            }
        )
    return found


def gains(
    method: Json, shape: str, rows: int, grid: list[int], epsilons: list[float], draws: int
) -> Json:
    """Return, by ε, how often desensitising leaves the best gain no smaller, and no value crosses.

    A label says whether a value is above the median, inverted for every seventh; gradients are
    those of the logistic loss at the start.
    """
    domain = Domain(*grid)
    values = value_set(shape, rows, domain)
    label = (values > np.median(values)) ^ (np.arange(rows) % 7 == 3)
    gradients, hessians = 0.5 - label.astype(np.float64), np.full(rows, 0.25)
    before = best_gain(values, gradients, hessians)
    cut = _best_cut(values, gradients, hessians, before)
    left, right = values <= cut, values > cut
    found = []
    for epsilon in epsilons:
        mechanism = Method(**method).mechanism(domain, epsilon)
        rng = SeededRng(0).child((method, shape, rows, epsilon))
        noisy = mechanism.sample(np.tile(values, (draws, 1)), rng=rng)
        after = np.array([best_gain(row, gradients, hessians) for row in noisy])
        apart = noisy[:, left].max(axis=1) < noisy[:, right].min(axis=1)
        found.append(
            {
                "no_smaller": float(np.mean(after >= before - 1e-12)),
                "no_crossing": float(np.mean(apart)),
                "mean_ratio": float(after.mean() / before),
                "exact": beta(mechanism, values[left], values[right]),
                "as_printed": beta(mechanism, values[left], values[right], "as_printed"),
            }
        )
    return found


def _best_cut(values: IntArray, gradients: FloatArray, hessians: FloatArray, best: float) -> int:
    """Return the largest value on the left of the split that has the best gain."""
    for cut in np.unique(values)[:-1]:
        side = (values > cut).astype(np.int64)
        if best_gain(side, gradients, hessians) >= best - 1e-12:
            return int(cut)
    raise ParameterError("These values cannot be split.")
