"""Training from disk gives the same model as training on the same codes in memory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import opboost as op
from opboost.boosting import booster
from opboost.columns.private_column import Flag
from opboost.config import load
from opboost.config.job_file import load_label
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import ConfigError, DataError, ParameterError, WireError
from opboost.files.train_and_predict import train
from opboost.protocol.messages import Welcome
from opboost.protocol.stored_columns import read_column, unpack_column
from robustness.party_processes import federation, joined, serving

ROWS = 3000
GRID, WIDE = op.Domain(1, 12), op.Domain(1, 600)
WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")
RNG = np.random.default_rng(3)
THEIRS = pd.DataFrame(
    {
        "age": RNG.uniform(17, 90, ROWS),
        "gappy": np.where(RNG.random(ROWS) < 0.2, np.nan, RNG.uniform(0, 1, ROWS)),
        "wide": RNG.uniform(0, 1, ROWS),
        "city": RNG.choice(["north", "south", "east"], ROWS),
    }
)
OWN = pd.DataFrame({"income": RNG.uniform(0, 9, ROWS), "kind": RNG.choice(["a", "b"], ROWS)})
SCORE = THEIRS["age"] / 40 + THEIRS["wide"] + OWN["income"] / 5 + RNG.normal(size=ROWS)
LABELS = {
    "two": SCORE > 3.5,
    "three": np.array(["low", "mid", "high"])[np.digitize(SCORE, [3, 4])],
    "numbers": SCORE,
}
PARAMS = {"n_estimators": 12, "max_depth": 4, "nthread": 1, "max_bin": 1024}


def numeric(name, grid, bounds, **more):
    return op.PrivateColumn(name, op.NumericMapping(grid, bounds), op.ClampMap(grid, 1.0), **more)


COLUMNS = (
    numeric("age", GRID, (17, 90)),
    numeric("gappy", GRID, (0, 1), missing=Flag(2.0, 0.5)),
    numeric("wide", WIDE, (0, 1)),
    op.PrivateColumn("city", None, op.UnaryEncoding(["north", "south", "east"], epsilon=2.0)),
)


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(booster, "BLOCK_CODES", 8 * 700)  # five blocks, the last one shorter


def trained(shop, label, **settings):
    settings = {"booster_params": PARAMS, "denoise": False, "random_state": 0, **settings}
    bank = op.LabelParty(OWN, LABELS[label], **settings)
    return bank.train([op.MemoryChannel(shop)], welcome=WELCOME)


def shop(**settings):
    return op.FeatureParty(THEIRS, COLUMNS, **settings)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("codebook", ["full", "cuts"])
@pytest.mark.parametrize("label", LABELS)
def test_the_model_is_the_one_that_the_same_codes_give_in_memory(label, codebook):
    party = shop(codebook=codebook)
    inside, outside = (trained(party, label, memory=m) for m in ("internal", "external"))
    assert cuts(outside) == cuts(inside)
    predict = "predict" if label == "numbers" else "predict_proba"
    rows = OWN.join(THEIRS)
    assert np.allclose(getattr(outside, predict)(rows), getattr(inside, predict)(rows), atol=1e-5)


def cuts(model):
    """Return the columns and values of a model's splits; leaves may be summed in any order."""
    trees = model.model_.trees_to_dataframe()
    return trees[["Tree", "Node", "Feature", "Split"]].fillna(-1).values.tolist()


def test_withheld_codebooks_are_not_denoised_from_disk_either(capfd):
    model = trained(shop(codebook="cuts"), "two", memory="external", denoise="auto")
    assert not model.denoised_
    assert "denoising is off, because a party withholds its codebook" in capfd.readouterr().err


@pytest.mark.parametrize("denoise", [False, True])
def test_nothing_is_left_on_disk(tmp_path, denoise):
    bank = op.LabelParty(OWN, LABELS["two"], booster_params=PARAMS, denoise=denoise,
                         memory="external", random_state=0)  # fmt: skip
    bank.train([op.MemoryChannel(shop())], welcome=WELCOME, state=tmp_path)
    assert [f.name for f in tmp_path.iterdir() if f.name.startswith(".")] == []
    assert len(list(tmp_path.glob("trained-*"))) == 1


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"booster": "lightgbm"}, "needs booster 'xgboost'"),
        ({"memory": "disk"}, "'internal' or 'external'"),
        ({"booster_params": {"tree_method": "exact"}}, "tree_method='hist'"),
    ],
)
def test_what_cannot_be_trained_from_disk_is_refused(settings, words):
    with pytest.raises(ParameterError, match=words):
        trained(shop(), "two", **{"memory": "external", **settings})


