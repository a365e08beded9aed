"""Denoising from disk gives the same model as in memory, and keeps draws in files."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import r2_score, roc_auc_score

import opboost as op
from opboost.boosting import booster
from opboost.columns.private_column import Flag
from opboost.config import parse
from opboost.denoise import Groups, Outputs, Space, fit, noise_matrix_of, row_blocks
from opboost.denoise.column_pairs import pairing
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.fit import fit_blocks
from opboost.denoise.row_blocks import RowsInMemory, StoredBlocks, block_draws
from opboost.protocol.messages import Welcome
from opboost.training import denoised_rows, denoised_stored_rows

WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")
GRID = op.Domain(1, 10)
PARAMS = {"n_estimators": 30, "max_depth": 3, "nthread": 1, "eta": 0.2}


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(row_blocks, "BLOCK_ROWS", 1700)
    monkeypatch.setattr(booster, "BLOCK_CODES", 8 * 700)


def people(rows, seed=1):
    """Return dependent columns, gaps, categories, and an own column of the label party."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(0, 3, rows)
    wealth = np.array([0.2, 0.5, 0.8])[kind] + 0.1 * rng.normal(size=rows)
    age = np.array([30.0, 70.0, 45.0])[kind] + 8 * rng.normal(size=rows)
    theirs = pd.DataFrame(
        {
            "age": age.clip(17, 90),
            "wealth": wealth.clip(0, 1),
            "gappy": np.where(rng.random(rows) < 0.2, np.nan, rng.uniform(0, 1, rows)),
            "city": np.array(["north", "south", "east"])[(kind + (rng.random(rows) < 0.2)) % 3],
        }
    )
    own = pd.DataFrame({"income": wealth + rng.normal(size=rows)})
    score = theirs["wealth"] * 2 + (theirs["age"] > 50) + 0.3 * rng.normal(size=rows)
    return theirs, own, {"two": score > 1.6, "numbers": score.to_numpy()}


def columns(epsilon):
    def numeric(name, bounds, **more):
        m = op.ClampMap(GRID, epsilon)
        return op.PrivateColumn(name, op.NumericMapping(GRID, bounds), m, **more)

    city = op.UnaryEncoding(["north", "south", "east"], epsilon=2.0)
    return (
        numeric("age", (17, 90)),
        numeric("wealth", (0, 1)),
        numeric("gappy", (0, 1), missing=Flag(2.0, 0.5)),
        op.PrivateColumn("city", None, city),
    )


def trained(party, own, y, **settings):
    settings = {"booster_params": PARAMS, "random_state": 0, "ask": "if-needed", **settings}
    return op.LabelParty(own, y, **settings).train([op.MemoryChannel(party)], welcome=WELCOME)


def member(model):
    return model._model.posterior.distribution.member


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rows", [4000, 24_000], ids=["all rows choose", "some rows choose"])
@pytest.mark.parametrize("label", ["two", "numbers"])
def test_the_denoised_model_from_disk_is_the_one_from_memory(label, rows):
    theirs, own, labels = people(rows)
    party = op.FeatureParty(theirs, columns(0.5))
    inside, outside = (
        trained(party, own, labels[label], memory=memory, denoise=True)
        for memory in ("internal", "external")
    )
    assert outside.denoised_
    assert member(outside).P.shape == member(inside).P.shape
    assert np.allclose(member(outside).P, member(inside).P, atol=2e-3)
    assert np.allclose(member(outside).pi, member(inside).pi, atol=2e-3)
    new, own, _ = people(2000, seed=2)
    predict = "predict" if label == "numbers" else "predict_proba"
    both = [getattr(m, predict)(own.join(new)).reshape(-1) for m in (inside, outside)]
    assert np.corrcoef(*both)[0, 1] > 0.999
    assert np.abs(both[0] - both[1]).mean() < 0.01


def encoded(rows=6000, columns=4):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    clean = np.clip(np.rint(4 + 2 * y[:, None] + rng.normal(size=(rows, columns))), 0, 9)
    m = op.ClampMap(GRID, 0.64)
    codes = (m.sample(clean.astype(int) + 1, rng=op.SeededRng(1)) - 1).astype(np.uint8)
    space = Space((noise_matrix_of(m),) * columns, (10,) * columns)
    weight = rng.uniform(0.5, 1.5, rows)
    return space, Groups.classes(y, 2, weight), Outputs(codes, np.zeros((rows, 0), np.uint8)), y


