"""γ(t), the chance that two values at distance t keep their order.

Formulas have the names of the paper's theorems; docs/errata.md lists their errors.
"""

from __future__ import annotations

from opboost._typing import FloatArray


def exact_gamma(matrix: FloatArray, distance: int) -> float:
    """Return the smallest P[out(x + t) > out(x)] over all pairs at this distance.

    Cost: O(cells²).
    """
    below = matrix.cumsum(axis=1)[:, :-1]
    upper, lower = matrix[distance:, 1:], below[: len(matrix) - distance]
    return float((upper * lower).sum(axis=1).min())


def two_sided_bound(q: float, distance: int, cells: int) -> float:
    """Return theorem baseuti's lower bound on γ for two-sided noise of decay q on ``cells`` cells.

    It is vacuous (even negative) on small grids.
    """
    share = (1 - q * q) * distance + 1
    return 1 - share / ((1 + q - q ** (distance + 1) - q ** (cells - distance)) * (1 + q)) * (
        q**distance
    )


def two_sided_printed(q: float, runs_apart: int) -> float:
    """Return theorem randmaputi as the paper's table evaluates it: without the term q**(k−T).

    It keeps the term (1−q)²(T+1)/(2(1+q)²), so it is not a lower bound.
    """
    share = ((1 - q * q) * runs_apart + 1) / ((1 + q - q ** (runs_apart + 1)) * (1 + q))
    ties = (1 - q) ** 2 * (runs_apart + 1) / (2 * (1 + q) ** 2)
    return 1 - q**runs_apart * (share - ties)


def randomized_response_gamma(ratio: float, distance: int, cells: int) -> float:
    """Return theorem ldputi's γ: it is exact, and the same for every pair at this distance."""
    high, low = ratio / (cells + ratio - 1), 1 / (cells + ratio - 1)
    return (
        high * high
        + high * low * (cells - 3)
        + low * low * (cells * (cells - 3) / 2 + 2)
        + low * (high - low) * distance
    )
