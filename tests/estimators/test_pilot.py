"""A pilot in the estimators: two rounds inside fit, every row released and charged once."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import opboost as op

PARAMS = {"n_estimators": 10, "max_depth": 2}


def table(rows=12_000, useless=10, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((rows, useless + 1)), columns=[f"c{k}" for k in range(useless + 1)])
    y = (X["c0"] + 0.1 * rng.normal(size=rows) > 0.5).astype(int)
    return X, y


def model(kind=op.OpBoostClassifier, seed=1, **budget):
    return kind(
        bounds=(0, 1),
        budget=op.Budget.record(4, **({"pilot": 0.25} | budget)),
        booster_params=PARAMS,
        denoise=True,
        random_state=0,
        noise_rng=None if seed is None else op.SeededRng(seed),
    )


def test_the_useful_column_is_sent_more_often_and_nobody_releases_twice():
    X, y = table()
    m = model().fit(X, y)
    assert m.column_weights_["c0"] == 1.0
    assert np.median([w for name, w in m.column_weights_.items() if name != "c0"]) <= 0.25
    assert set(m.column_weights_.values()) <= {1.0, 0.5, 0.25, 0.125}
    released = m.desensitizer_.transform(X)  # the same table: what fit released
    sent = released.notna()
    assert (sent.sum(axis=1) == m.plan_.columns_per_row).all()
    assert sent["c0"].mean() > 2 * sent["c5"].mean()
    assert m.releases_ == 1
    assert "released first" in str(m.plan_)
    assert m.predict(X).mean() == pytest.approx(0.5, abs=0.1)


def test_later_rows_are_released_by_the_weights():
    X, y = table()
    m = model().fit(X, y)
    sent = m.desensitizer_.transform(table(seed=5)[0]).notna()
    assert (sent.sum(axis=1) == m.plan_.columns_per_row).all()
    assert sent["c0"].mean() > 2.5 * sent["c5"].mean()


def test_a_regression_weighs_columns_too_and_the_promise_stands():
    X, _ = table()
    m = model(op.OpBoostRegressor, seed=None).fit(X, np.sin(3 * X["c0"]))
    assert m.column_weights_["c0"] == 1.0
    assert m.guarantee_.total <= 4


def test_without_a_pilot_nothing_changes():
    X, y = table(3_000)
    m = model(pilot=0.0).fit(X, y)
    assert m.column_weights_ is None


def test_weights_that_a_pilot_told_elsewhere_are_used():
    X, y = table(4_000)
    weights = dict.fromkeys(X.columns, 0.125) | {"c3": 1.0}
    m = model(pilot=0.0, weights=weights).fit(X, y)
    sent = m.desensitizer_.transform(X).notna().mean()
    assert sent["c3"] > 3 * sent["c1"]


def test_bad_pilots_are_refused_before_anything_is_drawn():
    X, y = table(3_000)
    with pytest.raises(op.ParameterError, match="has 750, too few"):
        model().fit(X, y)
    d = op.Desensitizer(bounds=(0, 1), budget=op.Budget.record(4, pilot=0.5))
    with pytest.raises(op.ParameterError, match="needs labels"):
        d.fit(X)
    with pytest.raises(op.ParameterError, match="needs labels"):
        d.fit_transform(X)


def test_people_who_are_predicted_send_what_matters():
    X, y = table(useless=30)
    new, truth = table(useless=30, seed=8)
    found = []
    for pilot in (0.0, 0.25):
        chances = model(pilot=pilot).fit(X, y).predict_proba(new, desensitize=True)[:, 1]
        found.append(roc_auc_score(truth, chances))
    assert found[1] > found[0] + 0.05, found
