"""Training on a real Spark session gives the model of one machine."""

from __future__ import annotations

import os
import shutil
import sys
import warnings

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.denoise import row_blocks
from opboost.errors import ParameterError
from opboost.protocol.messages import Welcome

if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
    pytest.skip("Spark needs Java", allow_module_level=True)

pyspark = pytest.importorskip("pyspark", reason="Spark is an extra: pip install 'opboost[spark]'")

ROWS = 4000
GRID = op.Domain(1, 10)
RNG = np.random.default_rng(5)
TABLE = pd.DataFrame(RNG.uniform(0, 1, (ROWS, 4)), columns=list("abcd"))
SCORE = TABLE["a"] + TABLE["b"] * TABLE["c"] + 0.2 * RNG.normal(size=ROWS)
LABELS = {"two": SCORE > 0.8, "numbers": SCORE}
PARAMS = {"n_estimators": 10, "max_depth": 3, "eta": 0.3}
WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")


@pytest.fixture(scope="module")
def session():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # from Spark itself, about its future
        from pyspark.sql import SparkSession

        made = (
            SparkSession.builder.master("local[2]")
            .config("spark.ui.enabled", "false")
            .config("spark.driver.bindAddress", "127.0.0.1")
            .config("spark.driver.host", "127.0.0.1")
            .config("spark.sql.shuffle.partitions", "2")
            .getOrCreate()
        )
        yield made
        made.stop()


@pytest.fixture(scope="module")
def shop():
    columns = [
        op.PrivateColumn(n, op.NumericMapping(GRID, (0, 1)), op.ClampMap(GRID, 1.0)) for n in TABLE
    ]
    return op.FeatureParty(TABLE, columns)


def trained(shop, label, booster, **settings):
    settings = {"denoise": False, "random_state": 0, **settings}
    bank = op.LabelParty(None, LABELS[label], booster=booster, ask="if-needed", **settings)
    return bank.train([op.MemoryChannel(shop)], welcome=WELCOME)


def cuts(model):
    """Return the columns and values of a model's splits; leaves may be summed in another order."""
    trees = model.model_.trees_to_dataframe()
    return trees[["Tree", "Node", "Feature", "Split"]].fillna(-1).values.tolist()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("label", "memory"), [("two", "internal"), ("numbers", "external")])
def test_two_tasks_give_the_model_of_one_machine(shop, session, label, memory, tmp_path):
    from opboost.scale.spark_training import SparkXGBoost

    plain = trained(shop, label, "xgboost", booster_params=PARAMS)
    ours = trained(shop, label, SparkXGBoost(session, PARAMS, folder=tmp_path), memory=memory)
    assert cuts(ours) == cuts(plain)
    predict = "predict" if label == "numbers" else "predict_proba"
    assert np.allclose(getattr(ours, predict)(TABLE), getattr(plain, predict)(TABLE), atol=1e-5)
    assert list(tmp_path.iterdir()) == []
    ours.save(tmp_path / "m.opboost")
    assert (op.load(tmp_path / "m.opboost").predict(TABLE) == ours.predict(TABLE)).all()


@pytest.mark.filterwarnings("ignore")
def test_held_out_rows_are_refused(session):
    from opboost.scale.spark_training import SparkXGBoost

    m = op.ClampMap(GRID, 1.0)
    clf = op.OpBoostClassifier(m, bounds=(0, 1), booster=SparkXGBoost(session), denoise=False)
    with pytest.raises(ParameterError, match="eval_set"):
        clf.fit(TABLE, LABELS["two"], eval_set=(TABLE, LABELS["two"]))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("memory", ["internal", "external"])
def test_executors_pass_over_the_rows_in_each_step_of_em(
    shop, session, monkeypatch, tmp_path, memory
):
    from opboost.scale.spark_training import SparkXGBoost

    monkeypatch.setattr(row_blocks, "BLOCK_ROWS", 700)
    alone = trained(shop, "two", "xgboost", booster_params=PARAMS, denoise=True)
    booster = SparkXGBoost(session, PARAMS, folder=tmp_path)
    ours = trained(shop, "two", booster, denoise=True, memory=memory)
    assert ours.denoised_
    assert list(tmp_path.iterdir()) == []
    mine, theirs = (m._model.posterior.distribution.member.P for m in (alone, ours))
    assert np.allclose(mine, theirs, atol=2e-3)
    both = [m.predict_proba(TABLE)[:, 1] for m in (alone, ours)]
    assert np.corrcoef(*both)[0, 1] > 0.999
