"""``denoise="auto"`` on other data sets: docs/denoising-results.md.  Needs ``OPBOOST_DATA``."""

import statistics
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets as toy
from sklearn.metrics import accuracy_score, r2_score, roc_auc_score
from sklearn.model_selection import train_test_split

from claims.claim import LEARNING
from claims.denoising import HERE
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.mechanisms import ClampMap
from opboost.randomness.streams import SeededRng
from opboost_lab.accuracy import GRID, PARAMS
from opboost_lab.data.datasets import folder

EPSILONS = (0.08, 0.64, 1.28)
SEEDS = range(2)
Set = tuple[Any, Any, Any, str]
"""Rows, labels, bounds, and the measure."""


def _ranges(X: Any) -> dict[int, tuple[float, float]]:
    return {j: (X[:, j].min(), X[:, j].max()) for j in range(X.shape[1])}


def census() -> Set:
    """Return 60,000 people of the official training half, whose measurements are private."""
    numbers = {
        "AAGE": (0, 90), "AHRSPAY": (0, 9999), "CAPGAIN": (0, 99_999), "CAPLOSS": (0, 4608),
        "DIVVAL": (0, 99_999), "NOEMP": (0, 6), "WKSWORK": (0, 52),
    }  # fmt: skip
    own = ["AHGA", "AMJOCC", "ASEX", "AMARITL", "ACLSWKR"]
    file = folder() / "industrial_standin_kdd_census_train.csv.gz"
    table = pd.read_csv(file, keep_default_na=False).sample(60_000, random_state=0)
    return table[[*numbers, *own]], (table["TARGET"] == "50000+").to_numpy(int), numbers, "AUC"


CANCER, DIABETES = toy.load_breast_cancer(return_X_y=True), toy.load_diabetes(return_X_y=True)
FRIEDMAN_2 = {0: (0, 100), 1: (40 * np.pi, 560 * np.pi), 2: (0, 1), 3: (1, 11)}
MADE = {"n_informative": 8, "n_redundant": 4, "n_clusters_per_class": 3, "class_sep": 0.8}
SETS: dict[str, Callable[[], Set]] = {
    "digits": lambda: (*toy.load_digits(return_X_y=True), (0, 16), "accuracy"),
    "breast cancer": lambda: (*CANCER, _ranges(CANCER[0]), "AUC"),
    "diabetes": lambda: (*DIABETES, _ranges(DIABETES[0]), "R²"),
    "Friedman 1": lambda: (*toy.make_friedman1(10_000, noise=1, random_state=0), (0, 1), "R²"),
    "Friedman 2": lambda: (
        *toy.make_friedman2(10_000, noise=50, random_state=0), FRIEDMAN_2, "R²",
    ),
    "make_classification": lambda: (
        *toy.make_classification(20_000, 20, random_state=0, **MADE), (-6, 6), "AUC",
    ),
    "Census-Income KDD": census,
}  # fmt: skip


@cache
def gain(name: str, epsilon: float, seed: int) -> float:
    """Return how much higher "auto" scores than training on noisy rows."""
    X, y, bounds, measure = SETS[name]()
    X, X_test, y, y_test = train_test_split(X, y, random_state=seed)
    found = []
    for denoise in ("auto", False):
        kind = OpBoostRegressor if measure == "R²" else OpBoostClassifier
        model = kind(
            ClampMap(GRID, epsilon),
            bounds=bounds,
            booster_params=PARAMS["xgboost"],
            noise_rng=SeededRng(seed),
            random_state=seed,
            denoise=denoise,
        ).fit(X, y)
        if measure == "AUC":
            found.append(roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]))
        else:
            score = r2_score if measure == "R²" else accuracy_score
            found.append(score(y_test, model.predict(X_test)))
    return float(found[0] - found[1])


def gains(name: str) -> list[float]:
    return [statistics.mean(gain(name, e, s) for s in SEEDS) for e in EPSILONS]


COVERS = LEARNING
CLAIMS = [
    HERE.at_least(
        f"Clamp-map, {name}: the least that denoising gains at ε .08, .64 or 1.28",
        -0.005,
        partial(gains, name),
        middle=min,
        short=name in ("diabetes", "Friedman 1"),
    )
    for name in SETS
]
