"""Log-probabilities of the mechanisms, many rows at once: equal to the exact ones to ten digits.

``Mechanism.transition_matrix`` computes the distribution that is sampled, in exact arithmetic,
which takes seconds on a grid of a few hundred cells.  A page that redraws while a value is typed
has a tenth of a second, and shows four digits.
"""

from __future__ import annotations

import math
from functools import singledispatch

import numpy as np

from opboost._typing import ArrayLike, FloatArray, IntArray
from opboost.grid import Partition
from opboost.mechanisms import (
    AdjMap,
    ClampMap,
    GlobalMap,
    LocalMap,
    Mechanism,
    Piecewise,
    RandomizedResponse,
    WindowMap,
)


def log_rows(mechanism: Mechanism, x: ArrayLike, y: ArrayLike | None = None) -> FloatArray:
    """Return the matrix of ``ln P[y_j | x_i]``; by default y is every cell of the grid.

    Cost: O(len(x) · len(y)).

    >>> import opboost as op
    >>> m = op.ClampMap(op.Domain(1, 4), epsilon=1.0)
    >>> np.exp(log_rows(m, [2])).round(4).tolist() == m.transition_matrix()[1:2].round(4).tolist()
    True
    """
    cells = mechanism.domain.values() if y is None else np.asarray(y, dtype=np.int64)
    return _log_rows(mechanism, np.asarray(x, dtype=np.int64)[:, None], cells[None, :])


@singledispatch
def _log_rows(mechanism: Mechanism, x: IntArray, y: IntArray) -> FloatArray:
    """Compute the exact distribution, slowly, for a mechanism without a closed form here."""
    columns = (y[0] - mechanism.outputs.L).astype(np.int64)
    with np.errstate(divide="ignore"):
        return np.log([mechanism.pmf(int(cell))[columns] for cell in x[:, 0]])


@_log_rows.register
def _(mechanism: ClampMap, x: IntArray, y: IntArray) -> FloatArray:
    """Add the mass beyond each end of the grid to that end."""
    rate, ends = mechanism.epsilon, (mechanism.domain.L, mechanism.domain.R)
    inside = np.where((y == ends[0]) | (y == ends[1]), 0.0, math.log(-math.expm1(-rate)))
    return np.asarray(-rate * np.abs(x - y) + (inside - math.log1p(math.exp(-rate))))


@_log_rows.register
def _(mechanism: GlobalMap, x: IntArray, y: IntArray) -> FloatArray:
    return _two_sided(mechanism.epsilon / 2, x, y, mechanism.domain.L, mechanism.domain.R)


@_log_rows.register
def _(mechanism: AdjMap, x: IntArray, y: IntArray) -> FloatArray:
    partition = mechanism.partition
    here, there = partition.indices(x), partition.indices(y)
    outer = _two_sided(mechanism.eps_prt / 2, here, there, 0, partition.count - 1)
    return np.asarray(outer + _inside(partition, mechanism.eps_ner / 2, x, y, there))


@_log_rows.register
def _(mechanism: LocalMap, x: IntArray, y: IntArray) -> FloatArray:
    partition = mechanism.partition
    here, there = partition.indices(x), partition.indices(y)
    inner = _inside(partition, mechanism.epsilon / 2, x, y, there)
    return np.where(here == there, inner, -np.inf)


@_log_rows.register
def _(mechanism: RandomizedResponse, x: IntArray, y: IntArray) -> FloatArray:
    whole = float(np.logaddexp(mechanism.epsilon, math.log(mechanism.domain.span)))
    return np.where(x == y, mechanism.epsilon - whole, -whole)


@_log_rows.register
def _(mechanism: Piecewise, x: IntArray, y: IntArray) -> FloatArray:
    """Draw from a window that reaches beyond both ends; mass beyond an end is added to that end."""
    lower, upper, span = mechanism.domain.L, mechanism.domain.R, mechanism.domain.span
    s, window = math.exp(mechanism.epsilon / 2), span / math.expm1(mechanism.epsilon / 2)
    begin = (x - lower) * (window + span) / span - window
    left = np.where(y == lower, -window, y - lower - 0.5)
    right = np.where(y == upper, span + window, y - lower + 0.5)
    covered = np.minimum(right, begin + window) - np.maximum(left, begin)
    mass = right - left + (s * s - 1) * np.maximum(covered, 0)
    return np.asarray(np.log(mass / ((s + 1) * window * s)))


@_log_rows.register
def _(mechanism: WindowMap, x: IntArray, y: IntArray) -> FloatArray:
    """Give cells beyond the reach the floor; clipping adds the mass beyond an end to the end."""
    reach, lower, upper = mechanism.reach, mechanism.domain.L, mechanism.domain.R
    beyond = np.maximum(np.arange(reach + 1) - mechanism.window, 0)
    weights = np.exp(-np.minimum(mechanism.slope * beyond, mechanism.total))
    floor = math.exp(-mechanism.total)
    whole = 2 * weights[1:].sum() + weights[0] + mechanism.domain.span * floor
    distance = np.abs(x - y)
    mass = np.where(distance <= reach, weights[np.minimum(distance, reach)], floor)
    if mechanism.clipped:
        tails = np.append(weights[::-1].cumsum()[::-1], 0.0)  # sums of weights from d on
        first = np.minimum(distance, reach + 1)
        mass = np.where((y == lower) | (y == upper), tails[first] + first * floor, mass)
    return np.asarray(np.log(mass / whole))


def _two_sided(
    rate: float, x: IntArray, y: IntArray, lower: IntArray | int, upper: IntArray | int
) -> FloatArray:
    """Return the log of ``q**|x−y|`` over its sum, ``(1 + q − q**a − q**b) / (1−q)``."""
    left = -np.expm1(-rate * (x - lower + 1))
    right = -math.exp(-rate) * np.expm1(-rate * (upper - x))
    return np.asarray(-rate * np.abs(x - y) - np.log((left + right) / -math.expm1(-rate)))


def _inside(
    partition: Partition, rate: float, x: IntArray, y: IntArray, runs: IntArray
) -> FloatArray:
    """Return the log-probabilities inside each run, of x clamped to that run."""
    first, last = partition.ends(runs)
    return _two_sided(rate, np.minimum(np.maximum(x, first), last), y, first, last)
