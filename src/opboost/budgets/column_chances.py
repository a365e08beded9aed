"""How many people each column is sent for, given the weights or, before a pilot, their bounds."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from opboost._typing import FloatArray
from opboost.budgets.budget import RecordBudget, columns_sent
from opboost.errors import ParameterError
from opboost.randomness.streams import SeededRng

MAX_WEIGHT_RATIO = 8
"""A pilot may make one column at most this many times as likely as another."""

SIMULATED_PEOPLE = 20_000
"""The number of simulated people from which the chances of weighted columns are estimated."""


def sending_people(
    budget: RecordBudget, columns: Sequence[Hashable]
) -> dict[Hashable, tuple[int, int]]:
    """Return for how many of 1,000 people each column is sent: the fewest and the most.

    The two are equal unless the weights depend on a pilot that has not been released yet.

    >>> budget = RecordBudget(columns_per_row=1, total=4.0, pilot=0.1)
    >>> sending_people(budget, ["a", "b", "c"])["a"]
    (86, 753)
    """
    sent, count = budget.columns_per_row, len(columns)
    assert sent is not None
    even = sent / count
    if budget.awaits_weights:
        ends = [
            _one_against_equals(count, sent, r) for r in (1 / MAX_WEIGHT_RATIO, MAX_WEIGHT_RATIO)
        ]
        least, most = (_per_thousand(budget.pilot * even + (1 - budget.pilot) * e) for e in ends)
        return dict.fromkeys(columns, (least, most))
    if budget.weights is None:
        return dict.fromkeys(columns, (_per_thousand(even), _per_thousand(even)))
    shares = budget.pilot * even + (1 - budget.pilot) * _simulated(budget, columns)
    return {n: (_per_thousand(s), _per_thousand(s)) for n, s in zip(columns, shares, strict=True)}


def checked_weights(
    weights: Mapping[Any, float], columns: Sequence[Hashable], source: str
) -> dict[Hashable, float]:
    """Return a pilot's weights, one per column; refuse weights beyond the plan's bounds."""
    for name in weights:
        if name not in columns:
            raise ParameterError(
                f"{source} has a weight for {name!r}, which is not a private column."
            )
    for name in columns:
        if name not in weights:
            raise ParameterError(f"{source} has no weight for column {name!r}.")
    found = {name: float(weights[name]) for name in columns}
    if not all(0 < w < float("inf") for w in found.values()):
        raise ParameterError(f"{source} has a weight that is not above zero and finite.")
    if max(found.values()) > MAX_WEIGHT_RATIO * min(found.values()):
        raise ParameterError(
            f"{source} has weights that are too far apart: the largest may be {MAX_WEIGHT_RATIO} "
            "times the smallest."
        )
    return found


def _one_against_equals(count: int, sent: int, weight: float) -> float:
    """Return the chance that a column of this weight is sent if all others have weight one."""
    left_out = 1.0
    for drawn in range(sent):
        others = count - 1 - drawn
        left_out *= others / (others + weight)
    return 1 - left_out


def _simulated(budget: RecordBudget, columns: Sequence[Hashable]) -> FloatArray:
    rng = SeededRng(0).open()
    words = rng.words(len(columns), 0, SIMULATED_PEOPLE).T
    sent = columns_sent(budget, lambda: words, columns)
    assert sent is not None
    return np.asarray(sent.mean(axis=0))


def _per_thousand(share: float) -> int:
    return round(1000 * share)
