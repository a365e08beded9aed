"""What training reports about its model on held-out rows."""

from __future__ import annotations

import tempfile

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import opboost as op
from opboost.errors import ConfigError, ParameterError
from opboost.protocol.messages import Welcome
from opboost.training.clear_estimate import clear_estimate
from opboost.training.held_out_rows import split_rows
from opboost.training.held_out_score import HeldOutScore
from opboost.training.targets import Target

GRID = op.Domain(0, 9)
WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")


def people(rows, seed=0, task="binary"):
    """Return an own column ``own``, and other parties' columns ``helpful`` and ``useless``."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({name: rng.uniform(0, 10, rows) for name in ("own", "helpful", "useless")})
    lean = 0.4 * (table["own"] - 5) + 0.8 * (table["helpful"] - 5)
    if task == "regression":
        return table, (lean + rng.normal(0, 1, rows)).to_numpy()
    noisy = (lean + rng.logistic(0, 1, rows)).to_numpy()
    return table, np.digitize(noisy, [-2.0, 2.0]) if task == "multiclass" else noisy > 0


def party(table, column, epsilon=1.0, **more):
    private = op.PrivateColumn(column, op.NumericMapping(GRID, (0, 10)), op.ClampMap(GRID, epsilon))
    feature = op.FeatureParty(table[[column]], [private], name=column, **more)
    return op.MemoryChannel(feature)


def trained(table, y, columns=("helpful",), own=True, **settings):
    settings = {"booster_params": {"n_estimators": 20}, "random_state": 1, **settings}
    more = settings.pop("more", {})
    bank = op.LabelParty(table[["own"]] if own else None, y, **settings)
    return bank.train([party(table, column, **more) for column in columns])


@pytest.mark.parametrize(
    ("task", "metric"), [("binary", "AUC"), ("multiclass", "accuracy"), ("regression", "R²")]
)
def test_a_helpful_party_raises_the_score(task, metric, capsys):
    table, y = people(3000, task=task)
    model = trained(table, y, task="regress" if task == "regression" else "classify")
    score = model.held_out_score_
    assert score.metric == metric
    assert score.rows == pytest.approx(600, abs=2)
    assert score.whole.released > score.own + 0.03
    assert model.denoised_
    assert score.whole.clear > score.whole.released
    line = capsys.readouterr().err.strip().splitlines()[-1]
    assert line == score.line(total=9.0)
    assert line.startswith(f"{metric} on {score.rows} held-out rows: own columns alone 0.")
    assert line.endswith("at most 9 revealed per person")


def test_the_model_is_the_same_whether_or_not_it_is_scored():
    table, y = people(800)
    table, found = table[["own", "helpful"]], {}
    for share in (0.0, 0.3):
        clf = op.OpBoostClassifier(
            op.ClampMap(GRID, 1.0),
            bounds={"helpful": (0, 10)},
            noise_rng=op.SeededRng(4),
            random_state=0,
            held_out=share,
        )
        found[share] = clf.fit(table, y).predict_proba(table)
        assert (clf.held_out_score_ is None) == (share == 0.0)
    assert (found[0.0] == found[0.3]).all()


def test_the_score_is_the_same_under_a_seed():
    table, y = people(1000)
    found = []
    for _ in range(2):
        clf = op.OpBoostClassifier(
            op.ClampMap(GRID, 1.0),
            bounds={"helpful": (0, 10)},
            noise_rng=op.SeededRng(4),
            random_state=0,
            held_out=0.2,
        )
        found.append(clf.fit(table[["own", "helpful"]], y).held_out_score_)
    assert found[0] == found[1]


@pytest.mark.parametrize("denoise", [True, False])
def test_labels_that_nothing_tells_score_like_guessing(denoise):
    table, _ = people(2000)
    y = np.random.default_rng(9).random(2000) < 0.5
    params = {"n_estimators": 100, "max_depth": 8}
    score = trained(table, y, denoise=denoise, booster_params=params).held_out_score_
    for figure in (score.own, score.whole.released, score.whole.clear or 0.5):
        assert figure == pytest.approx(0.5, abs=0.07)


def test_each_party_is_scored_alone_where_there_are_several():
    table, y = people(2500)
    score = trained(table, y, ("helpful", "useless")).held_out_score_
    assert set(score.parties) == {"helpful", "useless"}
    assert score.parties["helpful"].released > score.parties["useless"].released + 0.05
    assert "with helpful and useless" in score.line("bank", 18.0)
    assert "with one party: helpful 0." in score.line("bank", 18.0)


def test_a_label_party_without_columns_is_compared_with_guessing():
    table, y = people(1000)
    score = trained(table, y, own=False).held_out_score_
    assert score.own == 0.5
    assert "without any column 0.500 → with helpful" in score.line("bank")


def test_withheld_codebooks_and_rows_on_disk_are_scored_too():
    table, y = people(1500)
    withheld = trained(table, y, more={"codebook": "cuts"}).held_out_score_
    on_disk = trained(table, y, memory="external", denoise=False).held_out_score_
    for score in (withheld, on_disk):
        assert score.whole.clear is None
        assert score.whole.released > score.own + 0.03


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_rows_denoised_on_disk_are_scored_as_those_in_memory(task, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table, y = people(2500, task=task)
    shop = party(table, "helpful")
    settings = {"booster_params": {"n_estimators": 20}, "random_state": 1, "denoise": True}
    inside, outside = (
        op.LabelParty(table[["own"]], y, memory=memory, ask="if-needed", **settings)
        .train([shop], welcome=WELCOME)
        .held_out_score_
        for memory in ("internal", "external")
    )
    assert (outside.rows, outside.own) == (inside.rows, pytest.approx(inside.own))
    assert outside.whole.released == pytest.approx(inside.whole.released, abs=0.02)
    assert outside.whole.clear == pytest.approx(inside.whole.clear, abs=0.05)
    assert outside.whole.released > outside.own + 0.03
    assert not [*tmp_path.rglob("score-*"), *tmp_path.rglob("*.part")]


def test_a_score_on_disk_does_not_know_the_held_out_labels():
    """Draws made with the labels of held-out rows would predict even random labels."""
    table, y = people(2500)
    drawn = np.random.default_rng(5).permutation(y)
    score = trained(table, drawn, memory="external", denoise=True, random_state=0).held_out_score_
    assert abs(score.whole.released - 0.5) < 0.06


def test_small_tables_say_so():
    table, y = people(120)
    assert "24 held-out rows are too few" in trained(table, y).held_out_score_.line("bank")
    rare = np.arange(600) % 60 == 0
    assert (
        "2 held-out rows of the rarer class" in split_rows(Target.of_classes(rare), 0.2, 0).unscored
    )


@pytest.mark.parametrize("share", [-0.1, 0.6, float("nan"), "a fifth", True])
def test_a_share_that_is_none_is_refused(share):
    table, y = people(100)
    with pytest.raises(ParameterError, match="held_out must be a share"):
        op.LabelParty(table[["own"]], y, held_out=share)


def test_the_score_is_saved_with_the_model(tmp_path):
    table, y = people(800)
    model = trained(table, y)
    model.save(tmp_path / "m.opboost")
    assert op.load(tmp_path / "m.opboost").held_out_score_ == model.held_out_score_
    assert HeldOutScore.from_dict(model.held_out_score_.to_dict()) == model.held_out_score_


def simulated(told, rows=6000, draws=32, seed=0):
    """Return a clean score x, its release z, x drawn given z, and a label from ``told`` · x.

    x and the noise are normal, so that P(x | z) is known exactly.
    """
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows)
    z = x + rng.normal(0, 1.5, rows)
    share = 1 / (1 + 1.5**2)
    drawn = share * z[:, None] + np.sqrt(1 - share) * rng.normal(size=(rows, draws))
    y = rng.random(rows) < 1 / (1 + np.exp(-told * x))
    return x, drawn, y.astype(int)


def chances(score):
    up = 1 / (1 + np.exp(-2 * score))
    return np.stack([1 - up, up], axis=-1)


@pytest.mark.parametrize("told", [0.0, 1.0, 2.0])
def test_the_estimate_in_the_clear_meets_the_truth_whatever_the_model_claims(told):
    x, drawn, y = simulated(told)
    truth = roc_auc_score(y, x)
    found = clear_estimate("binary", chances(drawn), None, y)
    assert found.value == pytest.approx(truth, abs=max(0.02, 2 * found.error))
    if told:  # comparing drawn rows with held-out labels would measure the noise
        assert roc_auc_score(y, drawn[:, 0]) < truth - 0.08


@pytest.mark.parametrize("told", [0.0, 1.0, 2.0])
def test_the_estimate_of_r2_meets_the_truth(told):
    x, drawn, _ = simulated(told)
    y = told * x + np.random.default_rng(1).normal(size=len(x))
    found = clear_estimate("regression", 1.3 * drawn, None, y)
    truth = 1 - np.mean((y - 1.3 * x) ** 2) / y.var()
    assert found.value == pytest.approx(truth, abs=max(0.04, 2.5 * found.error))


def test_what_own_columns_tell_is_not_credited_to_private_ones():
    """If F is a good model of own columns plus noise, b must be small although F predicts well."""
    rng = np.random.default_rng(3)
    own = rng.normal(size=5000)
    y = (rng.random(5000) < 1 / (1 + np.exp(-2 * own))).astype(int)
    _, drawn, _ = simulated(0.0, 5000)
    found = clear_estimate("binary", chances(own[:, None] + drawn), chances(own), y)
    truth = roc_auc_score(y, own + simulated(0.0, 5000)[0])
    assert found.value == pytest.approx(truth, abs=max(0.02, 2 * found.error))


def test_the_share_is_a_setting_of_the_file():
    from opboost.config import parse

    text = "[mechanism]\nepsilon = 1.0\n[columns.a]\nbounds = [0, 1]\n"
    assert parse(text, "a.toml").train.held_out == 0.2
    assert parse(f"{text}[train]\nheld_out = 0\n", "a.toml").train.held_out == 0
    with pytest.raises(ConfigError, match="held_out"):
        parse(f"{text}[train]\nheld_out = 0.9\n", "a.toml")
