"""Models at record totals: what is left of accuracy when one person's whole record may cost E.

Every figure comes twice: on clean test rows, and on test rows that are released under the same
budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from opboost.budgets.budget import Budget
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.grid import Integers, Ordered
from opboost.mechanisms import ClampMap, GlobalMap, Mechanism, Piecewise, UnaryEncoding
from opboost.randomness.streams import SeededRng
from opboost_lab.accuracy import GRID, MEASURES, PARAMS, measured, parted
from opboost_lab.data.datasets import DataSet

Way = Literal["record", "Clamp-map", "Piecewise", "Global-map"]

WHOLE_NUMBERS = {
    "Adult": ("education-num",),
    "Industrial": ("plane_engines",),
    "Census": ("NOEMP",),
}
"""Columns that are declared as whole numbers."""


@dataclass(frozen=True, slots=True)
class Score:
    """The task's measure on clean and, where asked for, on released test rows."""

    clean: float
    released: float
    denoised: bool


@cache
def score(
    name: str,
    total: float,
    seed: int,
    way: Way = "record",
    denoise: Any = "auto",
    columns_per_row: int | None = None,
    cells: int | None = None,
    rows: int | None = None,
    *,
    released: bool = True,
) -> Score:
    """Train at a record total; the seed parts the rows, draws the noise and seeds the booster.

    ``way`` is the record budget's plan, or a mechanism on ten cells whose level is split evenly
    over all columns.  Without ``released`` only clean test rows are predicted, which is faster.
    """
    data = all_private(parted(name, seed))
    X, y, X_test, y_test = data.split()
    if rows is not None and rows < len(y):
        chosen = np.random.default_rng(seed).permutation(len(y))[:rows]
        X, y = X.take(pa.array(chosen)), y[chosen]
    bounds: dict[str, Any] = dict(data.bounds)
    for column in WHOLE_NUMBERS.get(name, ()):
        bounds[column] = Integers(*(int(b) for b in bounds[column]))
    kind = OpBoostRegressor if data.task == "regression" else OpBoostClassifier
    if way == "record":
        budget = Budget.record(total, columns_per_row=columns_per_row, cells=cells)
        how: dict[str, Any] = {"budget": budget}
    else:
        how = {"mechanism": _even(data, way, total)}
    model = kind(
        bounds=bounds,
        categories=data.categories or None,
        booster_params=PARAMS["xgboost"],
        noise_rng=SeededRng(seed),
        random_state=seed,
        denoise=denoise,
        **how,
    ).fit(X, y)
    clean = _measured(data, model, X_test, y_test, desensitize=False)
    if not released:
        return Score(clean, math.nan, model.denoised_)
    noisy = _measured(data, model, X_test, y_test, desensitize=True)
    return Score(clean, noisy, model.denoised_)


def all_private(data: DataSet) -> DataSet:
    """The same set with every column private: texts become categories."""
    X, _, X_test, _ = data.split()
    categories = dict(data.categories or {})
    for name in X.column_names:
        if name not in data.bounds and name not in categories:
            found = {*X.column(name).to_pylist(), *X_test.column(name).to_pylist()}
            categories[name] = sorted(found, key=str)
    return DataSet(data.name, data.task, data.bounds, data.train, data.test, data.label, categories)


def _even(data: DataSet, way: Way, total: float) -> dict[str, Any]:
    """One mechanism on ten cells for each column, each at the same part of the total."""
    level = total / (len(data.bounds) + len(data.categories))
    numeric: dict[str, Mechanism] = {
        "Clamp-map": ClampMap(GRID, level / GRID.span),
        "Global-map": GlobalMap(GRID, level / GRID.span),
        "Piecewise": Piecewise(GRID, level),
    }
    made: dict[str, Any] = dict.fromkeys(data.bounds, numeric[way])
    for name, categories in data.categories.items():
        listed = categories.categories if isinstance(categories, Ordered) else categories
        made[name] = UnaryEncoding(listed, level)
    return made


def _measured(data: DataSet, model: Any, X: Any, y: Any, *, desensitize: bool) -> float:
    if isinstance(model, OpBoostRegressor):
        predicted, classes = model.predict(X, desensitize=desensitize), None
    else:
        predicted, classes = model.predict_proba(X, desensitize=desensitize), model.classes_
    return measured(data, predicted, y, classes)[MEASURES[data.task]]
