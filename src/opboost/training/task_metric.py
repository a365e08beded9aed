"""The one figure by which predictions of each kind of label are judged."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score

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
        return float(r2_score(y, predicted))
    if task == "binary":
        return float(roc_auc_score(y, predicted[:, 1]))
    return float((predicted.argmax(axis=1) == y).mean())
