"""Saved models that fuzzing has spoilt are each refused with a sentence."""

from __future__ import annotations

import io
import json
import zipfile

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.errors import DataError
from robustness.fuzz.targets.models import zipped


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the files of a saved model of each library."""
    numbers = np.random.default_rng(0)
    X = pd.DataFrame({"a": numbers.uniform(0, 100, 200), "b": numbers.uniform(0, 1, 200)})
    y = (X.a > 50).astype(int)
    found = {}
    for booster in ("xgboost", "lightgbm", "gbdt", "hist-gbdt"):
        rounds = "max_iter" if booster == "hist-gbdt" else "n_estimators"
        model = op.OpBoostClassifier(
            op.ClampMap(op.Domain(1, 10), epsilon=2.0),
            bounds={"a": (0, 100)},
            booster=booster,
            booster_params={rounds: 3},
            denoise=booster == "xgboost",
            random_state=0,
        ).fit(X, y)
        file = tmp_path_factory.mktemp("models") / booster
        model.save(file)
        with zipfile.ZipFile(file) as archive:
            found[booster] = {name: archive.read(name) for name in archive.namelist()}
    return found


def _refused(tmp_path, files, words):
    file = tmp_path / "model.opboost"
    file.write_bytes(zipped(files))
    with pytest.raises(DataError, match=words):
        op.load(file)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("left_children", 10**6, "a child that does not exist"),
        ("left_children", 0, "a child that does not exist"),
        ("split_indices", 77, "a feature that does not exist"),
        ("split_type", 1, "by categories"),
        ("base_weights", "x", "does not fit"),
    ],
)
def test_a_tree_that_would_crash_xgboost_is_refused(saved, tmp_path, name, value, words):
    files = saved["xgboost"]
    document = json.loads(files["model.json"])
    document["learner"]["gradient_booster"]["model"]["trees"][0][name][0] = value
    _refused(tmp_path, {**files, "model.json": json.dumps(document).encode()}, words)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (b"left_child=", b"left_child=999999 ", "the length of its tree"),
        (b"split_feature=", b"split_feature=x", "whole numbers"),
        (b"num_leaves=", b"num_leaves=9", "the length of its tree"),
        (b"max_feature_idx=1", b"max_feature_idx=9", "features"),
        (b"\nend of trees", b"\nend of tre", "cut short"),
        (b"\nend of parameters", b"", "cut short"),
        (b"leaf_value=", b"leaf_valu=", "Error"),
        (b"objective=binary sigmoid:1", b"objective=", "objective has no name"),
    ],
)
def test_a_text_that_would_end_lightgbm_is_refused(saved, tmp_path, old, new, words):
    files = saved["lightgbm"]
    text = files["model.txt"]
    assert old in text
    changed = text.replace(b"\ntree_sizes=", b"\nlabel=").replace(old, new, 1)
    lines = [line for line in changed.split(b"\n") if not line.startswith(b"label=")]
    _refused(tmp_path, {**files, "model.txt": b"\n".join(lines)}, words)


def test_a_tree_with_a_cycle_is_refused(saved, tmp_path):
    from opboost.boosting.model_validation import check_tree

    check_tree([1, -1, -1], [2, -1, -1], [0, 0, 0], 1)
    with pytest.raises(DataError, match="contains a cycle"):
        check_tree([-1, 3, 2, -1, -1], [-1, 4, 1, -1, -1], [0] * 5, 1)
    with pytest.raises(DataError, match="share a child"):
        check_tree([1, -1], [1, -1], [0, 0], 1)
    with pytest.raises(DataError, match="one child"):
        check_tree([1, -1], [-1, -1], [0, 0], 1)


@pytest.mark.parametrize("booster", ["gbdt", "hist-gbdt"])
def test_a_tree_that_would_crash_scikit_learn_is_refused(saved, tmp_path, booster):
    import skops.io as sio

    from opboost.boosting.sklearn_backend import TREE_TYPES, trees_of

    files = saved[booster]
    model = sio.loads(files["model.skops"], trusted=list(TREE_TYPES))
    _, _, inner = next(trees_of(model))
    node = int(np.flatnonzero(inner)[0])
    if booster == "gbdt":
        model.estimators_[0, 0].tree_.children_left[node] = 10**6
    else:
        model._predictors[0][0].nodes["left"][node] = 10**6
    _refused(tmp_path, {**files, "model.skops": sio.dumps(model)}, "a child that does not exist")


@pytest.mark.parametrize(
    "change",
    [
        {"released": []},
        {"released": 7},
        {"released": [{"times": 10**12, "columns": []}]},
        {"released": [{"times": 1, "columns": [], "columns_per_row": 0, "caveats": []}]},
        {"version": [1]},
        {"model": ["TrainedXGBoost"]},
        {"classes": {"dtype": "<i8<i8", "values": [0, 1]}},
        {"columns": 7},
    ],
    ids=str,
)
def test_a_description_that_says_something_else_is_refused(saved, tmp_path, change):
    files = saved["xgboost"]
    plain = json.loads(files["estimator.json"]) | change
    _refused(tmp_path, {**files, "estimator.json": json.dumps(plain).encode()}, ".")


def test_an_archive_that_would_fill_the_memory_is_not_unpacked(saved, tmp_path):
    files = {**saved["xgboost"], "posterior.npz": bytes(100 * 2**20)}
    file = tmp_path / "model.opboost"
    file.write_bytes(zipped(files, zipfile.ZIP_DEFLATED))
    with pytest.raises(DataError, match="far more than its size"):
        op.load(file)


@pytest.mark.parametrize(
    "change",
    [
        {"P": np.zeros((2, 3, 4), np.float32)},
        {"pi": np.zeros((0, 0), np.float32)},
        {"share": np.array([-1.0, 2.0])},
        {"pairs": np.array([[5, 6]])},
        {"alone": np.array([], np.int64)},
        {"seed": -5},
        {"way": "other"},
        {"constant": np.array(["x"])},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_posterior_of_another_shape_is_refused(saved, tmp_path, change):
    files = saved["xgboost"]
    if "posterior.npz" not in files:
        pytest.fail("the model keeps no posterior")
    with np.load(io.BytesIO(files["posterior.npz"])) as known:
        arrays = dict(known) | change
    out = io.BytesIO()
    np.savez(out, **arrays)
    _refused(tmp_path, {**files, "posterior.npz": out.getvalue()}, "does not fit its columns")
