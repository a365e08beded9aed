"""The best possible mechanism, by linear programming, and Clamp-map with the best remap."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import coo_array, vstack

from opboost._typing import ArrayLike, FloatArray, IntArray
from opboost.errors import OpBoostError, ParameterError
from opboost.grid import Domain
from opboost.mechanisms import ClampMap, GlobalMap

MAX_LP_CELLS = 64
"""The largest grid for the linear program, which has k² variables and 2k² constraints."""


@dataclass(frozen=True, slots=True)
class OptimalLoss:
    """Expected losses of epsilon-dLDP mechanisms under one prior.

    ``program`` is the least loss of any mechanism.  ``remapped`` is the loss of Clamp-map with
    each output moved to its best value; the two are equal (Ghosh, Roughgarden, Sundararajan, arXiv
    0811.2841).
    """

    program: float
    remapped: float
    clamp: float
    global_map: float


def optimal_loss(
    domain: Domain,
    epsilon: float,
    prior: ArrayLike | None = None,
    loss: Callable[[FloatArray], FloatArray] = np.abs,
) -> OptimalLoss:
    """Return the smallest expected ``loss(x − y)`` at a level, for a prior over the cells.

    The theorem covers losses that increase with the distance, such as ``np.abs`` or ``np.square``.

    >>> best = optimal_loss(Domain(1, 8), epsilon=0.5)
    >>> round(best.program, 4) == round(best.remapped, 4) <= round(best.clamp, 4)
    True
    """
    k = domain.size
    if k > MAX_LP_CELLS:
        raise ParameterError(f"optimal_loss solves grids up to {MAX_LP_CELLS} cells; got {k}.")
    weights = checked_prior(prior, k)
    cells = np.arange(k, dtype=np.float64)
    cost = np.asarray(loss(cells[:, None] - cells[None, :]), dtype=np.float64)
    clamp = ClampMap(domain, epsilon).transition_matrix()
    of_global = GlobalMap(domain, epsilon).transition_matrix()
    return OptimalLoss(
        _program(epsilon, weights, cost),
        # The best value for output o is the r that minimises Σ_x prior(x) P[o | x] cost(x, r).
        float((clamp.T @ (weights[:, None] * cost)).min(axis=1).sum()),
        float((weights[:, None] * clamp * cost).sum()),
        float((weights[:, None] * of_global * cost).sum()),
    )


def checked_prior(prior: ArrayLike | None, cells: int) -> FloatArray:
    """Return the weights of all cells, summing to one; uniform if none are given."""
    if prior is None:
        return np.full(cells, 1 / cells)
    weights = np.asarray(prior, dtype=np.float64)
    if weights.shape != (cells,) or (weights < 0).any() or not weights.sum() > 0:
        raise ParameterError(f"prior must be {cells} weights that are not negative; got {prior!r}.")
    return np.asarray(weights / weights.sum())


def _program(epsilon: float, prior: FloatArray, cost: FloatArray) -> float:
    """Minimise Σ prior·P·cost over all P whose neighbouring rows differ by at most e**epsilon."""
    k = len(prior)
    index = np.arange(k * k).reshape(k, k)
    upper, lower = index[:-1].ravel(), index[1:].ravel()
    n, ones = len(upper), np.ones(len(upper))
    rows = np.arange(n)

    def at_most(a: IntArray, b: IntArray) -> coo_array:
        """Return P[a] <= e**epsilon · P[b] as constraints, scaled to avoid large coefficients."""
        factors = np.r_[ones * np.exp(-epsilon), -ones]
        return coo_array((factors, (np.r_[rows, rows], np.r_[a, b])), shape=(n, k * k))

    whole = coo_array(
        (np.ones(k * k), (np.repeat(np.arange(k), k), np.arange(k * k))), shape=(k, k * k)
    )
    solved = linprog(
        (prior[:, None] * cost).ravel(),
        A_ub=vstack([at_most(upper, lower), at_most(lower, upper)]),
        b_ub=np.zeros(2 * n),
        A_eq=whole,
        b_eq=np.ones(k),
        method="highs",
    )
    if not solved.success:
        raise OpBoostError(f"The linear program was not solved: {solved.message}")
    return float(solved.fun)
