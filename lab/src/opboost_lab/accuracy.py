"""Train models on the paper's data with every mechanism, and both baselines without noise."""

import os
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
import pyarrow as pa
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score, roc_auc_score

import opboost as op
from opboost.boosting import Problem, make_booster
from opboost.budgets.budget import Budget
from opboost.columns.dataframes import as_numbers, column
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.grid import NumericMapping
from opboost.randomness.streams import SeededRng
from opboost.training.feature_matrix import OwnColumn
from opboost_lab.data.datasets import ALL, STAND_INS, DataSet, halves

GRID = op.Domain(1, 10)
THREADS = int(os.environ.get("OMP_NUM_THREADS", 2))
PARAMS: dict[str, dict[str, Any]] = {
    "xgboost": {"n_estimators": 80, "max_depth": 3, "eta": 0.1, "nthread": THREADS},
    "hist-gbdt": {"max_iter": 80, "max_depth": 3, "learning_rate": 0.1},
    "stumps": {"max_iter": 80, "max_leaf_nodes": 2, "learning_rate": 0.1},
    "deep": {"n_estimators": 300, "max_depth": 8, "eta": 0.1, "nthread": THREADS},
}
"""The paper's settings: 80 trees of depth 3, learning rate 0.1.  The paper's code trains ``stumps``
(docs/errata.md); ``deep`` memorises its training rows."""

STOCK = {"stumps": "hist-gbdt", "deep": "xgboost"}
"""The booster behind a name that stands for settings."""

MEASURES = {"binary": "AUC", "multiclass": "accuracy", "regression": "R²"}


def mechanisms(epsilon: float) -> dict[str, op.Mechanism]:
    """Return the paper's mechanisms and ours at one nominal level."""
    found: dict[str, op.Mechanism] = {
        "Clamp-map": op.ClampMap(GRID, epsilon),
        "Global-map": op.GlobalMap(GRID, epsilon),
    }
    for theta in (2, 4):
        found[f"Local-map θ={theta}"] = op.LocalMap(GRID, epsilon=epsilon, theta=theta)
        for alpha in (0.4, 1, 10):
            found[f"Adj-map θ={theta} α={alpha:g}"] = op.AdjMap(
                GRID, epsilon, theta=theta, alpha=alpha
            )
    found["Piecewise"] = op.Piecewise(GRID, epsilon)
    found["FederBoost"] = op.RandomizedResponse(GRID, epsilon)
    return found


@lru_cache(maxsize=4)
def load(name: str) -> DataSet:
    """Return a data set, cached."""
    return (ALL | STAND_INS)[name]()


def parted(name: str, seed: int) -> DataSet:
    """Return a data set, split by the seed unless it has an official split."""
    data = load(name)
    if data.task != "regression":
        return data
    train, test = halves(pa.concat_tables([data.train, data.test]), seed)
    return replace(data, train=train, test=test)


def fitted(
    data: DataSet,
    mechanism: Any,
    seed: int,
    booster: str = "xgboost",
    mapping: str = "cells",
    federboost: bool = False,
    denoise: Any = False,
    budget: Budget | None = None,
) -> OpBoostClassifier | OpBoostRegressor:
    """Return an estimator trained on desensitised rows; ``seed`` seeds the noise and the booster.

    ``mechanism`` is one for all columns, one per column by name, or None if a record budget plans
    them.  ``federboost`` cuts the columns at the training rows' quantiles, as FederBoost does
    (which reveals something about the rows), instead of into equal cells.
    """
    X, y, _, _ = data.split()
    kind = OpBoostRegressor if data.task == "regression" else OpBoostClassifier
    scale: Any = {c: _quantiles(X, c) for c in data.bounds} if federboost else "linear"
    return kind(
        mechanism,
        bounds=data.bounds,
        categories=data.categories,
        booster=STOCK.get(booster, booster),
        booster_params=PARAMS[booster],
        mapping=mapping,
        scale=scale,
        noise_rng=SeededRng(seed),
        random_state=seed,
        denoise=denoise,
        budget=budget,
    ).fit(X, y)


