"""Choose the mechanism that best estimates the shares of categories at a given level."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from opboost.grid import Domain
from opboost.grid.ordinal_mapping import checked_categories
from opboost.mechanisms.nominal import NominalMechanism
from opboost.mechanisms.randomized_response import RandomizedResponse
from opboost.mechanisms.subset_selection import SubsetSelection
from opboost.mechanisms.unary_encoding import UnaryEncoding


def best_nominal(
    categories: Iterable[Hashable], epsilon: float
) -> RandomizedResponse | NominalMechanism:
    """Return the mechanism with the smallest variance of estimated shares at ``epsilon``.

    The choice depends only on public parameters: the number of categories and the level.  If a set
    of one category is best, the result is randomised response on the grid 1..K, which sends a
    number instead of K bits.

    >>> best_nominal(range(10), 0.72).subset_size, best_nominal(range(10), 3.0)
    (3, RandomizedResponse(domain=Domain(L=1, R=10), epsilon=3.0))
    """
    names = checked_categories(categories)
    found: tuple[NominalMechanism, ...] = (
        SubsetSelection(names, epsilon),
        UnaryEncoding(names, epsilon, "oue"),
        UnaryEncoding(names, epsilon, "sue"),
    )
    best = min(found, key=lambda m: m.share_variance())
    if isinstance(best, SubsetSelection) and best.subset_size == 1:
        return RandomizedResponse(Domain(1, len(names)), epsilon)
    return best
