"""Given our model and a table like the training table, stock libraries predict right or refuse."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
import polars as pl
import pytest
import skops.io as sio
import xgboost

import opboost as op
from opboost.boosting.sklearn_backend import TREE_TYPES

BOOSTERS = ["xgboost", "lightgbm", "gbdt", "hist-gbdt"]
GAPS_TAKEN = ["xgboost", "lightgbm", "hist-gbdt"]
GRID = op.Domain(1, 10)
SEED = op.SeededRng(7)
GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0" / "estimators"


def people(n=400):
    """Return mixed own and private columns, with values on cell edges and beyond the bounds."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "tenure": rng.uniform(0, 1, n).round(1),  # own, in front
            "share": (rng.integers(-2, 13, n) / 10),  # 0.3 is on an edge in 32 bits, not in 64
            "visits": rng.integers(0, 50, n),
            "pay": rng.normal(3000, 1000, n),
        }
    )
    odds = 6 * table["share"] + 4 * table["tenure"] + table["pay"] / 1000 - 7
    return table, (odds + rng.logistic(size=n) > 0).astype(int)


def classifier(booster, **changes):
    arguments = {
        "bounds": {"share": (0, 1), "pay": (0, 6000)},
        "noise_rng": SEED,
        "random_state": 0,
        "booster_params": {"max_iter" if booster == "hist-gbdt" else "n_estimators": 8},
        **changes,
    }
    mechanism = arguments.pop("mechanism", op.ClampMap(GRID, 3.0))
    return op.OpBoostClassifier(mechanism, booster=booster, **arguments)


def loaded(model, booster, folder, **how):
    """Return the stock library's model, loaded from its own file."""
    file = folder / {"xgboost": "m.json", "lightgbm": "m.txt"}.get(booster, "m.skops")
    model.save_model(file, **how)
    if booster == "xgboost":
        stock = xgboost.XGBClassifier()
        stock.load_model(file)
        return stock.predict_proba
    if booster == "lightgbm":
        return lightgbm.Booster(model_file=file).predict
    return sio.load(file, trusted=list(TREE_TYPES)).predict_proba


def chances(predict, rows):
    found = np.asarray(predict(rows))
    return np.column_stack([1 - found, found]) if found.ndim == 1 else found


def assert_same(predict, rows, model, table):
    np.testing.assert_allclose(chances(predict, rows), model.predict_proba(table), atol=1e-6)


REFUSED = (ValueError, TypeError, lightgbm.basic.LightGBMError)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_a_stock_library_predicts_the_table_of_the_training(booster, tmp_path):
    X, y = people()
    model = classifier(booster).fit(X, y)
    stock = loaded(model, booster, tmp_path)
    assert_same(stock, X, model, X)
    assert_same(stock, model.model_matrix(X), model, X)
    assert list(model.model_matrix(X).columns) == model.model_features_ == list(X.columns)
    wide = X.assign(pay=X["pay"] * 3 - 3000, share=X["share"] + 1e-9)
    assert_same(stock, wide, model, wide)
    again = op.load(saved(model, tmp_path))
    assert_same(loaded(again, booster, tmp_path), X, model, X)
    if booster != "lightgbm":  # which checks names only with validate_features=True
        with pytest.raises(REFUSED):
            stock(X[["share", "pay", "tenure", "visits"]].rename(columns={"pay": "salary"}))


def saved(model, folder):
    model.save(folder / "m.opboost")
    return folder / "m.opboost"


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("mapping", ["cells", "paper"])
def test_numbers_of_64_bits_go_the_way_of_our_own_rounding(booster, mapping, tmp_path):
    """Check values around every cut of the stock model and every edge of a cell."""
    X, y = people()
    model = classifier(booster, mapping=mapping).fit(X, y)
    stock = loaded(model, booster, tmp_path)
    rng = np.random.default_rng(1)
    near = {}
    for place, name in enumerate(X.columns):
        cuts = np.array(model._exported("raw").cuts().get(place, [0.0]))
        cuts = cuts[np.abs(cuts) < 1e30]
        points = [np.linspace(0, 1, 11), np.linspace(0, 6000, 11), cuts, np.float32(cuts)]
        values = np.concatenate([np.asarray(p, dtype=np.float64) for p in points])
        for _ in range(2):
            ulps = [np.nextafter(values, np.inf), np.nextafter(values, -np.inf)]
            values = np.unique(np.concatenate([values, *ulps, values * (1 + 2.0**-25)]))
        real = (values == 0) | (np.abs(values) > 1e-35)  # LightGBM treats other numbers as zero
        near[name] = rng.choice(values[real], 4000)
    rows = pd.DataFrame(near)
    assert_same(stock, rows, model, rows)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_several_classes_and_a_regression(booster, tmp_path):
    X, _ = people()
    y = np.digitize(X["pay"], [2500, 3500])
    model = classifier(booster).fit(X, y)
    assert_same(loaded(model, booster, tmp_path), X, model, X)
    reg = op.OpBoostRegressor(
        op.ClampMap(GRID, 3.0), bounds={"pay": (0, 6000)}, booster=booster, noise_rng=SEED
    ).fit(X, X["pay"] + X["visits"])
    stock = reg.model_
    rows = xgboost.DMatrix(X) if booster == "xgboost" else X
    np.testing.assert_allclose(stock.predict(rows), reg.predict(X), rtol=1e-6)


