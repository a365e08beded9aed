"""How useful each released column is for predicting the label, with a standard error.

The rating uses only released rows and labels, so it reveals nothing more about any person.  It is
about the noisy column, which is all that a model sees.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from opboost._typing import IntArray
from opboost.training.column_weights import (
    ColumnScore,
    label_features,
    quantised,
    score,
    usefulness,
)
from opboost.training.released_columns import ReleasedColumn
from opboost.training.targets import Target

BLOCKS = 20
"""The number of blocks of rows; the jackknife leaves out one at a time."""

BLOCK_SEED = 0
"""The seed that assigns rows to blocks at random, so that sorting a table does not matter."""


@dataclass(frozen=True, slots=True)
class ColumnUsefulness:
    """How useful one column is, according to released rows.

    Attributes:
        rows: The number of rows with a value in it.
        explained: The share of the label's variance that the noisy column explains, less what a
            useless column explains by chance on average; it may be below zero.
        error: The standard error of that share, from a jackknife, but no less than the spread that
            a useless column has by chance; NaN for too few rows.
        chance: The chance that the column is useful at all, given all columns.
        weight: The column's weight in the answer to a pilot: 1, 1/2, 1/4 or 1/8.
    """

    name: Hashable
    rows: int
    explained: float
    error: float
    chance: float
    weight: float


def columns_usefulness(columns: Iterable[ReleasedColumn], target: Target) -> list[ColumnUsefulness]:
    """Return the usefulness of each column, the most useful first; keep one in memory at a time.

    >>> import numpy as np, pandas as pd, opboost as op
    >>> from opboost.training.released_columns import from_sample
    >>> rng = np.random.default_rng(0)
    >>> X = pd.DataFrame(rng.random((2000, 2)), columns=["age", "shoe"])
    >>> d = op.Desensitizer(
    ...     bounds={"age": (0, 1), "shoe": (0, 1)},
    ...     budget=op.Budget.record(6),
    ...     noise_rng=op.SeededRng(1),
    ... )
    >>> _, released = d.fit_release(X)
    >>> columns = from_sample(d.columns_, released, d.sent)
    >>> best, other = columns_usefulness(columns, Target.of_classes(X["age"] > 0.5))
    >>> best.name, best.explained > 3 * best.error, abs(other.explained) < 3 * other.error
    ('age', True, True)
    """
    labels, blocks = label_features(target), _blocks(len(target.y))
    scores: dict[Hashable, ColumnScore] = {}
    shares: dict[Hashable, tuple[float, float]] = {}
    for column in columns:
        name = column.private.name
        scores[name] = score(column, labels)
        left_out = [
            explained(score(column.where(keep), labels[keep]))
            for keep in (blocks != number for number in range(BLOCKS))
        ]
        error = max(_jackknife_error(left_out), chance_spread(scores[name]))
        shares[name] = explained(scores[name]), error
    chances = usefulness(scores)
    weights = quantised(chances)
    found = [
        ColumnUsefulness(name, scores[name].rows, *shares[name], chances[name], weights[name])
        for name in scores
    ]
    return sorted(found, key=lambda line: (-line.chance, -line.explained))


def explained(found: ColumnScore) -> float:
    """Return the share of the label's variance that a column explains, beyond chance.

    The squares add up to the number of rows times the share; chance adds one per square.

    >>> explained(ColumnScore(np.array([[26.0], [1.0]]), np.ones(2), rows=101))
    0.25
    """
    if not found.rows:
        return 0.0
    return float((found.squares - 1).sum() / (found.squares.shape[1] * (found.rows - 1)))


def chance_spread(found: ColumnScore) -> float:
    """Return the standard deviation of ``explained`` for a column that says nothing.

    Each square then has a variance of 2.  The jackknife's error would be too small there: near
    zero, a square hardly depends on any one row.

    >>> chance_spread(ColumnScore(np.array([[26.0], [1.0]]), np.ones(2), rows=101))
    0.02
    """
    if found.rows < 2:
        return 0.0
    return float(math.sqrt(2 * found.squares.size) / (found.squares.shape[1] * (found.rows - 1)))


def _blocks(rows: int) -> IntArray:
    """Return the block of each row; all blocks have the same size."""
    return np.random.default_rng(BLOCK_SEED).permutation(rows) % BLOCKS


def _jackknife_error(left_out: list[float]) -> float:
    """Return the standard error of a figure, from the figures that leave out one block each."""
    if not any(left_out):
        return math.nan
    return math.sqrt((len(left_out) - 1) * float(np.var(left_out)))
