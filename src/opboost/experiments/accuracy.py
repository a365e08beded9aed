"""Models on the paper's data: mechanisms side by side, beside both plain baselines."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score

from opboost.boosting import Problem, make_booster
from opboost.domain import Domain, NumericMapping
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.features import OwnColumn
from opboost.experiments.datasets import ALL, STAND_INS, DataSet, halves
from opboost.frames import as_numbers, column
from opboost.mechanisms import (
    AdjMap,
    ClampMap,
    GlobalMap,
    LocalMap,
    Mechanism,
    Piecewise,
    RandomizedResponse,
)
from opboost.rng import SeededRng

GRID = Domain(1, 10)
PARAMS: dict[str, dict[str, Any]] = {
    "xgboost": {"n_estimators": 80, "max_depth": 3, "eta": 0.1, "nthread": 2},
    "hist-gbdt": {"max_iter": 80, "max_depth": 3, "learning_rate": 0.1},
}
"""The paper's: 80 trees of three layers, learning rate 0.1."""

MEASURES = {"binary": "AUC", "multiclass": "accuracy", "regression": "R²"}


def mechanisms(epsilon: float) -> dict[str, Mechanism]:
    """The paper's mechanisms and ours, at one nominal level."""
    found: dict[str, Mechanism] = {
        "Clamp-map": ClampMap(GRID, epsilon),
        "Global-map": GlobalMap(GRID, epsilon),
    }
    for theta in (2, 4):
        found[f"Local-map θ={theta}"] = LocalMap(GRID, epsilon=epsilon, theta=theta)
        for alpha in (0.4, 1, 10):
            found[f"Adj-map θ={theta} α={alpha:g}"] = AdjMap(
                GRID, epsilon, theta=theta, alpha=alpha
            )
    found["Piecewise"] = Piecewise(GRID, epsilon)
    found["FederBoost"] = RandomizedResponse(GRID, epsilon)
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


def score(
    name: str,
    mechanism: Mechanism,
    seed: int,
    booster: str = "xgboost",
    mapping: str = "cells",
    federboost: bool = False,
    denoise: Any = False,
    data: DataSet | None = None,
    scale: Any = "linear",
) -> float:
    """Train on desensitised rows, measure on plain test rows.

    ``federboost`` cuts the columns at the training rows' quantiles, as FederBoost does (which tells
    about the rows), instead of into equal cells.
    """
    data = data or load(name)
    X, y, X_test, y_test = data.split()
    kind = OpBoostRegressor if data.task == "regression" else OpBoostClassifier
    if federboost:
        scale = {c: _quantiles(X, c) for c in data.bounds}
    estimator = kind(
        mechanism,
        bounds=data.bounds,
        categories=data.categories,
        booster=booster,
        booster_params=PARAMS[booster],
        mapping=mapping,
        scale=scale,
        noise_rng=SeededRng(seed),
        random_state=seed,
        denoise=denoise,
    ).fit(X, y)
    if data.task == "regression":
        return float(r2_score(y_test, estimator.predict(X_test)))
    chances = estimator.predict_proba(X_test)
    return _classified(data, chances, estimator.classes_, y_test)


def plain(
    name: str,
    on_grid: bool,
    booster: str = "xgboost",
    mapping: str = "cells",
    data: DataSet | None = None,
) -> float:
    """The same booster without any noise: on raw values, or on the cells of the grid."""
    data = data or load(name)
    X, y, X_test, y_test = data.split()
    own = [OwnColumn.of(X, n) for n in X.column_names if n not in data.bounds]

    def matrix(table: Any) -> Any:
        blocks = []
        for c, bounds in data.bounds.items():
            raw = as_numbers(c, column(table, c)).astype(np.float64)
            cells = NumericMapping(GRID, bounds, mapping=mapping).to_grid(raw)  # type: ignore[arg-type]
            blocks.append((cells if on_grid else raw).astype(np.float32)[:, None])
        return np.hstack([*blocks, *(c.block(table).astype(np.float32) for c in own)])

    if data.task == "regression":
        problem = Problem(matrix(X), y.astype(float), "regression", seed=0)
        model = make_booster(booster, PARAMS[booster]).train(problem)
        return float(r2_score(y_test, model.predict(matrix(X_test))))
    classes, coded = np.unique(y, return_inverse=True)
    task: Any = data.task
    problem = Problem(matrix(X), coded, task, len(classes), seed=0)
    model = make_booster(booster, PARAMS[booster]).train(problem)
    return _classified(data, model.predict(matrix(X_test)), classes, y_test)


def _classified(data: DataSet, chances: Any, classes: Any, y_test: Any) -> float:
    if data.task == "binary":
        return float(roc_auc_score(y_test == classes[1], chances[:, 1]))
    return float(accuracy_score(y_test, classes[chances.argmax(axis=1)]))


def _quantiles(table: Any, name: str) -> tuple[float, ...]:
    """Nine rising breakpoints at the deciles, a hair apart where values repeat."""
    raw = as_numbers(name, column(table, name)).astype(np.float64)
    low, high = float(raw.min()), float(raw.max())
    step = (high - low) * 1e-6
    cuts = np.clip(np.quantile(raw, np.arange(1, 10) / 10), low + step, high - 10 * step)
    return tuple((np.maximum.accumulate(cuts) + np.arange(9) * step / 2).tolist())