def with_categories(n=400):
    rng = np.random.default_rng(3)
    table, _ = people(n)
    table.insert(0, "city", rng.choice(["north", "south", "east"], n))
    table["kind"] = rng.choice(["a", "b"], n)
    table["colour"] = rng.choice(["red", "blue"], n)  # the label party's own
    y = ((table["city"] == "north") ^ (table["colour"] == "red")).astype(int)
    return table, y


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("dtype", ["object", "category"])
def test_categories_are_refused_as_they_are_and_taken_as_features(booster, dtype, tmp_path):
    table, y = with_categories()
    table = table.astype(dict.fromkeys(("city", "kind", "colour"), dtype))
    mechanism = {
        "city": op.UnaryEncoding(["north", "south", "east"], 6.0),
        "kind": op.RandomizedResponse(GRID, 3.0),
        "pay": op.ClampMap(GRID, 2.0),
    }
    model = classifier(
        booster, mechanism=mechanism, bounds={"pay": (0, 6000)}, categories={"kind": ["a", "b"]}
    ).fit(table, y)
    stock = loaded(model, booster, tmp_path)
    with pytest.raises(REFUSED):
        stock(table)
    cities = ["city=north", "city=south", "city=east"]
    kinds = ["kind=a", "kind=b", "colour=blue", "colour=red"]
    assert model.model_features_ == [*cities, "tenure", "share", "visits", "pay", *kinds]
    assert_same(stock, model.model_matrix(table), model, table)


@pytest.mark.parametrize("booster", BOOSTERS)
@pytest.mark.parametrize("levels", [["low", "mid", "high"], [1, 2, 3], [30, 10, 20]])
def test_ordered_categories_stay_in_grid_values_and_are_refused(booster, levels, tmp_path):
    rng = np.random.default_rng(0)
    step = rng.integers(0, 3, 600)
    table = pd.DataFrame({"own": rng.normal(size=600), "level": np.array(levels)[step]})
    model = classifier(
        booster,
        mechanism=op.ClampMap(op.Domain(1, 3), 3.0),
        bounds=None,
        categories={"level": op.Ordered(levels)},
    ).fit(table, step > 0)
    stock = loaded(model, booster, tmp_path)
    with pytest.raises(REFUSED):
        stock(table)
    assert model.model_features_[1] in ("level (grid)", "level_(grid)")
    assert_same(stock, model.model_matrix(table), model, table)


@pytest.mark.parametrize("booster", GAPS_TAKEN)
@pytest.mark.parametrize("policy", ["constant", "flag", "symbol"])
@pytest.mark.parametrize("seen", [True, False])
def test_a_missing_value_goes_the_same_way(booster, policy, seen, tmp_path):
    X, y = people()
    rng = np.random.default_rng(1)
    holes = X.assign(
        pay=X["pay"].where(rng.random(len(X)) > 0.2),
        tenure=X["tenure"].where(rng.random(len(X)) > 0.2),
    )
    missing = {"constant": 4100.0, "flag": op.Flag(8.0, 4100.0), "symbol": "symbol"}[policy]
    noise = op.WindowMap(GRID, 6.0) if policy == "symbol" else op.ClampMap(GRID, 3.0)
    model = classifier(booster, mechanism=noise, missing={"pay": missing}, denoise=False)
    model.fit(holes if seen else X, y)
    stock = loaded(model, booster, tmp_path)
    assert holes["pay"].isna().any()
    assert_same(stock, holes, model, holes)
    assert_same(stock, model.model_matrix(holes), model, holes)


