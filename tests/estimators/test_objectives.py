"""Special objectives for counts and for amounts that are often zero, judged by their deviance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_poisson_deviance, mean_tweedie_deviance

import opboost as op
from opboost.errors import DataError

ROWS = 8_000
BOUNDS = {"age": (18, 90), "power": (0, 200)}
POISSON = {
    "xgboost": {"objective": "count:poisson"},
    "lightgbm": {"objective": "poisson"},
    "hist-gbdt": {"loss": "poisson"},
}
TWEEDIE = {"xgboost": {"objective": "reg:tweedie"}, "lightgbm": {"objective": "tweedie"}}


def insured(seed):
    """Return people, how many claims each made in a year, and what the claims cost."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"age": rng.uniform(18, 90, ROWS), "power": rng.uniform(0, 200, ROWS)})
    rate = np.exp(-2.5 + 1.5 * (X["age"] < 30) + X["power"] / 100)
    claims = rng.poisson(rate)
    return X, claims, rng.gamma(2.0 * np.maximum(claims, 1), 0.5) * (claims > 0)


def predicted(booster, params, X, y, X_test):
    small = {"n_estimators": 40} if booster != "hist-gbdt" else {"max_iter": 40}
    model = op.OpBoostRegressor(
        bounds=BOUNDS,
        budget=op.Budget.record(6),
        booster=booster,
        booster_params={**small, **params},
        random_state=1,
        noise_rng=op.SeededRng(1),
    ).fit(X, y)
    return model.predict(X_test), model.predict(X_test, desensitize=True)


@pytest.mark.parametrize("booster", POISSON)
def test_a_poisson_objective_is_better_at_counts_than_their_mean(booster):
    (X, y, _), (X_test, y_test, _) = insured(0), insured(1)
    clean, released = predicted(booster, POISSON[booster], X, y, X_test)
    assert clean.min() > 0
    mean = mean_poisson_deviance(y_test, np.full(ROWS, y.mean()))
    found = mean_poisson_deviance(y_test, clean)
    best = mean_poisson_deviance(
        y_test, np.exp(-2.5 + 1.5 * (X_test["age"] < 30) + X_test["power"] / 100)
    )
    assert mean - found > 0.75 * (mean - best)
    assert mean_poisson_deviance(y_test, released) < mean


@pytest.mark.parametrize("booster", TWEEDIE)
def test_a_tweedie_objective_is_better_at_costs_than_their_mean(booster):
    (X, _, y), (X_test, _, y_test) = insured(0), insured(1)
    clean, released = predicted(booster, TWEEDIE[booster], X, y, X_test)
    assert clean.min() > 0

    def deviance(guess):
        return mean_tweedie_deviance(y_test, guess, power=1.5)

    mean = deviance(np.full(ROWS, y.mean()))
    assert mean - deviance(clean) > 0.05 * mean
    assert deviance(released) < mean


@pytest.mark.parametrize("objective", ["count:poisson", "reg:tweedie"])
def test_a_negative_count_is_refused_before_anything_is_drawn(objective):
    X, y, _ = insured(0)
    y = y.astype(float)
    y[3] = -2
    params = {"objective": objective}
    model = op.OpBoostRegressor(bounds=BOUNDS, budget=op.Budget.record(6), booster_params=params)
    with pytest.raises(DataError, match=rf"{objective} needs labels of zero or more, and 1 is"):
        model.fit(X, y)
    with pytest.raises(DataError, match=r"zero or more"):
        op.LabelParty(None, y, booster_params=params, task="regress")
    with pytest.raises(DataError, match=r"all are zero"):
        model.fit(X, np.zeros(ROWS))