@pytest.mark.usefixtures("small_blocks")
def test_blocks_on_disk_give_the_sums_and_draws_of_one_block(tmp_path):
    space, groups, outputs, y = encoded()
    whole = fit(space, groups, outputs, seed=3)
    pairs = pairing(space, groups, outputs.codes)
    blocks = StoredBlocks.write(
        tmp_path, lambda here: Outputs(outputs.codes[here], outputs.bits[here]), pairs, groups
    )
    assert len(blocks.slices) == 4
    parts = fit_blocks(pairs, groups, blocks, seed=3)
    assert parts.chosen.classes == whole.chosen.classes
    assert np.allclose(parts.members[0].P, whole.members[0].P, atol=1e-5)
    in_memory = whole.draw(outputs, y, 0, 3).cells
    drawn = np.concatenate([d.cells for d in block_draws(blocks, whole.members[0], pairs, 0, 3)])
    assert (drawn == in_memory).all()


@pytest.mark.usefixtures("small_blocks")
def test_rows_that_are_brought_into_memory_know_their_place(tmp_path):
    space, groups, outputs, _ = encoded()
    pairs = pairing(space, groups, outputs.codes)
    read = lambda here: Outputs(outputs.codes[here], outputs.bits[here])  # noqa: E731
    blocks = StoredBlocks.write(tmp_path, read, pairs, groups)
    codes = pairs.paired(outputs.codes)
    rows = EncodedRows.of(codes, outputs.bits, groups.of, groups.count, groups.weight)
    keep = np.random.default_rng(1).random(len(codes)) < 0.3
    here, there = RowsInMemory(rows).where(keep), blocks.where(keep)
    for name in ("codes", "order", "weight"):
        assert (getattr(here, name) == getattr(there, name)).all()
    assert (there.sizes == here.sizes).all()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(("label", "gain"), [("two", 0.01), ("numbers", 0.1)])
def test_at_a_small_total_denoising_from_disk_helps_as_it_does_in_memory(label, gain):
    theirs, _, labels = people(30_000)
    party = op.FeatureParty(theirs, columns(0.03))
    new, _, truth = people(4000, seed=5)

    def score(**settings):
        model = trained(party, None, labels[label], **settings)
        if label == "numbers":
            return r2_score(truth[label], model.predict(new))
        return roc_auc_score(truth[label], model.predict_proba(new)[:, 1])

    inside, outside = score(denoise=True), score(memory="external", denoise=True)
    noisy = score(memory="external", denoise=False)
    assert abs(outside - inside) < 0.02
    assert outside > noisy + gain


@pytest.mark.usefixtures("small_blocks")
def test_auto_from_disk_compares_on_a_sample(monkeypatch):
    monkeypatch.setattr(denoised_rows, "LARGE_TABLE_ROWS", 20_000)
    monkeypatch.setattr(denoised_rows, "MAX_COMPARED_ROWS", 3000)
    monkeypatch.setattr(denoised_stored_rows, "SAMPLE_ROWS", 2500)
    theirs, own, labels = people(24_000)
    party = op.FeatureParty(theirs, columns(0.5))
    params = PARAMS | {"rows_a_tree": 9000}
    model = trained(party, own, labels["two"], memory="external", booster_params=params)
    assert model.verdict_ is not None
    assert model.denoised_ == model.verdict_.denoise
    assert model.model_.num_boosted_rounds() == PARAMS["n_estimators"]


@pytest.mark.usefixtures("small_blocks")
def test_wide_tables_on_disk_leave_out_what_tells_nothing():
    rng = np.random.default_rng(2)
    table = pd.DataFrame(rng.uniform(0, 1, (6000, 36)), columns=[f"x{j}" for j in range(36)])
    y = table["x0"] + table["x1"] > 1
    lines = "".join(f"[columns.{name}]\nbounds = [0, 1]\n" for name in table)
    plan = parse(
        '[mechanism]\nkind = "clamp-map"\nepsilon = 2.0\n'
        '[budget]\nsplit = "sampled"\ncolumns_per_row = 4\n' + lines,
        "shop.toml",
    )
    party = op.FeatureParty(table, plan)
    inside, outside = (
        trained(party, None, y, memory=memory, denoise=True) for memory in ("internal", "external")
    )
    left_out = [n for n, share in inside.sent_shares_.items() if share == 0]
    assert len(left_out) > 20
    assert outside.sent_shares_ == inside.sent_shares_


@pytest.mark.usefixtures("small_blocks")
def test_a_draw_that_was_cut_short_on_disk_is_refused(monkeypatch):
    theirs, own, labels = people(4000)
    written = denoised_stored_rows.write_draws

    def cut(*given):
        found = written(*given)
        file = found[0].stored["age"][0].file
        file.write_bytes(file.read_bytes()[:-1])
        return found

    monkeypatch.setattr(denoised_stored_rows, "write_draws", cut)
    party = op.FeatureParty(theirs, columns(0.5))
    with pytest.raises(op.errors.DataError, match="damaged"):
        trained(party, own, labels["two"], memory="external", denoise=True)
