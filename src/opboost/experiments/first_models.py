"""A first model: two bundled data sets, plain and desensitised."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from opboost.domain import Domain
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.mechanisms import ClampMap, GlobalMap
from opboost.pictures import figure, save
from opboost.rng import Rng

CANCER = {"mean radius": (5, 30), "mean texture": (5, 40), "worst area": (100, 4500)}
DIABETES = {"bmi": (15, 45), "bp": (60, 140), "s5": (3, 7)}
"""Declared bounds of the private columns; all others are the label party's own."""


@dataclass(frozen=True, slots=True)
class Score:
    """How one way of training did on rows that it had not seen."""

    data: str
    way: str
    measure: str
    value: float
    promise: str
    seconds: float


def first_models(epsilon: float, cells: int, rng: Rng | None = None) -> Iterator[Score]:
    """Plain training, Clamp-map and Global-map at one level, and without the private columns."""
    grid = Domain(1, cells)
    for name, bounds, bundle, regression in (
        ("breast cancer", CANCER, load_breast_cancer(as_frame=True), False),
        ("diabetes", DIABETES, load_diabetes(as_frame=True, scaled=False), True),
    ):
        X = bundle.data[[*bounds, *_own(bundle.data, bounds)]]
        parts = train_test_split(X, bundle.target, random_state=0)
        stock = HistGradientBoostingRegressor if regression else HistGradientBoostingClassifier
        model = stock(max_iter=80, max_depth=3, early_stopping=False, random_state=0)
        yield _scored(name, "plain", model, parts, "none")
        yield _scored(name, "without them", model, _without(parts, list(bounds)), "nothing leaves")
        kind = OpBoostRegressor if regression else OpBoostClassifier
        for way, mechanism in (("Clamp-map", ClampMap), ("Global-map", GlobalMap)):
            estimator = kind(
                mechanism(grid, epsilon),
                bounds=bounds,
                booster="hist-gbdt",
                booster_params={"max_depth": 3},
                noise_rng=rng,
                random_state=0,
            )
            yield _scored(name, way, estimator, parts, f"{epsilon:g} a cell")


def _own(data: Any, bounds: Mapping[str, object]) -> list[str]:
    """A few columns that the label party holds itself."""
    return [c for c in data.columns if c not in bounds][:3]


def _without(parts: list[Any], names: list[str]) -> list[Any]:
    train, test, y_train, y_test = parts
    return [train.drop(columns=names), test.drop(columns=names), y_train, y_test]


def _scored(data: str, way: str, model: Any, parts: list[Any], promise: str) -> Score:
    train, test, y_train, y_test = parts
    start = time.perf_counter()
    model.fit(train, y_train)
    seconds = time.perf_counter() - start
    if hasattr(model, "predict_proba"):
        value = float(roc_auc_score(y_test, model.predict_proba(test)[:, 1]))
        return Score(data, way, "AUC", value, promise, seconds)
    return Score(data, way, "R²", float(r2_score(y_test, model.predict(test))), promise, seconds)


def draw(scores: list[Score], path: Path) -> None:
    """A picture: the ways of training side by side, one panel a data set."""
    names = list(dict.fromkeys(s.data for s in scores))
    chart = figure(1, len(names), width=4.2 * len(names), height=2.8)
    colours = {"plain": "#777777", "without them": "#cccccc", "Clamp-map": "#1f4e79"}
    for axis, name in zip(chart.axes[0], names, strict=True):
        chosen = [s for s in scores if s.data == name]
        places = np.arange(len(chosen))
        axis.bar(
            places, [s.value for s in chosen], color=[colours.get(s.way, "#9dc3e6") for s in chosen]
        )
        for x, s in zip(places, chosen, strict=True):
            axis.text(x, s.value, f"{s.value:.3f}", ha="center", va="bottom", fontsize=8)
        axis.set_xticks(places, [s.way for s in chosen], fontsize=8)
        axis.set_title(f"{name}: {chosen[0].measure} on unseen rows", fontsize=10)
        low = min(s.value for s in chosen)
        floor = 0.5 if chosen[0].measure == "AUC" and low > 0.5 else min(0, 1.3 * low)
        axis.set_ylim(floor, max(s.value for s in chosen) * 1.1)
    save(chart, path)
