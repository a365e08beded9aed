"""ONNX files: onnxruntime predicts from raw columns as we do, or the booster is refused by name."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest

import opboost as op

BOOSTERS = ["xgboost", "lightgbm", "gbdt", "hist-gbdt"]
GRID = op.Domain(1, 8)
SEED = op.SeededRng(7)
CITIES = ["north", "south", "east"]
SIZES = ["small", "medium", "large"]


def people(n=300):
    """Return columns of every kind: numbers, dates, categories with and without order, own ones."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "colour": rng.choice(["red", "blue"], n),
            "pay": rng.normal(3000, 1000, n),
            "city": rng.choice(CITIES, n),
            "tenure": rng.uniform(0, 20, n).round(1),
            "born": pd.Timestamp("1990-01-01") + pd.to_timedelta(rng.integers(0, 9000, n), "D"),
            "size": rng.choice(SIZES, n),
            "zone": rng.integers(1, 4, n),
        }
    )
    odds = table["pay"] / 1000 + table["tenure"] / 10 + (table["city"] == "north") - 4
    return table, odds + rng.logistic(size=n) / 2


def estimator(booster, kind=op.OpBoostClassifier, **changes):
    rounds = "max_iter" if booster == "hist-gbdt" else "n_estimators"
    mechanism = {
        "pay": op.ClampMap(GRID, 3.0),
        "born": op.ClampMap(GRID, 3.0),
        "city": op.UnaryEncoding(CITIES, 5.0),
        "size": op.ClampMap(op.Domain(1, 3), 3.0),
        "zone": op.RandomizedResponse(op.Domain(1, 3), 3.0),
    }
    arguments = {
        "bounds": {
            "pay": (0, 6000),
            "born": (pd.Timestamp("1990-01-01"), pd.Timestamp("2020-01-01")),
        },
        "categories": {"size": op.Ordered(SIZES), "zone": [1, 2, 3]},
        "noise_rng": SEED,
        "random_state": 0,
        "denoise": False,
        "booster_params": {rounds: 6},
        **changes,
    }
    return kind(arguments.pop("mechanism", mechanism), booster=booster, **arguments)


def ran(model, table, folder):
    """Return the outputs of onnxruntime for a table, by name."""
    file = folder / "m.onnx"
    model.save_onnx(file)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(None, model.onnx_inputs(table)), strict=True))


def near_cuts(model, table):
    """Return rows on both sides of every threshold, one 32-bit step or more away from it."""
    rng = np.random.default_rng(1)
    rows = table.sample(600, replace=True, random_state=0).reset_index(drop=True)
    for name in ("pay", "tenure"):
        place = model.model_features_.index(name)
        cuts = np.array(model._exported("raw").cuts().get(place, [1.0]))
        cuts = np.float32(cuts[np.abs(cuts) < 1e30])
        around = [
            np.nextafter(np.nextafter(cuts, s), s) for s in (np.float32(-9e9), np.float32(9e9))
        ]
        rows[name] = rng.choice(np.concatenate([*around, cuts * 1.5]).astype(float), len(rows))
    return rows


