"""What is to be predicted: labels and numbers as they are given, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.validation import _check_sample_weight, column_or_1d

from opboost._typing import FloatArray
from opboost.boosting import Task
from opboost.errors import DataError


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be predicted: labels 0..classes−1, or numbers."""

    y: np.ndarray[Any, Any]
    task: Task
    classes: int
    weight: FloatArray | None


def as_column(y: Any) -> np.ndarray[Any, Any]:
    """One label a row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    return np.asarray(column_or_1d(y, warn=True))


def as_numbers(y: Any) -> FloatArray:
    """The label of a regression: finite numbers."""
    target = as_column(y)
    if target.dtype.kind == "O" or target.dtype.kind in "US":
        try:
            target = target.astype(np.float64)
        except ValueError:
            raise DataError("The label of a regression must hold numbers") from None
    if not np.isfinite(target).all():
        raise ValueError("Input y contains NaN or infinity.")
    return target.astype(np.float64)


def as_codes(classes: np.ndarray[Any, Any], labels: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The place of each label among the classes of the training rows."""
    position = np.searchsorted(classes, labels).clip(0, len(classes) - 1)
    if (classes[position] != labels).any():
        raise DataError("eval_set holds a class that the training rows do not")
    return position


def as_weights(sample_weight: Any, y: np.ndarray[Any, Any], class_weight: Any) -> FloatArray | None:
    """The weight of each row, of its own and of its class; None where all weigh the same."""
    if sample_weight is None and class_weight is None:
        return None
    weight = _check_sample_weight(sample_weight, y, dtype=np.float64)
    if class_weight is not None:
        weight = weight * compute_sample_weight(class_weight, y)
    return np.asarray(weight)
