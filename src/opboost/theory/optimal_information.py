"""The most that any mechanism under a promise can reveal about a column, by linear programming."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.optimize import linprog

from opboost._typing import ArrayLike, IntArray
from opboost.errors import OpBoostError, ParameterError
from opboost.theory.optimal_mechanism import checked_prior

MAX_RAYS = 200_000
"""The largest number of rays in one program: 16 cells under plain LDP, ten otherwise."""


def mutual_information(matrix: ArrayLike, prior: ArrayLike | None = None) -> float:
    """Return the information of one output about a value from ``prior`` (default uniform), in nats.

    >>> from opboost import Domain, RandomizedResponse
    >>> m = RandomizedResponse(Domain(1, 4), epsilon=2.0)
    >>> round(mutual_information(m.transition_matrix()), 4)
    0.468
    """
    try:
        rows = np.asarray(matrix, dtype=np.float64)
    except (TypeError, ValueError):
        rows = np.empty(0)
    if rows.ndim != 2 or not rows.size or (rows < 0).any():
        raise ParameterError(
            "mutual_information takes a matrix of probabilities, one row per cell, such as "
            "mechanism.transition_matrix()."
        )
    weights = checked_prior(prior, len(rows))
    column = weights @ rows
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(rows > 0, np.log(rows / column), 0.0)
    return float(weights @ (rows * logs).sum(axis=1))


def optimal_information(
    cells: int, total: float, near: float | None = None, prior: ArrayLike | None = None
) -> float:
    """Return the largest mutual information at a loss of at most ``min(near · d, total)``.

    Mutual information is convex in the mechanism, so the best one is a sum of extreme rays of the
    promise (Kairouz, Oh and Viswanath, arXiv 1407.1338): outputs with probabilities proportional to
    ``exp(near · f(x))`` for an integer f that changes by at most one from cell to cell and by at
    most ``total / near`` in all.  ``near=None`` is plain LDP.  Cost: a linear program with one
    variable per ray; up to 16 cells under plain LDP, about ten cells otherwise.

    >>> from opboost import ClampMap, Domain
    >>> best = optimal_information(6, total=2.5, near=0.5)
    >>> clamp = mutual_information(ClampMap(Domain(1, 6), epsilon=0.5).transition_matrix())
    >>> round(best, 4) == round(clamp, 4)
    True
    """
    if not isinstance(cells, int | np.integer) or cells < 2 or not 0 < total < math.inf:
        raise ParameterError(
            "optimal_information needs a whole number of cells, two or more, and a positive, "
            f"finite total; got {cells!r} cells and total={total!r}."
        )
    step = total if near is None else near
    steps = round(total / step) if step > 0 else 0
    if steps < 1 or not math.isclose(steps * step, total, rel_tol=1e-9):
        raise ParameterError(f"total must be a whole multiple of near={near!r}; got {total!r}.")
    rays = np.exp(step * _rays(cells, steps, plain=near is None).astype(np.float64))
    weights = checked_prior(prior, cells)
    mean = rays @ weights
    information = (rays * np.log(rays / mean[:, None])) @ weights
    found = linprog(-information, A_eq=rays.T, b_eq=np.ones(cells), method="highs")
    if not found.success:
        raise OpBoostError(f"The linear program was not solved: {found.message}")
    return float(-found.fun)


def _rays(cells: int, steps: int, *, plain: bool) -> IntArray:
    """Return the exponents of all extreme rays, each with a minimum of zero."""
    count = 2**cells if plain else 3 ** (cells - 1)
    if count > MAX_RAYS:
        raise ParameterError(
            f"optimal_information would need {count:,} extreme rays for {cells} cells, above the "
            f"limit of {MAX_RAYS:,}. Use fewer cells."
        )
    if plain:
        return np.array(list(product((0, 1), repeat=cells)), dtype=np.int64)[:-1]
    moves = np.array(list(product((-1, 0, 1), repeat=cells - 1)), dtype=np.int64)
    paths = np.hstack([np.zeros((len(moves), 1), dtype=np.int64), moves.cumsum(axis=1)])
    paths -= paths.min(axis=1, keepdims=True)
    return np.asarray(paths[paths.max(axis=1) <= steps])
