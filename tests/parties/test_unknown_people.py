"""Rows that a feature party does not have: ``rows="mine"``, and predictions without a party."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.boosting.booster import Problem, make_booster
from opboost.config.columns_file import parse
from opboost.errors import (
    ColumnError,
    DataError,
    ParameterError,
    PeerError,
    PrivacyError,
)
from opboost.scores.flat_trees import by_group

GRID = op.Domain(1, 10)
ROWS = 700
BOOSTER = {"n_estimators": 6, "max_depth": 3, "nthread": 1}
rng = np.random.default_rng(0)
HIDDEN = rng.normal(size=ROWS)
OWN = pd.DataFrame({"a": HIDDEN + rng.normal(size=ROWS), "b": rng.normal(size=ROWS)})
BASKET = np.clip(50 + 20 * HIDDEN + 5 * rng.normal(size=ROWS), 0, 100)
CALLS = np.clip(50 + 20 * HIDDEN + 20 * rng.normal(size=ROWS), 0, 100)
LABEL = HIDDEN > 0
IDS = np.arange(ROWS)
KNOWN = {"shop": rng.random(ROWS) < 0.5, "telco": rng.random(ROWS) < 0.6}


def column(name, missing="raise"):
    mapping = op.NumericMapping(GRID, (0, 100))
    return op.PrivateColumn(name, mapping, op.ClampMap(GRID, 2.0), missing=missing)


def party(name, values, *, align="psi", known=None, rows="mine", **more):
    """Return a feature party that knows some people; if rows are given, the others' are empty."""
    known = KNOWN[name] if known is None else known
    table = pd.DataFrame({"id": IDS, name: values.astype(float)})
    if align == "psi":
        table = table[known].sample(frac=1, random_state=1)
    else:
        table.loc[~known, name] = np.nan
    return op.FeatureParty(
        table, [column(name)], ids="id", align=align, rows=rows, name=name, **more
    )


def both(align="psi"):
    return [party("shop", BASKET, align=align), party("telco", CALLS, align=align)]


def bank(features=OWN, y=LABEL, *, align="psi", rows="mine", **more):
    settings = {"random_state": 0, "held_out": 0, "booster_params": BOOSTER, **more}
    return op.LabelParty(features, y, ids=IDS.tolist(), align=align, rows=rows, **settings)


def channels(parties):
    return [op.MemoryChannel(p) for p in parties]


@pytest.fixture(scope="module")
def model():
    return bank(denoise=True).train(channels(both()))


def own_alone():
    """Train a booster on the label party's own columns of all rows, in the shared order."""
    problem = Problem(OWN.to_numpy(np.float32), LABEL.astype(int), "binary", 2)
    return make_booster("xgboost", {**BOOSTER, "seed": 0}).train(problem)


def test_rows_that_nobody_knows_are_predicted_as_by_own_columns_alone(model, tmp_path):
    model.save(tmp_path / "m.opboost")
    assert model.trained_model_.own_rounds == 6
    wanted = own_alone().predict(OWN.to_numpy(np.float32))
    for kept in (model, op.load(tmp_path / "m.opboost")):
        found = bank(y=None).predict(kept, [], without=["shop", "telco"])
        assert found.rows.tolist() == IDS.tolist()
        np.testing.assert_allclose(found.probabilities, wanted, atol=1e-5)
        assert found.guarantee.total == 0


def test_all_rows_are_predicted_whoever_knows_them(model):
    found = bank(y=None).predict(model, channels(both()))
    assert found.rows.tolist() == IDS.tolist()
    known = KNOWN["shop"]
    right = found.prediction == LABEL
    assert right[known].mean() > right[~known].mean() > 0.6


@pytest.mark.parametrize("align", ["psi", "given"])
def test_only_known_people_are_drawn_and_charged(align):
    parties = both(align)
    bank(align=align).train(channels(parties))
    for p in parties:
        (entry,) = [e.body for e in p.ledger.entries("commit")]
        assert entry["new_cells"] == KNOWN[p.name].sum()
        if align == "psi":
            (aligned,) = [e.body for e in p.ledger.entries("aligned")]
            assert aligned["common"] == KNOWN[p.name].sum()


