"""The importances of columns and parties."""

from __future__ import annotations

import lightgbm
import numpy as np
import pandas as pd
import pytest

import opboost as op

GRID = op.Domain(1, 10)
M = op.ClampMap(GRID, 3.0)
PARAMS = {
    "xgboost": {"n_estimators": 8},
    "lightgbm": {"n_estimators": 8},
    "gbdt": {"n_estimators": 8},
    "hist-gbdt": {"max_iter": 8},
}


def customers(n=600):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "tenure": rng.uniform(0, 10, n),
            "city": rng.choice(["north", "south", "east"], n),
            "pay": rng.uniform(0, 100, n),
            "age": rng.integers(17, 91, n),
            "calls": rng.uniform(0, 100, n),
        }
    )
    odds = table["pay"] / 10 + 4 * (table["city"] == "north") + table["tenure"] / 10
    return table, (odds + rng.normal(0, 0.5, n) > 7).astype(int)


@pytest.mark.parametrize("booster", PARAMS)
def test_categories_count_for_their_column(booster):
    table, y = customers()
    mechanism = {"pay": M, "city": op.UnaryEncoding(["north", "south", "east"], 6.0), "age": M}
    model = op.OpBoostClassifier(
        mechanism,
        bounds={"pay": (0, 100), "age": (17, 90)},
        booster=booster,
        booster_params=PARAMS[booster],
        noise_rng=op.SeededRng(1),
        random_state=0,
    ).fit(table, y)
    found = op.importances(model)
    assert list(found.columns)[:2] == ["pay", "city"]
    assert sum(found.columns.values()) == pytest.approx(1)
    assert list(found.columns.values()) == sorted(found.columns.values(), reverse=True)
    assert set(found.columns) == set(table.columns)
    assert (found.parties, found.held_by) == ({}, {})
    assert str(found).splitlines()[0].split() == ["column", "share"]
    if booster == "hist-gbdt":
        trees = [p.nodes for rounds in model.model_._predictors for p in rounds]
        gain = dict.fromkeys(model.model_features_, 0.0)
        for node in np.concatenate(trees):
            if not node["is_leaf"]:
                gain[model.model_features_[node["feature_idx"]]] += node["gain"]
        assert found.columns["pay"] == pytest.approx(gain["pay"] / sum(gain.values()))
    if booster == "lightgbm":
        assert type(model.model_) is lightgbm.Booster
        gain = model.model_.feature_importance("gain")
        place = model.model_features_.index("pay")
        assert found.columns["pay"] == pytest.approx(gain[place] / gain.sum())


def federation():
    table, y = customers()
    declared = {"pay": (0, 100), "age": (17, 90), "calls": (0, 100)}
    private = {n: op.PrivateColumn(n, op.NumericMapping(GRID, b), M) for n, b in declared.items()}
    shop = op.FeatureParty(table[["pay", "age"]], [private["pay"], private["age"]], name="shop")
    telco = op.FeatureParty(table[["calls"]], [private["calls"]], name="telco")
    bank = op.LabelParty(table[["tenure", "city"]], y, booster_params={"n_estimators": 8})
    return bank.train([op.MemoryChannel(shop), op.MemoryChannel(telco)])


def test_parties_add_up_to_their_columns(tmp_path):
    model = federation()
    model.save(tmp_path / "m.opboost")
    for fitted in (model, op.load(tmp_path / "m.opboost")):
        found = op.importances(fitted)
        assert next(iter(found.parties)) == "shop"
        assert set(found.parties) == {"shop", "telco", "label party"}
        assert found.parties["shop"] == pytest.approx(found.columns["pay"] + found.columns["age"])
        assert found.parties["label party"] == pytest.approx(
            found.columns["tenure"] + found.columns["city"]
        )
        assert found.held_by["calls"] == "telco"
        assert "shop" in str(found)


def test_the_picture_names_columns_and_parties(tmp_path):
    found = op.importances(federation())
    found.draw(tmp_path / "worth.svg")
    drawn = (tmp_path / "worth.svg").read_text()
    for words in (*found.columns, *found.parties, "by column", "by party"):
        assert f"<!-- {words} -->" in drawn
    found.draw(tmp_path / "worth.png")
    assert (tmp_path / "worth.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(op.ParameterError, match=r"'worth\.txt'"):
        found.draw(tmp_path / "worth.txt")