def test_gradient_boosting_refuses_what_it_cannot_place(tmp_path):
    X, y = people()
    holes = X.assign(pay=X["pay"].where(X["pay"] > 2000))
    model = classifier("gbdt", missing={"pay": 1000.0}).fit(holes, y)
    stock = loaded(model, "gbdt", tmp_path)
    with pytest.raises(ValueError, match="NaN"):
        stock(holes)
    assert_same(stock, model.model_matrix(holes), model, holes)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_columns_whose_party_withholds_units_are_refused(booster, tmp_path):
    X, y = people()
    private = [
        op.PrivateColumn(n, op.NumericMapping(GRID, bounds), op.ClampMap(GRID, 3.0))
        for n, bounds in {"share": (0, 1), "pay": (0, 6000)}.items()
    ]
    own = X[["tenure", "visits"]]
    for units in ("raw", "grid"):
        party = op.FeatureParty(X[["share", "pay"]], private, units=units, name="shop")
        bank = op.LabelParty(own, y, booster=booster, denoise=False, random_state=0)
        model = bank.train([op.MemoryChannel(party)])
        table = X[["tenure", "visits", "share", "pay"]]
        for fitted in (model, op.load(saved(model, tmp_path))):
            stock = loaded(fitted, booster, tmp_path)
            if units == "raw":
                assert_same(stock, table, model, table)
                continue
            with pytest.raises(REFUSED):
                stock(table)
            cells = table.assign(**{c.name: c.mapping.to_grid(X[c.name]) for c in private})
            assert_same(stock, fitted.model_matrix(cells), model, cells)


def test_a_model_of_grid_values_refuses_raw_rows_and_takes_released_ones(tmp_path):
    X, y = people()
    for booster in BOOSTERS:
        model = classifier(booster, denoise=False).fit(X, y)
        stock = loaded(model, booster, tmp_path, units="grid")
        with pytest.raises(REFUSED):
            stock(X)
        released = model.model_matrix(X, units="grid", desensitize=True)
        np.testing.assert_allclose(
            chances(stock, released), model.predict_proba(X, desensitize=True), atol=1e-6
        )
        with pytest.raises(op.ParameterError, match="units='grid' to desensitize"):
            model.model_matrix(X, desensitize=True)
        with pytest.raises(op.ParameterError, match="'grid' or 'raw'; got 'metric'"):
            model.save_model(tmp_path / "x.json", units="metric")


@pytest.mark.parametrize("booster", BOOSTERS)
def test_arrays_have_no_names_and_go_by_place(booster, tmp_path):
    X, y = people()
    rows = X.to_numpy()
    model = classifier(booster, bounds={1: (0, 1), 3: (0, 6000)}).fit(rows, y)
    stock = loaded(model, booster, tmp_path)
    assert_same(stock, rows, model, rows)
    assert isinstance(model.model_matrix(rows), np.ndarray)


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm", "gbdt"])
def test_models_of_version_0_1_0_leave_in_raw_units_too(booster, tmp_path):
    model = op.load(GOLDEN / f"{booster}.opboost")
    rows = pd.read_csv(GOLDEN / "rows.csv")
    told = json.loads((GOLDEN / f"{booster}.json").read_text())
    stock = loaded(model, booster, tmp_path)
    found = chances(stock, model.model_matrix(rows))[:, 1]
    np.testing.assert_allclose(found, told, atol=1e-6)


@pytest.mark.parametrize("booster", BOOSTERS)
def test_names_that_a_library_cannot_hold_are_spelled_otherwise(booster, tmp_path):
    X, y = people()
    names = {"tenure": "a b", "share": "a_b", "visits": 'x["1"]<2', "pay": "Lohn: größer"}
    table = X.rename(columns=names)
    model = classifier(booster, bounds={"a_b": (0, 1), names["pay"]: (0, 6000)}).fit(table, y)
    stock = loaded(model, booster, tmp_path)
    assert len(set(model.model_features_)) == 4
    assert_same(stock, model.model_matrix(table), model, table)


def test_other_kinds_of_tables_and_copies(tmp_path):
    X, y = people()
    frame = pl.DataFrame(X)
    model = classifier("xgboost").fit(frame, y)
    rows = model.model_matrix(frame)
    assert isinstance(rows, pl.DataFrame)
    assert_same(loaded(model, "xgboost", tmp_path), rows.to_pandas(), model, frame)
    assert model.model_ is model.model_
    assert "_stock" not in pickle.loads(pickle.dumps(model)).__dict__
    first = model.model_
    assert model.fit(frame, 1 - y).model_ is not first


def test_a_booster_of_ones_own_keeps_its_features():
    class Constant:
        left_up_to, task, native = False, "binary", "a model"

        def cuts(self):
            return {}

        def replaced(self, by):
            return self

        def predict(self, X):
            return np.full((len(X), 2), 0.5)

    class Own:
        def train(self, problem):
            return Constant()

    X, y = people()
    model = classifier(Own(), booster_params=None, denoise=False).fit(X, y)
    assert model.model_ == "a model"
    assert model.model_features_ == ["share", "pay", "tenure", "visits"]
    with pytest.raises(op.ParameterError, match=r"Constant\) has no form in other units"):
        model.save_model("x")


def test_zero_is_no_gap_of_codes():
    X, y = people()
    params = {"zero_as_missing": True}
    with pytest.raises(op.ParameterError, match="Leave it out of booster_params"):
        classifier("lightgbm", booster_params=params).fit(X, y)
