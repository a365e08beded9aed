"""What attacks achieve at a record total: a bound for this model, and results on public data sets.

The figures are those of docs/attacks.md; ``python -m tools.manual.attack_figures`` writes them.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

LINKED_PEOPLE = 1_000
"""People in the stolen table of the card's linkage attack, as in the measured one."""


@dataclass(frozen=True, slots=True)
class MeasuredAttacks:
    """What attacks achieved at one total, by data set.

    Attributes:
        total: The record total at which they were measured.
        linked: The share of released records that the best possible attacker linked to the right
            one of 1,000 people.
        attribute_gain: How much more often the quarter of a column's range, or the category, was
            guessed correctly with the release than without it, averaged over columns.
        label_auc: The AUC with which a feature party inferred labels from its own trees.
    """

    total: float
    linked: dict[str, float]
    attribute_gain: dict[str, float]
    label_auc: dict[str, float]

    @property
    def sets(self) -> list[str]:
        """The names of the data sets."""
        return list(self.linked)


def measured_at(total: float) -> MeasuredAttacks | None:
    """Return the figures of the smallest measured total that is not below this one.

    For a total above all measured ones, return the figures of the largest; None if nothing bounds
    the release.

    >>> measured_at(3.0).total, measured_at(4.0).total, measured_at(50.0).total
    (4.0, 4.0, 16.0)
    >>> measured_at(math.inf) is None
    True
    """
    if math.isinf(total):
        return None
    known = _measured()
    return next((one for one in known if one.total >= total), known[-1])


@cache
def _measured() -> tuple[MeasuredAttacks, ...]:
    text = (files("opboost.model_card") / "measured_attacks.json").read_text(encoding="utf-8")
    plain: list[dict[str, Any]] = json.loads(text)
    return tuple(sorted((MeasuredAttacks(**one) for one in plain), key=lambda one: one.total))
