"""The weighted Kendall to expect from a mechanism, computed from its exact distribution."""

from __future__ import annotations

import math

import numpy as np

from opboost._typing import FloatArray, IntArray


def expected_kendall(matrix: FloatArray, counts: IntArray) -> tuple[float, float]:
    """Return E⟨r,s⟩ / √(⟨r,r⟩ · E⟨s,s⟩) for a column with ``counts``, and its standard error.

    Rows are drawn independently, so sums over pairs have the variance of their projection on
    single rows (Hoeffding 1948); the delta method gives the error of the quotient.  The terms left
    out are of the order of one over the number of rows.  Cost: O(cells² · outputs).

    >>> from opboost import ClampMap, Domain, GlobalMap
    >>> even = np.full(10, 1000)
    >>> [
    ...     round(expected_kendall(m(Domain(1, 10), e).transition_matrix(), even)[0], 3)
    ...     for e in (0.08, 0.64, 1.28)
    ...     for m in (GlobalMap, ClampMap)
    ... ]
    [0.085, 0.228, 0.582, 0.848, 0.836, 0.961]
    """
    places = counts.cumsum() - (counts + 1) / 2
    apart = places[None, :] - places[:, None]
    pairs = np.triu(apart * counts[:, None] * counts[None, :], 1)
    below = np.hstack([np.zeros((len(matrix), 1)), matrix.cumsum(axis=1)[:, :-1]])
    above = np.clip(1 - below - matrix, 0, 1)
    rises = below @ matrix.T
    own = pairs.sum()
    kept = (pairs * (rises - rises.T)).sum()
    other = (pairs * (1 - matrix @ matrix.T)).sum()
    if not own or not other:
        return math.nan, math.nan
    value = kept / math.sqrt(own * other)
    weight = np.sign(np.subtract.outer(np.arange(len(counts)), np.arange(len(counts))))
    pull = (weight * np.abs(apart) * counts[None, :]) @ (below - above)
    ties = -(np.abs(apart) * counts[None, :]) @ matrix
    line = pull / math.sqrt(own * other) - value / (2 * other) * ties
    mean = (matrix * line).sum(axis=1, keepdims=True)
    variance = (counts * (matrix * (line - mean) ** 2).sum(axis=1)).sum()
    return float(value), float(math.sqrt(variance))
