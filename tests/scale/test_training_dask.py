"""Training on a Dask cluster of real processes gives the model of one machine."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.denoise import row_blocks
from opboost.errors import ParameterError
from opboost.protocol.messages import Welcome
from opboost.scale.clusters import dask_client
from opboost.scale.dask_training import DaskBlocks, DaskXGBoost

ROWS = 6000
GRID = op.Domain(1, 10)
RNG = np.random.default_rng(5)
TABLE = pd.DataFrame(RNG.uniform(0, 1, (ROWS, 4)), columns=list("abcd"))
OWN = pd.DataFrame({"own": RNG.normal(size=ROWS)})
SCORE = TABLE["a"] + TABLE["b"] * TABLE["c"] + 0.3 * OWN["own"] + 0.2 * RNG.normal(size=ROWS)
LABELS = {"two": SCORE > 0.8, "numbers": SCORE}
PARAMS = {"n_estimators": 15, "max_depth": 3, "nthread": 1, "max_bin": 7000}
WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")


@pytest.fixture(scope="module")
def shop():
    columns = [
        op.PrivateColumn(n, op.NumericMapping(GRID, (0, 1)), op.ClampMap(GRID, 1.0)) for n in TABLE
    ]
    return op.FeatureParty(TABLE, columns)


@pytest.fixture(scope="module")
def client():
    with dask_client(2) as client:
        yield client


def trained(shop, label, booster, own=OWN, **settings):
    settings = {"denoise": False, "random_state": 0, **settings}
    bank = op.LabelParty(own, LABELS[label], booster=booster, ask="if-needed", **settings)
    return bank.train([op.MemoryChannel(shop)], welcome=WELCOME)


def cuts(model):
    """Return the columns and values of a model's splits; leaves may be summed in another order."""
    trees = model.model_.trees_to_dataframe()
    return trees[["Tree", "Node", "Feature", "Split"]].fillna(-1).values.tolist()


@pytest.mark.parametrize(("label", "parts"), [("two", 1), ("numbers", 3)])
def test_two_workers_give_the_model_of_one_machine(shop, client, label, parts, tmp_path):
    plain = trained(shop, label, "xgboost", booster_params=PARAMS)
    ours = trained(shop, label, DaskXGBoost(client, PARAMS, parts))
    assert cuts(ours) == cuts(plain)
    rows = OWN.join(TABLE)
    predict = "predict" if label == "numbers" else "predict_proba"
    assert np.allclose(getattr(ours, predict)(rows), getattr(plain, predict)(rows), atol=1e-5)
    ours.save(tmp_path / "m.opboost")
    again = op.load(tmp_path / "m.opboost")
    assert (again.predict(rows) == ours.predict(rows)).all()


def test_rows_go_from_disk_to_both_workers_as_bytes(shop, client, monkeypatch):
    booster, scatter, sent = DaskXGBoost(client, PARAMS), client.scatter, []
    inside = trained(shop, "two", booster, own=None)

    def seen(part, *, workers, **how):
        sent.append((part.ndim, part.dtype, *workers))
        return scatter(part, workers=workers, **how)

    monkeypatch.setattr(client, "scatter", seen)
    outside = trained(shop, "two", booster, own=None, memory="external")
    assert {kind for ndim, kind, _ in sent if ndim == 2} == {np.dtype(np.uint8)}
    assert len({worker for *_, worker in sent}) == 2
    assert cuts(outside) == cuts(inside)


def test_a_tree_method_that_does_not_bin_is_refused(shop, client):
    with pytest.raises(ParameterError, match="tree_method"):
        trained(shop, "two", DaskXGBoost(client, {"tree_method": "exact"}))


@pytest.mark.parametrize("memory", ["internal", "external"])
def test_workers_pass_over_their_rows_in_each_step_of_em(shop, client, monkeypatch, memory):
    monkeypatch.setattr(row_blocks, "BLOCK_ROWS", 1100)
    alone = trained(shop, "two", "xgboost", booster_params=PARAMS, denoise=True)
    passes, mapped = [], DaskBlocks.map

    def seen(blocks, work, *each):
        passes.append(len(blocks.futures))
        return mapped(blocks, work, *each)

    monkeypatch.setattr(DaskBlocks, "map", seen)
    ours = trained(shop, "two", DaskXGBoost(client, PARAMS), denoise=True, memory=memory)
    assert ours.denoised_
    assert {6} <= set(passes) <= {5, 6}  # five blocks if a fifth of the rows is held out
    assert len(passes) > 1
    mine, theirs = (m._model.posterior.distribution.member.P for m in (alone, ours))
    assert np.allclose(mine, theirs, atol=2e-3)
    rows = OWN.join(TABLE)
    both = [m.predict_proba(rows)[:, 1] for m in (alone, ours)]
    assert np.corrcoef(*both)[0, 1] > 0.999
