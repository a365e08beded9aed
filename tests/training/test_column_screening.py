"""Uninformative columns of wide tables are left out of the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import opboost as op
from opboost.training import column_screening
from opboost.training.column_screening import screened
from opboost.training.released_columns import from_sample
from opboost.training.targets import Target

PARAMS = {"n_estimators": 30, "max_depth": 3}


def table(rows=12_000, columns=40, seed=0):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((rows, columns)), columns=[f"c{k}" for k in range(columns)])
    kinds = np.where(rng.random(rows) < 0.8, X["c1"] > 0.5, rng.random(rows) < 0.5)
    X["kind"] = np.where(kinds, "x", "y")
    X["other"] = rng.choice(list("uvw"), rows)
    y = (X["c0"] + X["c1"] + 0.2 * rng.normal(size=rows) > 1).astype(int)
    return X, y


def model(**more):
    X, _ = table(1)
    return op.OpBoostClassifier(
        bounds={n: (0, 1) for n in X if n.startswith("c")},
        categories={"kind": ["x", "y"], "other": list("uvw")},
        budget=op.Budget.record(4, **more),
        booster_params=PARAMS,
        denoise=True,
        random_state=0,
        noise_rng=op.SeededRng(2),
    )


def test_useless_columns_are_left_out_and_useful_ones_stay():
    X, y = table()
    m = model().fit(X, y)
    used = {n for n, gain in zip(X.columns, m.feature_importances_, strict=True) if gain > 0}
    assert {"c0", "c1"} <= used
    assert len(used) < 15
    assert sum(share == 0 for share in m.sent_shares_.values()) > 25
    held, truth = table(seed=9)
    assert roc_auc_score(truth, m.predict_proba(held)[:, 1]) > 0.85


def test_a_model_without_them_is_saved_and_predicts_released_rows(tmp_path):
    X, y = table()
    m = model(pilot=0.2).fit(X, y)
    held, truth = table(seed=9)
    m.save(tmp_path / "model.opboost")
    again = op.load(tmp_path / "model.opboost")
    assert np.array_equal(again.predict_proba(held), m.predict_proba(held))
    assert again.sent_shares_ == m.sent_shares_
    assert roc_auc_score(truth, m.predict_proba(held, desensitize=True)[:, 1]) > 0.55


def test_screening_helps_a_wide_table(monkeypatch):
    X, y = table()
    held, truth = table(seed=9)
    found = []
    for least in (30, 1_000):
        monkeypatch.setattr(column_screening, "MIN_COLUMNS", least)
        found.append(roc_auc_score(truth, model().fit(X, y).predict_proba(held)[:, 1]))
    assert found[0] > found[1] + 0.005


@pytest.mark.parametrize(("columns", "sent"), [(20, 0.05), (40, 0.5)])
def test_narrow_tables_and_columns_that_many_send_stay(columns, sent):
    X, y = table(2_000, columns)
    d = op.Desensitizer(
        bounds={n: (0, 1) for n in X if n.startswith("c")},
        budget=op.Budget.record(4),
        remainder="drop",
    )
    _, released = d.fit_release(X)
    release = from_sample(d.columns_, released, sent)
    assert screened(release, Target.of_classes(y)) == release