def test_what_a_party_learns_does_not_depend_on_the_others_people():
    told = []
    for known in (KNOWN["telco"], ~KNOWN["shop"]):
        shop = party("shop", BASKET)
        heard = []
        session = shop.psi_session

        def listening(welcome, session=session, heard=heard):
            found = session(welcome)
            claim = found.claim
            found.claim = lambda aligned: heard.append(aligned.count) or claim(aligned)
            return found

        shop.psi_session = listening
        bank().train(channels([shop, party("telco", CALLS, known=known)]))
        told.append(heard)
    assert told == [[KNOWN["shop"].sum()]] * 2


def test_a_party_with_too_few_people_ends_the_job_without_a_word_to_the_others():
    few = np.arange(ROWS) < 20
    shop, telco = party("shop", BASKET), party("telco", CALLS, known=few)
    heard = {}
    ways = channels([shop, telco])
    for way in ways:
        way.refuse = lambda why, name=way.party: heard.update({name: why})
    with pytest.raises(PrivacyError, match="'telco' and the label party have 20 rows in common"):
        bank().train(ways)
    assert heard == {
        "shop": "The label party ended the job.",
        "telco": "The parties have too few rows in common to learn from.",
    }
    assert not list(shop.ledger.entries("commit"))


@pytest.mark.parametrize(("ours", "theirs"), [("mine", "common"), ("common", "mine")])
@pytest.mark.parametrize("align", ["psi", "given"])
def test_parties_that_disagree_about_rows_release_nothing(ours, theirs, align):
    everybody = np.ones(ROWS, dtype=bool)
    shop = party("shop", BASKET, align=align, rows=theirs, known=everybody)
    with pytest.raises(PeerError, match=f"rows = '{ours}', but this party agreed to .*'{theirs}'"):
        bank(align=align, rows=ours).train(channels([shop]))
    assert not list(shop.ledger.entries("commit"))
    assert not list(shop.ledger.entries("align"))


def test_presence_is_a_column_of_the_model_if_wanted():
    told = KNOWN["shop"] ^ (np.arange(ROWS) % 10 == 0)
    made = bank(y=told, presence=True).train(channels([party("shop", BASKET)]))
    assert [c.name for c in made.own_columns_] == ["a", "b", "known to shop"]
    found = bank(y=None).predict(made, channels([party("shop", BASKET)]))
    assert np.mean(found.prediction == KNOWN["shop"]) > 0.95
    assert not bank(y=None).predict(made, [], without=["shop"]).prediction.any()


def test_settings_that_do_not_go_with_the_rows_are_refused(model):
    for wrong, words in (
        ({"rows": "all"}, "rows is 'common' or 'mine'"),
        ({"memory": "external"}, "trains in memory"),
        ({"booster": "gbdt"}, "booster 'gbdt' cannot do"),
        ({"rows": "common", "presence": True}, "the same for everybody"),
        ({"continue_from": model}, "continued on rows that all parties have"),
    ):
        with pytest.raises(ParameterError, match=words):
            bank(**wrong)
    shop = party("shop", BASKET)
    with pytest.raises(ColumnError, match="'known to shop' is in the table"):
        bank(OWN.assign(**{"known to shop": 1}), presence=True).train(channels([shop]))
    assert not list(shop.ledger.entries("align", "reserve"))


def test_given_rows_need_columns_that_do_not_report_gaps():
    flag = op.Flag(eps_missing=1.0, constant=50)
    table = pd.DataFrame({"id": IDS, "shop": BASKET})
    with pytest.raises(ColumnError, match=r"'shop' reports gaps.*align = 'psi'"):
        op.FeatureParty(table, [column("shop", flag)], ids="id", rows="mine")
    op.FeatureParty(table, [column("shop", flag)], ids="id", rows="mine", align="psi")