@pytest.mark.parametrize("booster", BOOSTERS)
def test_onnxruntime_predicts_classes_as_we_do(booster, tmp_path):
    table, odds = people()
    model = estimator(booster).fit(table, np.where(odds > 0, "yes", "no"))
    for rows in (table, near_cuts(model, table)):
        found = ran(model, rows, tmp_path)
        np.testing.assert_allclose(found["probability"], model.predict_proba(rows), atol=2e-6)
        assert found["prediction"].tolist() == model.predict(rows).tolist()
    stored = {p.key: p.value for p in onnx.load(tmp_path / "m.onnx").metadata_props}
    assert stored["guarantee"] == str(model.guarantee_)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_onnxruntime_predicts_several_classes_and_values_as_we_do(booster, tmp_path):
    table, odds = people()
    model = estimator(booster).fit(table, np.digitize(odds, [-0.5, 0.5]))
    found = ran(model, table, tmp_path)
    np.testing.assert_allclose(found["probability"], model.predict_proba(table), atol=2e-6)
    assert found["prediction"].tolist() == model.predict(table).tolist()
    model = estimator(booster, op.OpBoostRegressor).fit(table, 100 * odds)
    found = ran(model, table, tmp_path)["prediction"][:, 0]
    np.testing.assert_allclose(found, model.predict(table), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm", "hist-gbdt"])
@pytest.mark.parametrize("policy", ["constant", "flag", "symbol"])
def test_a_gap_goes_the_same_way(booster, policy, tmp_path):
    table, odds = people()
    rng = np.random.default_rng(1)
    for name in ("pay", "size", "tenure", "colour"):
        table[name] = table[name].where(rng.random(len(table)) > 0.2)
    missing = {
        "constant": {"pay": 4100.0, "size": "medium"},
        "flag": {"pay": op.Flag(8.0, 4100.0), "size": op.Flag(8.0, "large")},
        "symbol": {"pay": "symbol", "size": "symbol"},
    }[policy]
    noise = op.WindowMap if policy == "symbol" else op.ClampMap
    mechanism = {"pay": noise(GRID, 3.0), "size": noise(op.Domain(1, 3), 3.0)}
    table = table[["colour", "pay", "tenure", "size"]]
    model = estimator(
        booster,
        mechanism=mechanism,
        bounds={"pay": (0, 6000)},
        categories={"size": op.Ordered(SIZES)},
        missing=missing,
    ).fit(table, odds > 0)
    found = ran(model, table, tmp_path)
    np.testing.assert_allclose(found["probability"], model.predict_proba(table), atol=2e-6)


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm"])
def test_counts_and_categories_of_the_label_party_that_are_new(booster, tmp_path):
    table, odds = people()
    objective = "count:poisson" if booster == "xgboost" else "poisson"
    params = {"objective": objective, "n_estimators": 6}
    model = estimator(booster, op.OpBoostRegressor, booster_params=params)
    model.fit(table, np.exp(odds).round())
    rows = table.assign(colour="green")
    found = ran(model, rows, tmp_path)["prediction"][:, 0]
    np.testing.assert_allclose(found, model.predict(rows), rtol=1e-5)


def test_an_undeclared_category_of_a_private_column_is_refused_by_the_runtime(tmp_path):
    table, odds = people()
    model = estimator("xgboost").fit(table, odds > 0)
    model.save_onnx(tmp_path / "m.onnx")
    inputs = model.onnx_inputs(table)
    inputs["city"][5] = "atlantis"
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    with pytest.raises(Exception, match="out of data bounds"):
        session.run(None, inputs)


def test_what_has_no_onnx_form_is_refused_by_name_and_nothing_is_written(tmp_path):
    table, odds = people()

    class Constant:
        left_up_to, task, native = False, "binary", None

        def cuts(self):
            return {}

        def replaced(self, by):
            return self

        def predict(self, X):
            return np.full((len(X), 2), 0.5)

    class Own:
        def train(self, problem):
            return Constant()

    file = tmp_path / "m.onnx"
    with pytest.raises(op.ParameterError, match=r"your own booster \(Constant\) has no ONNX form"):
        estimator(Own(), booster_params=None).fit(table, odds > 0).save_onnx(file)
    forest = {"boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5, "n_estimators": 6}
    model = estimator("lightgbm", op.OpBoostRegressor, booster_params=forest).fit(table, odds)
    with pytest.raises(op.ParameterError, match="not a sum over its trees"):
        model.save_onnx(file)
    params = {"objective": "quantile", "n_estimators": 6}
    model = estimator("lightgbm", op.OpBoostRegressor, booster_params=params).fit(table, odds)
    with pytest.raises(op.ParameterError, match="no link for the objective 'quantile'"):
        model.save_onnx(file)
    mixed = table.assign(mixed=np.where(table["zone"] == 1, 0.5, 1.5))
    model = estimator("xgboost", categories={"mixed": [0.5, 1.5], "size": SIZES, "zone": [1, 2, 3]})
    model.set_params(
        mechanism={**model.mechanism, "mixed": op.RandomizedResponse(op.Domain(1, 2), 3.0)}
    )
    with pytest.raises(op.ColumnError, match="Column 'mixed' has categories that are neither"):
        model.fit(mixed, odds > 0).save_onnx(file)
    assert not file.exists()


def test_gaps_that_onnx_cannot_tell_are_refused(tmp_path):
    table, odds = people()
    model = estimator("xgboost").fit(table, odds > 0)
    with pytest.raises(op.ColumnError, match="Column 'zone' has gaps, which ONNX cannot tell"):
        model.onnx_inputs(table.assign(zone=table["zone"].where(table["zone"] > 1)))