@pytest.mark.usefixtures("small_blocks")
def test_a_column_that_was_cut_short_on_disk_is_refused(tmp_path):
    party = shop()
    _, files = party.release(WELCOME)
    stored = unpack_column(files[2], tmp_path / "codes")
    whole = read_column(files[2])[1]
    assert stored.kind == np.uint16
    assert (stored.rows(slice(100, 900)).codes == whole.codes[100:900]).all()
    stored.file.write_bytes(stored.file.read_bytes()[:-1])
    with pytest.raises(DataError, match="damaged"):
        stored.rows(slice(ROWS - 10, ROWS))


def test_an_altered_stream_is_not_unpacked(tmp_path):
    party = shop()
    _, files = party.release(WELCOME)
    data = bytearray(files[0].read_bytes())
    data[len(data) // 2] ^= 1
    files[0].write_bytes(data)
    with pytest.raises((WireError, DataError)):
        unpack_column(files[0], tmp_path / "codes")


def test_a_served_job_trains_from_disk(tmp_path):
    made = federation(tmp_path, ("shop",), align="given")
    config = made.config(LABEL_PARTY)
    section = '[booster]\nmemory = "external"\ndenoise = true'
    config.write_text(config.read_text().replace("[booster]", section))
    with serving(made) as (process, address):
        joined(made, address)
        said = process.communicate(timeout=60)[1]
    assert "denoising is off" not in said
    model = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert model._model.posterior is not None
    assert model.model_.num_boosted_rounds() == 10
    config.write_text(config.read_text().replace('"xgboost"', '"lightgbm"'))
    with pytest.raises(ConfigError, match="needs booster 'xgboost'"):
        load_label(config)


def test_one_machine_says_that_it_trains_in_memory(tmp_path):
    table, plan = tmp_path / "t.csv", tmp_path / "b.toml"
    THEIRS[["age", "wide"]].assign(y=LABELS["two"]).to_csv(table, index=False)
    plan.write_text(
        '[mechanism]\nkind = "clamp-map"\nepsilon = 1.0\n[booster]\nmemory = "external"\n'
        "[columns.age]\nbounds = [17, 90]\n[columns.wide]\nbounds = [0, 1]\n"
    )
    with pytest.raises(ConfigError, match="label party of a job"):
        train(table, load(plan), "y")


@pytest.mark.usefixtures("small_blocks")
def test_shares_of_the_rows_grow_their_part_of_the_trees():
    party = shop()
    some, every = {"rows_a_tree": 1100}, {"rows_a_tree": 10 * ROWS}
    whole, same, shared = (
        trained(party, "two", memory="external", booster_params=PARAMS | more, ask="if-needed")
        for more in ({}, every, some)
    )
    assert cuts(same) == cuts(whole)
    assert cuts(shared) != cuts(whole)
    assert shared.model_.num_boosted_rounds() == PARAMS["n_estimators"]
    rows = OWN.join(THEIRS)
    score = roc_auc_score(LABELS["two"], shared.predict_proba(rows)[:, 1])
    assert score > roc_auc_score(LABELS["two"], whole.predict_proba(rows)[:, 1]) - 0.08


def test_shares_are_dealt_without_a_row_twice(tmp_path):
    for rows, of in ((10, 3), (7, 7), (1000, 4), (5, 1)):
        blocks = [booster.Blocks((rows, 2), None, tmp_path, (k, of)) for k in range(of)]
        seen = [r for share in blocks for here in share for r in range(here.start, here.stop)]
        assert sorted(seen) == list(range(rows))
        assert all(list(share) for share in blocks)


def test_shares_are_for_rows_on_disk():
    with pytest.raises(ParameterError, match="rows_a_tree is for rows on disk"):
        trained(shop(), "two", booster_params={"rows_a_tree": 100})
    with pytest.raises(ParameterError, match="must be 1 or more"):
        trained(shop(), "two", booster_params={"rows_a_tree": 0}, memory="external")
