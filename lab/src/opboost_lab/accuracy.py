"""Models on the paper's data: mechanisms side by side, beside both plain baselines."""

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
"""The paper's: 80 trees of three layers, learning rate 0.1.  Stumps are what its code trains
(docs/errata.md); deep is a booster that learns its training rows by heart."""

STOCK = {"stumps": "hist-gbdt", "deep": "xgboost"}
"""The library's booster, where our name is that of a setting."""

MEASURES = {"binary": "AUC", "multiclass": "accuracy", "regression": "R²"}


def mechanisms(epsilon: float) -> dict[str, op.Mechanism]:
    """The paper's mechanisms and ours, at one nominal level."""
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
    """A data set, read once."""
    return (ALL | STAND_INS)[name]()


def parted(name: str, seed: int) -> DataSet:
    """A data set with the split of this seed; one with an official split keeps that."""
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
    """An estimator trained on desensitised rows; ``seed`` is that of noise and booster.

    ``mechanism`` is one for all columns, one for each by name, or None where a record budget plans
    them.  ``federboost`` cuts the columns at the training rows' quantiles, as FederBoost does
    (which tells about the rows), instead of into equal cells.
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
    """How well an estimator predicts the test rows, by every measure of the task.

    They are plain, or released first with ``desensitize=True``.
    """
    _, _, X, y = data.split()
    X = X.select(list(estimator.feature_names_in_))
    if data.task == "regression":
        return measured(data, estimator.predict(X, **how), y)
    return measured(data, estimator.predict_proba(X, **how), y, estimator.classes_)


def score(
    name: str, mechanism: op.Mechanism, seed: int, data: DataSet | None = None, **how: Any
) -> float:
    """Train on desensitised rows, measure on plain test rows: the task's main measure.

    ``how`` are further arguments of :func:`fitted`.
    """
    data = data or load(name)
    return scores(data, fitted(data, mechanism, seed, **how))[MEASURES[data.task]]


def plain(name: str, on_grid: bool, data: DataSet | None = None, **how: Any) -> float:
    """The same booster without any noise: on raw values, or on the cells of the grid."""
    data = data or load(name)
    return plain_scores(data, on_grid, **how)[MEASURES[data.task]]


def plain_scores(
    data: DataSet, on_grid: bool, booster: str = "xgboost", mapping: str = "cells", seed: int = 0
) -> dict[str, float]:
    """The same by every measure of the task; ``seed`` is the booster's."""
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
    """Train on clean rows, each turned into numbers by ``matrix``, and measure on clean test rows.

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
    """Values, or chances of each class, against the truth, by every measure of the task."""
    if data.task == "regression":
        error = float(mean_squared_error(y_test, predicted))
        return {"MSE": error, "R²": float(r2_score(y_test, predicted))}
    right = float(accuracy_score(y_test, classes[predicted.argmax(axis=1)]))
    if data.task != "binary":
        return {"accuracy": right}
    area = float(roc_auc_score(y_test == classes[1], predicted[:, 1]))
    return {"AUC": area, "accuracy": right}


def _quantiles(table: Any, name: str) -> tuple[float, ...]:
    """Nine rising breakpoints at the deciles, a hair apart where values repeat."""
    raw = as_numbers(name, column(table, name)).astype(np.float64)
    low, high = float(raw.min()), float(raw.max())
    step = (high - low) * 1e-6
    cuts = np.clip(np.quantile(raw, np.arange(1, 10) / 10), low + step, high - 10 * step)
    return tuple((np.maximum.accumulate(cuts) + np.arange(9) * step / 2).tolist())
