"""Bins computed without a sketch equal those that a sketch finds."""

from __future__ import annotations

import numpy as np
import pytest
import xgboost as xgb

from opboost.boosting import Problem, make_booster
from opboost.boosting.few_values import value_table


def codes(gaps: bool, rows: int = 3000) -> np.ndarray:
    rng = np.random.default_rng(4)
    X = rng.integers(0, [2, 10, 33, 256, 1], (rows, 5)).astype(np.uint8)
    X[:, 1] += 40
    if not gaps:
        return X
    X = np.where(rng.random(X.shape) < 0.6, np.nan, X).astype(np.float32)
    X[:, 4] = np.nan
    return X


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weighted", ["not", "all", "some"])
def test_the_model_is_that_of_a_sketch_byte_for_byte(gaps, weighted, monkeypatch):
    rng, X = np.random.default_rng(5), codes(gaps)
    y = np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2]) % 7 + rng.normal(size=len(X))
    weight = None if weighted == "not" else rng.random(len(X))
    if weighted == "some":  # values of rows with weight zero are not cuts
        weight = np.where(np.isin(X, [45, 7, 200]).any(axis=1), 0.0, weight)
    problem = Problem(X, y, "regression", weight=weight, seed=0)
    booster = make_booster("xgboost", {"n_estimators": 20, "max_depth": 4})
    found = booster.train(problem).native.save_raw("json")
    tables = []
    monkeypatch.setattr(
        "opboost.boosting.xgboost_backend.value_table", lambda *given: tables.append(given)
    )
    assert booster.train(problem).native.save_raw("json") == found
    assert len(tables) == 1


@pytest.mark.parametrize("gaps", [False, True])
def test_the_cuts_of_the_values_are_those_of_all_rows(gaps):
    X = codes(gaps)
    sketched = xgb.QuantileDMatrix(X, max_bin=256).get_quantile_cut()
    known = xgb.QuantileDMatrix(value_table(X, 256), max_bin=256).get_quantile_cut()
    for a, b in zip(sketched, known, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("strange", [0.5, -1.0, 256.0, np.inf])
def test_other_values_are_left_to_the_sketch(strange):
    X = np.zeros((5000, 2), dtype=np.float32)
    assert value_table(X, 256) is not None
    for row in (3, 4000):
        Z = X.copy()
        Z[row, 1] = strange
        assert value_table(Z, 256) is None


def test_more_values_than_bins_are_left_to_the_sketch():
    X = np.arange(200, dtype=np.uint8)[:, None]
    assert value_table(X, 200) is not None
    assert value_table(X, 199) is None
