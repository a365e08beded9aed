"""The target of training: check the labels or numbers that are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from opboost._typing import BoolArray, FloatArray, IntArray
from opboost.boosting import Task
from opboost.columns.codebook import distinct, numbered
from opboost.errors import DataError, ParameterError

LabelKind = Literal["classify", "regress"]
"""Whether a label consists of classes or of numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Target:
    """The target to learn: labels 0..classes−1, or numbers, and the weights of the rows.

    ``labels`` are the classes as they were given; None for a regression.
    """

    y: np.ndarray[Any, Any]
    task: Task
    weight: FloatArray | None = None
    labels: np.ndarray[Any, Any] | None = None

    @property
    def classes(self) -> int:
        """The number of classes; 0 for a regression."""
        return 0 if self.labels is None else len(self.labels)

    @classmethod
    def of_classes(cls, y: Any, sample_weight: Any = None, class_weight: Any = None) -> Target:
        """Build the target of a classification, which needs at least two distinct labels."""
        given = as_column(y)
        if given.dtype.kind not in "biu":
            _check_classes(given)
        labels, coded = numbered(given)
        if len(labels) > len(given) // 2:
            _check_classes(given)  # warns if nearly all labels are distinct
        if not len(labels):
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        if len(labels) < 2:
            raise DataError("The label has only one class; a classifier needs two")
        weight = as_weights(sample_weight, given, class_weight)
        return cls(coded, "binary" if len(labels) == 2 else "multiclass", weight, labels)

    @classmethod
    def of_numbers(cls, y: Any, sample_weight: Any = None) -> Target:
        """Build the target of a regression, which needs finite numbers."""
        numbers = as_numbers(y)
        return cls(numbers, "regression", as_weights(sample_weight, numbers, None))

    def where(self, rows: BoolArray | IntArray) -> Target:
        """Return some of the rows, with the same classes."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, y=self.y[rows], weight=weight)

    def codes_of(self, y: Any) -> np.ndarray[Any, Any]:
        """Return the positions of other rows' labels among the classes."""
        assert self.labels is not None
        given = as_column(y)
        position = np.searchsorted(self.labels, given).clip(0, len(self.labels) - 1)
        if (self.labels[position] != given).any():
            raise DataError("eval_set holds a class that the training rows do not")
        return position


def label_kind(y: np.ndarray[Any, Any], task: str) -> LabelKind:
    """Return a label's kind; ``"auto"`` takes text, booleans or two distinct numbers as classes."""
    if task not in ("auto", "classify", "regress"):
        raise ParameterError(f"task must be 'auto', 'classify' or 'regress'; got {task!r}.")
    if task == "auto":
        return "classify" if y.dtype.kind in "OUSb" or len(distinct(y)) == 2 else "regress"
    return "classify" if task == "classify" else "regress"


def as_column(y: Any) -> np.ndarray[Any, Any]:
    """Return the labels as one array with one label per row."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if type(y) is np.ndarray and y.ndim == 1 and y.dtype.kind in "biuf":
        return np.ascontiguousarray(y)
    from sklearn.utils.validation import column_or_1d

    return np.asarray(column_or_1d(y, warn=True))


def _check_classes(y: np.ndarray[Any, Any]) -> None:
    """Refuse labels that are not classes, as scikit-learn's classifiers do."""
    from sklearn.utils.multiclass import check_classification_targets

    check_classification_targets(y)


def as_numbers(y: Any) -> FloatArray:
    """Return the labels of a regression, which must be finite numbers."""
    target = as_column(y)
    if target.dtype.kind == "O" or target.dtype.kind in "US":
        try:
            target = target.astype(np.float64)
        except ValueError:
            raise DataError("The label of a regression must hold numbers") from None
    if not np.isfinite(target).all():
        raise ValueError("Input y contains NaN or infinity.")
    return target.astype(np.float64)


def as_weights(sample_weight: Any, y: np.ndarray[Any, Any], class_weight: Any) -> FloatArray | None:
    """Return the weight of each row times that of its class; None if all weigh the same."""
    if sample_weight is None and class_weight is None:
        return None
    from sklearn.utils.class_weight import compute_sample_weight
    from sklearn.utils.validation import _check_sample_weight

    weight = _check_sample_weight(sample_weight, y, dtype=np.float64)
    if class_weight is not None:
        weight = weight * compute_sample_weight(class_weight, y)
    return np.asarray(weight)