def scores(data: DataSet, estimator: Any, **how: bool) -> dict[str, float]:
    """Return every measure on test rows: clean, or released first with ``desensitize=True``."""
    _, _, X, y = data.split()
    X = X.select(list(estimator.feature_names_in_))
    if data.task == "regression":
        return measured(data, estimator.predict(X, **how), y)
    return measured(data, estimator.predict_proba(X, **how), y, estimator.classes_)


def score(
    name: str, mechanism: op.Mechanism, seed: int, data: DataSet | None = None, **how: Any
) -> float:
    """Train on desensitised rows as :func:`fitted` does; return the main measure on clean rows."""
    data = data or load(name)
    return scores(data, fitted(data, mechanism, seed, **how))[MEASURES[data.task]]


def plain(name: str, on_grid: bool, data: DataSet | None = None, **how: Any) -> float:
    """Return the same measure without noise: on raw values, or on the cells of the grid."""
    data = data or load(name)
    return plain_scores(data, on_grid, **how)[MEASURES[data.task]]


def plain_scores(
    data: DataSet, on_grid: bool, booster: str = "xgboost", mapping: str = "cells", seed: int = 0
) -> dict[str, float]:
    """Return every measure of the task without noise; ``seed`` is the booster's."""
    X = data.split()[0]
    own = [OwnColumn.of(X, n) for n in X.column_names if n not in data.bounds]

    def matrix(table: Any) -> Any:
        blocks = []
        for c, bounds in data.bounds.items():
            raw = as_numbers(c, column(table, c)).astype(np.float64)
            cells = NumericMapping(GRID, bounds, mapping=mapping).to_grid(raw)  # type: ignore[arg-type]
            blocks.append((cells if on_grid else raw).astype(np.float32)[:, None])
        return np.hstack([*blocks, *(c.block(table).astype(np.float32) for c in own)])

    return trained_plainly(data, matrix, booster, seed=seed)


def trained_plainly(
    data: DataSet, matrix: Callable[[Any], Any], booster: str = "xgboost", **settings: Any
) -> dict[str, float]:
    """Train on clean rows, which ``matrix`` turns into numbers, and measure on clean test rows.

    ``settings`` are further fields of a :class:`~opboost.boosting.Problem`.
    """
    X, y, X_test, y_test = data.split()
    numbers, task = data.task == "regression", cast(Any, data.task)
    classes, coded = np.unique(y, return_inverse=True)
    target, count = (y.astype(float), 0) if numbers else (coded, len(classes))
    problem = Problem(matrix(X), target, task, count, **settings)
    model = make_booster(STOCK.get(booster, booster), PARAMS[booster]).train(problem)
    return measured(data, model.predict(matrix(X_test)), y_test, classes)


def measured(data: DataSet, predicted: Any, y_test: Any, classes: Any = None) -> dict[str, float]:
    """Return every measure of the task for predictions: values, or the chance of each class."""
    if data.task == "regression":
        error = float(mean_squared_error(y_test, predicted))
        return {"MSE": error, "R²": float(r2_score(y_test, predicted))}
    right = float(accuracy_score(y_test, classes[predicted.argmax(axis=1)]))
    if data.task != "binary":
        return {"accuracy": right}
    area = float(roc_auc_score(y_test == classes[1], predicted[:, 1]))
    return {"AUC": area, "accuracy": right}


def _quantiles(table: Any, name: str) -> tuple[float, ...]:
    """Return nine rising breakpoints at the deciles, slightly apart where values repeat."""
    raw = as_numbers(name, column(table, name)).astype(np.float64)
    low, high = float(raw.min()), float(raw.max())
    step = (high - low) * 1e-6
    cuts = np.clip(np.quantile(raw, np.arange(1, 10) / 10), low + step, high - 10 * step)
    return tuple((np.maximum.accumulate(cuts) + np.arange(9) * step / 2).tolist())