def test_a_model_of_common_rows_predicts_without_a_party_through_the_posterior():
    everybody = np.ones(ROWS, dtype=bool)
    parties = [
        party("shop", BASKET, align="given", known=everybody, rows="common"),
        party("telco", CALLS, align="given", known=everybody, rows="common"),
    ]
    asked = {"align": "given", "rows": "common"}
    made = bank(**asked, denoise=True).train(channels(parties))
    right = {}
    for name, ways, without in (
        ("both", parties, []),
        ("telco", parties[1:], ["shop"]),
        ("nobody", [], ["shop", "telco"]),
    ):
        found = bank(y=None, **asked).predict(made, channels(ways), without=without)
        right[name] = np.mean(found.prediction == LABEL)
    assert right["both"] > right["telco"] > right["nobody"] > 0.6
    with pytest.raises(ParameterError, match="no columns of a party 'bakery'"):
        bank(y=None, **asked).predict(made, channels(parties), without=["bakery"])
    with pytest.raises(ParameterError, match="'shop' takes part"):
        bank(y=None, **asked).predict(made, channels(parties), without=["shop"])
    with pytest.raises(ParameterError, match="'shop' holds columns of the model and takes no part"):
        bank(y=None, **asked).predict(made, channels(parties[1:]))
    noisy = bank(**asked, denoise=False).train(channels(parties))
    with pytest.raises(DataError, match="cannot predict without a party's columns"):
        bank(y=None, **asked).predict(noisy, channels(parties[1:]), without=["shop"])


def test_a_score_needs_everybody(model):
    with pytest.raises(ParameterError, match="needs every party to know every row"):
        bank(y=None).predict(model, channels(both()), release="score")


MANY = {"n_estimators": 60, "max_depth": 3, "nthread": 1}


@pytest.mark.parametrize(("denoise", "structure"), [(True, "free"), (False, "by-party")])
def test_both_trainings_stop_early_and_are_scored_by_party(denoise, structure):
    stops = {"early_stopping_rounds": 3, "held_out": 0.2, "booster_params": MANY}
    made = bank(denoise=denoise, structure=structure, **stops).train(channels(both()))
    own, rounds = made.trained_model_.own_rounds, made.trained_.rounds
    assert 0 < own < 60
    assert own < rounds < 120
    assert set(made.held_out_score_.parties) == {"shop", "telco"}
    if structure == "by-party":
        groups = list(made.trained_model_.layout.groups().values())
        parts = by_group(made.trained_.additive().trees, groups)
        assert sum(bool(part) for part in parts) > 1  # noise may leave one party without a tree
    found = bank(y=None).predict(made, channels(both()))
    assert np.mean(found.prediction == LABEL) > 0.7


def test_a_pilot_counts_the_people_whom_the_party_knows():
    rows, some = 4_000, np.arange(4_000) % 2 == 0
    values = rng.random((rows, 3))
    table = pd.DataFrame({"id": range(rows), **{f"c{k}": values[:, k] for k in range(3)}})
    table.loc[~some, ["c0", "c1", "c2"]] = np.nan
    columns = "".join(f"[columns.c{k}]\nbounds = [0, 1]\n" for k in range(3))

    def released(pilot):
        text = f"[budget]\nrecord = 8.0\ncolumns_per_row = 1\npilot = {pilot}\n{columns}"
        shop = op.FeatureParty(table, parse(text, "b.toml"), ids="id", rows="mine")
        settings = {"held_out": 0, "denoise": False, "booster_params": BOOSTER}
        bank = op.LabelParty(
            pd.DataFrame({"a": values[:, 2]}),
            values[:, 1] > 0.5,
            ids=list(range(rows)),
            rows="mine",
            **settings,
        )
        return shop, bank.train([op.MemoryChannel(shop)])

    with pytest.raises(ParameterError, match=r"pilot of 0.4 of 2,000 people has 800"):
        released(0.4)  # 0.4 of 4,000 rows would be enough
    shop, made = released(0.6)
    first, rest = (e.body["new_cells"] for e in shop.ledger.entries("commit"))
    assert first + rest == some.sum()
    assert 1_000 < first < 1_400
    assert made.trained_model_.own_rounds == 6
