"""What a booster's objective asks of the label, checked before anybody releases anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opboost._typing import FloatArray
from opboost.errors import DataError

NOT_NEGATIVE = ("poisson", "tweedie")
"""Objectives of counts and of amounts that are often zero: their labels are zero or more."""


def check_label(params: Mapping[str, Any] | None, y: FloatArray) -> None:
    """Refuse numbers that the objective of a regression cannot have produced.

    >>> import numpy as np
    >>> check_label({"objective": "count:poisson"}, np.array([0.0, 2.0, -1.0]))
    Traceback (most recent call last):
    ...
    opboost.errors.DataError: The objective count:poisson needs labels of zero or more, and 1 is \
negative. Correct the label, or choose another objective in booster_params.
    """
    given = params or {}
    name = str(given.get("objective", given.get("loss", "")))
    if not any(word in name for word in NOT_NEGATIVE):
        return
    next_step = "Correct the label, or choose another objective in booster_params."
    if negative := int((y < 0).sum()):
        are = "is" if negative == 1 else "are"
        raise DataError(
            f"The objective {name} needs labels of zero or more, and {negative:,} {are} negative",
            hint=next_step,
        )
    if not y.any():
        raise DataError(f"The objective {name} needs a label above zero, and all are zero")
