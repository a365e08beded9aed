"""Train models at record totals, and score them on clean and on released test rows."""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from opboost.budgets.budget import Budget
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.grid import Ordered
from opboost.mechanisms import ClampMap, GlobalMap, Mechanism, Piecewise, UnaryEncoding
from opboost_lab.accuracy import GRID, MEASURES, fitted, parted, scores
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import all_private, declared_bounds

Way = Literal["record", "Clamp-map", "Piecewise", "Global-map"]


@dataclass(frozen=True, slots=True)
class Score:
    """The task's measure on clean test rows, and on test rows released under the same budget."""

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
    rows: int | None = None,
    *,
    released: bool = True,
    **how: Any,
) -> Score:
    """Train at a record total; the seed splits the rows, draws the noise and seeds the booster.

    ``way`` is the record budget's plan, or a mechanism on ten cells with its level split evenly
    over all columns.  Without ``released``, only clean test rows are predicted, which is faster.
    """
    data = all_private(parted(name, seed))
    if rows is not None and rows < data.train.num_rows:
        chosen = np.random.default_rng(seed).permutation(data.train.num_rows)[:rows]
        data = replace(data, train=data.train.take(pa.array(chosen)))
    model = trained(data, total, seed, way, denoise, **how)
    measure = MEASURES[data.task]
    clean = scores(data, model)[measure]
    noisy = scores(data, model, desensitize=True)[measure] if released else math.nan
    return Score(clean, noisy, model.denoised_)


def trained(
    data: DataSet,
    total: float,
    seed: int,
    way: Way = "record",
    denoise: Any = "auto",
    columns_per_row: int | None = None,
    booster: str = "xgboost",
) -> OpBoostClassifier | OpBoostRegressor:
    """Return an estimator trained at a record total, with every column private."""
    planned = way == "record"
    budget = Budget.record(total, columns_per_row=columns_per_row)
    return fitted(
        replace(data, bounds=declared_bounds(data)),
        None if planned else _even(data, way, total),
        seed,
        booster,
        denoise=denoise,
        budget=budget if planned else None,
    )


def _even(data: DataSet, way: Way, total: float) -> dict[str, Any]:
    """Return a mechanism on ten cells for each column, at an equal share of the total."""
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
