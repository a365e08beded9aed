"""Early stopping on a share of the label party's rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from robustness.command_line import run

GRID = op.Domain(0, 9)
ROWS = 1_500


def people(seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"a": rng.uniform(0, 10, ROWS), "own": rng.uniform(0, 10, ROWS)})
    return table, (table["a"] + rng.normal(0, 4, ROWS) > 5).astype(int)


def trained(codebook="full", trees=300, **more):
    table, y = people()
    column = op.PrivateColumn("a", op.NumericMapping(GRID, (0, 10)), op.ClampMap(GRID, 0.6))
    shop = op.FeatureParty(table[["a"]], [column], codebook=codebook)
    params = {"n_estimators": trees, "max_depth": 4, "eta": 0.3}
    given = {"booster_params": params, "random_state": 0, **more}
    return op.LabelParty(table[["own"]], y, **given).train([op.MemoryChannel(shop)])


@pytest.mark.parametrize("denoise", [True, False])
def test_training_ends_when_held_out_rows_say_so(denoise):
    few = trained(early_stopping_rounds=5, denoise=denoise)
    assert 1 <= few.trained_.rounds < 100
    assert trained(denoise=denoise, trees=120).trained_.rounds == 120
    assert few.held_out_score_.whole.released > 0.5


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"early_stopping_rounds": 0}, "whole number, 1 or more, or None; got 0"),
        ({"early_stopping_rounds": 2.5}, "whole number, 1 or more, or None; got 2.5"),
        (
            {"early_stopping_rounds": 5, "memory": "external", "denoise": False},
            "needs rows in memory",
        ),
        ({"early_stopping_rounds": 5, "codebook": "cuts"}, 'codebook = "cuts" withholds them'),
    ],
)
def test_what_cannot_end_a_training_is_refused(more, words):
    with pytest.raises(op.ParameterError, match=words):
        trained(**more)


def test_several_parties_are_scored_by_party_and_a_model_is_continued_in_another_order():
    table, y = people()
    grid = op.NumericMapping(GRID, (0, 10))
    shop, telco = (
        op.FeatureParty(
            table[[n]].rename(columns={n: name}),
            [op.PrivateColumn(name, grid, op.ClampMap(GRID, 2.0))],
            name=name,
        )
        for n, name in (("a", "shop"), ("own", "telco"))
    )

    def trained(*parties, trees=20, **more):
        params = {"n_estimators": trees, "max_depth": 2, "nthread": 1}
        given = {"booster_params": params, "random_state": 0, "denoise": False}
        bank = op.LabelParty(None, y, early_stopping_rounds=3, **given, **more)
        return bank.train([op.MemoryChannel(p) for p in parties])

    first = trained(shop, telco, trees=2)
    score = first.held_out_score_
    assert set(score.parties) == {"shop", "telco"}
    assert score.parties["shop"].released > score.parties["telco"].released
    X = table.set_axis(["shop", "telco"], axis=1)
    one, other = (
        trained(*parties, continue_from=first, held_out=0).predict_proba(X)
        for parties in ((shop, telco), (telco, shop))
    )
    assert np.array_equal(one, other)


@pytest.mark.parametrize("align", ["given", "psi"])
def test_too_few_rows_to_watch_are_refused_before_anybody_draws(align):
    table, y = people()
    few = table.head(150).assign(id=range(150))
    column = op.PrivateColumn("a", op.NumericMapping(GRID, (0, 10)), op.ClampMap(GRID, 0.6))
    shop = op.FeatureParty(few[["a", "id"]], [column], ids="id", align=align)
    bank = op.LabelParty(None, y[:150], ids=range(150), align=align, early_stopping_rounds=5)
    words = r"Training cannot stop early: 30 held-out rows are too few"
    with pytest.raises(op.DataError, match=words):
        bank.train([op.MemoryChannel(shop)])
    assert not list(shop.ledger.entries("reserve"))
    with pytest.raises(op.DataError, match=words):
        bank.check_training()  # only the label party knows it


def test_a_file_stops_early(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table, y = people()
    table.assign(paid=y).to_csv("t.csv", index=False)
    text = "[budget]\nrecord = 6.0\n[columns.a]\nbounds = [0, 10]\n[booster]\nseed = 1\n"
    params = "params = { n_estimators = 300, eta = 0.3, max_depth = 4 }\n"
    (tmp_path / "b.toml").write_text(text + params + "[train]\nearly_stopping = 5\n")
    status, _, words = run("train", "t.csv", "--label", "paid", "-c", "b.toml", "-o", "m.opboost")
    assert status == 0, words
    assert op.load("m.opboost").trained_.rounds < 150
    (tmp_path / "b.toml").write_text(text + params + "[train]\nearly_stopping = 0\n")
    status, _, words = run("train", "t.csv", "--label", "paid", "-c", "b.toml", "-o", "n.opboost")
    assert status == 2
    assert "early_stopping" in words
