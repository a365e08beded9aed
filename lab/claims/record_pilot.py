"""A pilot on a wide table of 5 useful and 95 useless columns, total 4: docs/choosing.md."""

from functools import cache, partial
from statistics import fmean
from typing import Any

import numpy as np
from scipy.stats import norm
from sklearn.metrics import roc_auc_score

import opboost as op
from claims.claim import LEARNING, Page

HERE = Page("docs/choosing.md", fmean)
SEEDS = range(10, 15)
ROWS, TEST_ROWS = 50_000, 20_000
USEFUL, USELESS = 5, 95
PARAMS = {"n_estimators": 80, "max_depth": 3, "learning_rate": 0.1}
PILOTS = {"even": 0.0, "pilot": 0.2}


def table(seed: int, rows: int) -> tuple[Any, Any]:
    """Return rows whose first five columns are noisy measurements of what the label depends on."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=rows)
    X = rng.random((rows, USEFUL + USELESS))
    for j in range(USEFUL):
        X[:, j] = norm.cdf((cause + 0.5 * rng.normal(size=rows)) / np.sqrt(1.25))
    return X, (cause + 0.3 * rng.normal(size=rows) > 0).astype(int)


@cache
def scores(seed: int, way: str) -> dict[str, float]:
    """Return the AUC on clean test rows, and on test rows released under the same budget."""
    X, y = table(seed, ROWS)
    test, truth = table(100 + seed, TEST_ROWS)
    model = op.OpBoostClassifier(
        bounds=(0, 1),
        budget=op.Budget.record(4, pilot=PILOTS[way]),
        booster_params=PARAMS,
        random_state=0,
        noise_rng=op.SeededRng(seed),
    ).fit(X, y)
    return {
        "clean": float(roc_auc_score(truth, model.predict_proba(test)[:, 1])),
        "released": float(roc_auc_score(truth, model.predict_proba(test, desensitize=True)[:, 1])),
    }


def gains(rows: str) -> list[float]:
    """Return how much higher the AUC is after a pilot than with an even choice of columns."""
    return [scores(seed, "pilot")[rows] - scores(seed, "even")[rows] for seed in SEEDS]


COVERS = LEARNING
CLAIMS = [
    HERE.at_least(
        f"5 useful of 100 columns, 50,000 rows, total 4: AUC of a pilot of 0.2 over an even "
        f"choice, {rows} test rows",
        target,
        partial(gains, rows),
    )
    for rows, target in (("released", 0.10), ("clean", -0.01))
]
