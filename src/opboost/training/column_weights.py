"""Weigh columns by a pilot's rows and labels, so that others send useful columns more often.

A column's score consists of squared correlations between features of its noisy outputs (polynomials
of increasing degree, or bits) and the label.  In useless columns they all follow one distribution.
Empirical Bayes over all columns then separates use from chance.  It assumes that a share of the
columns is useful, with normal effects, and takes the likeliest share, spread and smoothness.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, FloatArray
from opboost.grid import Domain
from opboost.mechanisms import Mechanism, RandomizedResponse
from opboost.randomness.streams import Rng
from opboost.training.released_columns import ReleasedColumn
from opboost.training.targets import Target

WEIGHT_STEPS = 4
"""Weights are 1, 1/2, 1/4 and 1/8 of the largest: two bits per column."""

MAX_DEGREE = 4
"""The features of ordered columns are polynomials up to this degree."""

MAX_INDICATORS = 8
"""The most categories of a column, or classes of a label, that count: the most frequent ones."""

NOISY_GROUPS = 4
"""A target of numbers is cut into this many groups before randomised response."""

SHARES = np.geomspace(0.01, 0.5, 12)
"""Candidate shares of useful columns."""

EFFECTS = np.geomspace(1e-4, 2.0, 30)
"""Candidate squared correlations with the label, summed over a column's features."""

DECAYS = (0.0, 2.0, 4.0)
"""Candidate decays of effects with the degree: their variance is degree**-decay."""


@dataclass(frozen=True, slots=True, eq=False)
class ColumnScore:
    """How strongly one column is associated with the label in some rows.

    ``squares[k, c]`` belongs to the column's feature k and the label's feature c; for a useless
    column it is the square of a standard normal variable.  ``degrees`` holds the degree of each
    feature, 1 for indicators.  ``rows`` is the number of rows with a value in the column.
    """

    squares: FloatArray
    degrees: FloatArray
    rows: int


def column_weights(
    release: Sequence[ReleasedColumn],
    target: Target,
    *,
    epsilon: float | None = None,
    rng: Rng | None = None,
) -> dict[Hashable, float]:
    """Return a weight of 1, 1/2, 1/4 or 1/8 for each column, from the rows of a pilot.

    With ``epsilon``, each label first goes through randomised response at this level, drawn by
    ``rng``, so that the weights are ``epsilon``-differentially private in each label.
    """
    labels = label_features(target, epsilon, rng)
    scores = {c.private.name: score(c, labels) for c in release}
    return quantised(usefulness(scores))


def label_features(
    target: Target, epsilon: float | None = None, rng: Rng | None = None
) -> FloatArray:
    """Return columns that describe the labels: class indicators, or ranks and their squares."""
    if target.labels is None:
        rank = np.argsort(np.argsort(target.y, kind="stable"), kind="stable") / len(target.y)
        if epsilon is None:
            return _polynomials(2 * rank - 1)[0][:, :2]
        groups, count = np.minimum(rank * NOISY_GROUPS, NOISY_GROUPS - 1).astype(int), NOISY_GROUPS
    else:
        groups, count = np.asarray(target.y).astype(int), target.classes
    if epsilon is not None:
        mechanism = RandomizedResponse(Domain(0, count - 1), epsilon)
        groups = np.asarray(mechanism.sample(groups, rng))
    return _indicators(groups, count)


def score(column: ReleasedColumn, labels: FloatArray) -> ColumnScore:
    """Return how strongly a column's noisy outputs are correlated with the labels."""
    missing = column.parts[0].missing
    there = np.ones(len(column), dtype=np.bool_) if missing is None else ~missing
    return _dependence(*_output_features(column.where(there)), labels[there])


def usefulness(scores: Mapping[Hashable, ColumnScore]) -> dict[Hashable, float]:
    """Return the chance that each column is useful.

    In the model, a column is useful with chance p; its effects are then normal, with variances that
    fall with the degree and add up to t per row.  The values of p, t and the decay are the
    candidates that make the scores of all columns likeliest.
    """
    found, best = list(scores.values()), -np.inf
    chance = np.zeros(len(found))
    for decay in DECAYS:
        for size in EFFECTS:
            ratio = np.array([_evidence(s, size, decay) for s in found])
            for share in SHARES:
                odds = np.log(share / (1 - share)) + ratio
                likelihood = float(np.logaddexp(0, odds).sum()) + len(found) * np.log1p(-share)
                if likelihood > best:
                    best, chance = likelihood, 1 / (1 + np.exp(-np.clip(odds, -500, 500)))
    return dict(zip(scores, chance.tolist(), strict=True))


