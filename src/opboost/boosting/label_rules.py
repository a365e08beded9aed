"""What a booster's objective requires of the label, checked before any party releases anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opboost._typing import FloatArray
from opboost.errors import DataError

NOT_NEGATIVE = ("poisson", "tweedie")
"""Objectives for counts, and for amounts that are often zero: labels must be zero or more."""


def check_no_missing(y: np.ndarray[Any, Any]) -> None:
    """Refuse a label with missing values, be they None or NaN.

    >>> check_no_missing(np.array([0.5, np.nan, 2.0]))
    Traceback (most recent call last):
    ...
    opboost.errors.DataError: 1 of 3 labels is missing. Leave out rows without a label.
    """
    gone = np.zeros(len(y), dtype=bool)
    if y.dtype.kind == "f":
        gone = np.isnan(y)
    elif y.dtype.kind == "O":
        gone = np.fromiter(map(_is_missing, y), dtype=bool, count=len(y))
    if count := int(gone.sum()):
        are = "is" if count == 1 else "are"
        raise DataError(
            f"{count:,} of {len(y):,} labels {are} missing", hint="Leave out rows without a label."
        )


def _is_missing(label: object) -> bool:
    """Return whether a label is None, NaN or one of pandas' missing values."""
    nothing = label is None or type(label).__name__ in ("NAType", "NaTType")
    return nothing or (isinstance(label, float) and label != label)


def check_label(params: Mapping[str, Any] | None, y: FloatArray) -> None:
    """Refuse labels that a regression's objective does not allow.

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
