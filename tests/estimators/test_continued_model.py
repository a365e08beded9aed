"""More trees on newly released people need the same columns and declarations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import opboost as op
from opboost.errors import ColumnError, DataError, ParameterError
from robustness.command_line import run

BOUNDS = {"a": (0, 10), "b": (0, 10)}
BUDGET = op.Budget.record(6)


def people(rows, seed):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({n: rng.uniform(0, 10, rows) for n in ("a", "b", "own")})
    table["city"] = rng.choice(["x", "y"], rows)
    score = table["a"] + table["b"] * (table["own"] > 5) + 2 * (table["city"] == "x")
    return table, (score + rng.normal(0, 1, rows) > 8).astype(int)


def estimator(booster="xgboost", trees=15, bounds=BOUNDS, **more):
    params = {"n_estimators": trees, "max_depth": 3}
    given = {"budget": BUDGET, "random_state": 1, "noise_rng": op.SeededRng(trees), **more}
    return op.OpBoostClassifier(bounds=bounds, booster=booster, booster_params=params, **given)


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("denoise", [True, False])
def test_trees_are_added_to_those_of_the_earlier_model(booster, denoise, tmp_path):
    first = estimator(booster, 4, denoise=denoise).fit(*people(4_000, 0))
    first.save(tmp_path / "m.opboost")
    earlier = op.load(tmp_path / "m.opboost")
    more = estimator(booster, 25, denoise=denoise).fit(*people(4_000, 1), continue_from=earlier)
    X, y = people(4_000, 2)
    assert more.trained_.rounds == 29
    grid_values = more.trained_model_.layout.plain_values(*more.desensitizer_.prepare(X))
    (begun,) = more.trained_.staged(grid_values, [4])
    np.testing.assert_allclose(begun, first.predict_proba(X), atol=1e-6)
    before, after = (roc_auc_score(y, m.predict_proba(X)[:, 1]) for m in (first, more))
    assert after > before + 0.005
    more.save(tmp_path / "m2.opboost")
    again = op.load(tmp_path / "m2.opboost")
    assert np.array_equal(again.predict_proba(X), more.predict_proba(X))
    assert more.predict_proba(X, desensitize=True).shape == (4_000, 2)


def test_somebody_in_both_trainings_is_charged_for_both():
    first = estimator(noise_rng=None).fit(*people(1_000, 0))
    assert first.guarantee_.total == 6
    more = estimator(trees=5, noise_rng=None).fit(*people(1_000, 1), continue_from=first)
    assert more.guarantee_.total == 12


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"bounds": {"a": (0, 10), "b": (0, 11)}}, r"'b' has a mapping that differs from"),
        ({"budget": op.Budget.record(5)}, r"'a' has a mechanism that differs from the model"),
        ({"bounds": {"a": (0, 10)}}, r"'b' is private in the model that is continued"),
        (
            {"bounds": {**BOUNDS, "own": (0, 10)}},
            r"'own' is not private in the model that is continued",
        ),
    ],
)
def test_other_declarations_are_refused(change, words):
    first = estimator(denoise=False).fit(*people(500, 0))
    given = {"bounds": BOUNDS, "denoise": False, **change}
    with pytest.raises(ColumnError, match=words):
        estimator(**given).fit(*people(500, 1), continue_from=first)


def test_a_refused_table_is_not_counted_as_released():
    first = estimator(trees=2, denoise=False, noise_rng=None).fit(*people(500, 10))
    X, y = people(500, 11)
    more = estimator(trees=2, denoise=False, noise_rng=None, bounds={**BOUNDS, "b": (0, 11)})
    with pytest.raises(ColumnError, match=r"'b' has a mapping that differs"):
        more.fit(X, y, continue_from=first)
    more.set_params(bounds=BOUNDS)
    with pytest.raises(ColumnError, match=r"'own' is not in the table"):
        more.fit(X.drop(columns="own"), y, continue_from=first)
    assert more.fit(X, y, continue_from=first).guarantee_.total == 12


def test_other_own_columns_classes_and_boosters_are_refused():
    first = estimator(denoise=False).fit(*people(500, 0))
    X, y = people(500, 1)
    with pytest.raises(ColumnError, match=r"'own' is not in the table"):
        estimator(denoise=False).fit(X.drop(columns="own"), y, continue_from=first)
    with pytest.raises(ColumnError, match=r"'more' is not in the model that is continued"):
        estimator(denoise=False).fit(X.assign(more=1.0), y, continue_from=first)
    with pytest.raises(DataError, match=r"classes of the new rows are not those"):
        estimator(denoise=False).fit(X, y + 1, continue_from=first)
    with pytest.raises(ParameterError, match=r"LightGBM cannot continue a model that XGBoost"):
        estimator("lightgbm").fit(X, y, continue_from=first)
    with pytest.raises(ParameterError, match=r"HistGradientBoosting cannot add trees"):
        op.OpBoostClassifier(bounds=BOUNDS, budget=BUDGET, booster="hist-gbdt").fit(
            X, y, continue_from=first
        )


@pytest.mark.parametrize("codebook", ["full", "cuts"])
def test_a_federation_continues_its_model(codebook):
    (X, y), (new, z) = people(3_000, 0), people(3_000, 1)
    names = ["a", "b"]

    def columns():
        grid = op.Domain(0, 9)
        return [
            op.PrivateColumn(n, op.NumericMapping(grid, (0, 10)), op.ClampMap(grid, 0.6))
            for n in names
        ]

    def trained(table, label, hidden, **more):
        shop = op.FeatureParty(table[names], columns(), codebook=hidden)
        params = {"n_estimators": 10, "max_depth": 3}
        bank = op.LabelParty(
            table[["own", "city"]], label, booster_params=params, random_state=1, **more
        )
        return bank.train([op.MemoryChannel(shop)])

    first = trained(X, y, "full")
    if codebook == "cuts":
        with pytest.raises(ParameterError, match=r'continues a model.*Write codebook = "full"'):
            trained(new, z, "cuts", continue_from=first)
        return
    more = trained(new, z, "full", continue_from=first)
    assert more.trained_.rounds == 20
    assert more.guarantee_.total == 2 * first.guarantee_.total
    test, t = people(3_000, 2)
    test = test[["own", "city", *names]]
    before, after = (roc_auc_score(t, m.predict_proba(test)[:, 1]) for m in (first, more))
    assert after > before
    with pytest.raises(ParameterError, match=r"continued in memory"):
        trained(new, z, "full", continue_from=first, memory="external", denoise=False)
    with pytest.raises(DataError, match=r"classes of the new rows"):
        trained(new, z + 5, "full", continue_from=first)


def test_the_command_line_continues_a_model(tmp_path):
    (tmp_path / "b.toml").write_text(
        "[budget]\nrecord = 6.0\n[columns.a]\nbounds = [0, 10]\n[columns.b]\nbounds = [0, 10]\n"
        "[booster]\nparams = { n_estimators = 10 }\n"
    )
    for seed, name in enumerate(("old", "new")):
        table, label = people(1_000, seed)
        table.assign(paid=label).to_csv(tmp_path / f"{name}.csv", index=False)
    given = ["--label", "paid", "-c", tmp_path / "b.toml"]
    status, _, words = run("train", tmp_path / "old.csv", *given, "-o", tmp_path / "m.opboost")
    assert status == 0, words
    more = ["--continue", tmp_path / "m.opboost", "-o", tmp_path / "m2.opboost"]
    status, out, _ = run("train", tmp_path / "new.csv", *given, *more)
    assert status == 0
    assert out.endswith("One person's record: at most 12.\n")
    assert op.load(tmp_path / "m2.opboost").trained_.rounds == 20
    missing = ["--continue", tmp_path / "no", "-o", tmp_path / "x"]
    assert run("train", tmp_path / "new.csv", *given, *missing)[0] != 0
    assert not (tmp_path / "x").exists()