def _evidence(score: ColumnScore, size: float, decay: float) -> float:
    """Return the log-likelihood ratio of a column with effects of this size to a useless one."""
    if not score.rows:
        return 0.0
    shape = score.degrees**-decay
    variance = (score.rows * size * shape / (shape.sum() * score.squares.shape[1]))[:, None]
    kept = variance / (1 + variance)
    return float(0.5 * (kept * score.squares - np.log1p(variance)).sum())


def quantised(chances: Mapping[Hashable, float]) -> dict[Hashable, float]:
    """Divide chances by the largest one, and return the nearest of 1, 1/2, 1/4 and 1/8 for each."""
    largest = max(chances.values(), default=0.0)
    if largest <= 0:
        return dict.fromkeys(chances, 1.0)
    lowest = 2.0 ** (1 - WEIGHT_STEPS)
    return {
        name: float(2.0 ** np.round(np.log2(max(chance / largest, lowest))))
        for name, chance in chances.items()
    }


def _output_features(column: ReleasedColumn) -> tuple[FloatArray, FloatArray]:
    """Return bits of categories, or polynomials in outputs on the grid, with their degrees."""
    private, part = column.private, column.parts[0]
    if len(column.parts) > 1:
        bits = np.column_stack([p.codes if p.book is None else p.values for p in column.parts])
        found = _frequent(bits.astype(np.float64))
    elif not private.has_order:
        found = _indicators(part.codes, int(part.codes.max(initial=0)) + 1)
    elif part.book is None or not isinstance(private.mechanism, Mechanism):
        codes = part.codes.astype(np.float64)
        return _polynomials(2 * codes / max(1.0, codes.max(initial=0)) - 1)
    else:
        domain = private.mechanism.domain
        middle, half = (domain.L + domain.R) / 2, max((domain.R - domain.L) / 2, 0.5)
        return _polynomials(np.clip((part.values - middle) / half, -1.0, 1.0))
    return found, np.ones(found.shape[1])


def _dependence(features: FloatArray, degrees: FloatArray, labels: FloatArray) -> ColumnScore:
    """Return squared correlations of orthogonal features and labels, times (rows − 1)."""
    rows = len(features)
    if rows <= features.shape[1] + labels.shape[1] + 1:
        return ColumnScore(np.zeros((1, 1)), np.ones(1), 0)
    left, kept = _orthonormal(features)
    right, _ = _orthonormal(labels)
    if not left.shape[1] or not right.shape[1]:
        return ColumnScore(np.zeros((1, 1)), np.ones(1), 0)
    return ColumnScore((rows - 1) * (left.T @ right) ** 2, degrees[kept], rows)


def _orthonormal(columns: FloatArray) -> tuple[FloatArray, BoolArray]:
    """Return centred columns, each orthogonal to those before it, and which of them remain."""
    basis, triangle = np.linalg.qr(columns - columns.mean(axis=0))
    sizes = np.abs(np.diag(triangle))
    kept = sizes > 1e-6 * max(float(sizes.max(initial=0)), 1e-300)
    return np.asarray(basis[:, kept]), np.asarray(kept)


def _polynomials(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    degree = int(np.clip(len(np.unique(x)) - 1, 1, MAX_DEGREE))
    found: FloatArray = np.polynomial.legendre.legvander(x, degree)[:, 1:].astype(np.float64)
    return found, np.arange(1.0, degree + 1)


def _indicators(codes: np.ndarray[Any, Any], count: int) -> FloatArray:
    return _frequent(np.eye(count)[codes])


def _frequent(columns: FloatArray) -> FloatArray:
    order = np.argsort(-columns.sum(axis=0), kind="stable")
    return np.asarray(columns[:, order[:MAX_INDICATORS]])
