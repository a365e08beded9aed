"""The metric by which predictions of each kind of label are judged."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost._typing import FloatArray
from opboost.boosting import Task

METRICS: dict[Task, str] = {"binary": "AUC", "multiclass": "accuracy", "regression": "R²"}
"""AUC for two classes, accuracy for several, R² for numbers."""


def metric(task: Task, predicted: FloatArray, y: np.ndarray[Any, Any]) -> float:
    """Return the metric of a task: predictions are probabilities (a column per class) or numbers.

    >>> chances = np.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]])
    >>> metric("binary", chances, np.array([0, 0, 1]))
    1.0
    >>> metric("regression", np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    1.0
    """
    if task == "regression":
        return r2(y, predicted)
    if task == "binary":
        return roc_auc(y, predicted[:, 1])
    return float((predicted.argmax(axis=1) == y).mean())


def r2(y: np.ndarray[Any, Any], predicted: FloatArray) -> float:
    """Return the share of the variance that predictions explain, as scikit-learn's ``r2_score``.

    >>> r2(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    0.5
    """
    left, total = float(((y - predicted) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    return 1 - left / total if total else float(left == 0)


def roc_auc(y: np.ndarray[Any, Any], chances: FloatArray) -> float:
    """Return what scikit-learn's ``roc_auc_score`` returns, bit for bit, without loading it.

    Points on a straight piece of the curve are left out, as scikit-learn does, because they change
    the rounding of the sum.

    >>> roc_auc(np.array([0, 0, 1, 1]), np.array([0.1, 0.4, 0.35, 0.8]))
    0.75
    """
    if not (np.isfinite(chances).all() and np.array_equal(np.unique(y), [0, 1])):
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(y, chances))
    order = np.argsort(-chances, kind="stable")
    last = np.append(np.flatnonzero(np.diff(chances[order])), len(y) - 1)  # row of each threshold
    hits = np.cumsum(y[order], dtype=np.float64)[last]
    false_alarms = 1 + last.astype(np.float64) - hits
    bends = np.ones(len(last), dtype=np.bool_)
    bends[1:-1] = (np.diff(hits, 2) != 0) | (np.diff(false_alarms, 2) != 0)
    up = np.append(0.0, hits[bends]) / hits[-1]
    right = np.append(0.0, false_alarms[bends]) / false_alarms[-1]
    return float((np.diff(right) * (up[1:] + up[:-1]) / 2.0).sum())
