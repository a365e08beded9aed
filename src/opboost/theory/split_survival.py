"""β, the chance that no desensitised value crosses a split (theorem max_gain)."""

from __future__ import annotations

from typing import Literal

import numpy as np

from opboost._typing import ArrayLike, FloatArray
from opboost.errors import ParameterError
from opboost.mechanisms import Mechanism
from opboost.mechanisms.mechanism import checked_integers


def beta(
    mechanism: Mechanism,
    left: ArrayLike,
    right: ArrayLike,
    kind: Literal["exact", "as_printed"] = "exact",
) -> float:
    """Return the chance that all outputs of ``left`` lie below all outputs of ``right``.

    Let F be the distribution functions of the outputs.  The left maximum is at most v with
    probability ∏ F_l(v), so the result is Σ_v [∏ F_l(v) − ∏ F_l(v−1)] · ∏ (1 − F_r(v)).
    ``"as_printed"`` is the paper's formula.  If several values share a maximum, it counts that
    maximum once for each of them, so it may exceed one.

    Cost: O(cells · (len(left) + len(right))).

    >>> import opboost as op
    >>> m = op.ClampMap(op.Domain(1, 10), epsilon=1.0)
    >>> round(beta(m, [1, 2, 2], [8, 9]), 4)
    0.983
    """
    distribution = _Distributions(mechanism)
    below, above = distribution.of(left), distribution.of(right)
    with np.errstate(divide="ignore"):
        stays_right = np.exp(np.log1p(-np.minimum(above, 1)).sum(axis=0))
    if kind == "exact":
        at_most = np.exp(np.log(np.maximum(below, 1e-300)).sum(axis=0))
        at_most = np.where((below > 0).all(axis=0), at_most, 0.0)
        return float((np.diff(at_most, prepend=0.0) * stays_right).sum())
    if kind != "as_printed":
        raise ParameterError(f"kind must be 'exact' or 'as_printed'; got {kind!r}.")
    total = 0.0
    for k in range(len(below)):
        here = np.diff(below[k], prepend=0.0)
        others = np.delete(below, k, axis=0).prod(axis=0)
        total += float((here * others * stays_right).sum())
    return total


class _Distributions:
    """Distribution functions of a mechanism's outputs, one row per input."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._lower = mechanism.domain.L
        self._cumulative = np.minimum(mechanism.transition_matrix().cumsum(axis=1), 1.0)
        self._cumulative[:, -1] = 1.0

    def of(self, values: ArrayLike) -> FloatArray:
        cells = checked_integers(values).reshape(-1)
        if not cells.size:
            raise ParameterError("Both sides of a split need at least one value.")
        beyond = (cells < self._lower) | (cells >= self._lower + len(self._cumulative))
        if beyond.any():
            raise ParameterError(f"{cells[beyond][0]} lies outside the mechanism's grid.")
        return np.asarray(self._cumulative[cells - self._lower])


def best_gain(
    values: ArrayLike, gradients: ArrayLike, hessians: ArrayLike, reg: float = 1.0
) -> float:
    """Return the largest gain of any split of one feature, by XGBoost's formula without ω.

    Cost: O(n log n).

    >>> best_gain([1, 2, 3, 4], [-1.0, -1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1.0])
    1.3333333333333333
    """
    x = np.asarray(values)
    if not len(x) == len(np.asarray(gradients)) == len(np.asarray(hessians)):
        raise ParameterError("values, gradients and hessians must have the same length.")
    order = np.argsort(x, kind="stable")
    g = np.asarray(gradients, dtype=np.float64)[order].cumsum()
    h = np.asarray(hessians, dtype=np.float64)[order].cumsum()
    cuts = np.flatnonzero(np.diff(x[order]) != 0)
    if not cuts.size:
        return 0.0
    whole_g, whole_h = g[-1], h[-1]
    left_g, left_h = g[cuts], h[cuts]
    score = left_g**2 / (left_h + reg) + (whole_g - left_g) ** 2 / (whole_h - left_h + reg)
    return float(0.5 * (score.max() - whole_g**2 / (whole_h + reg)))
