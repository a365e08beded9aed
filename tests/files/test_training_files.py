"""``opboost train`` and ``opboost predict``, through the command line as a user calls them."""

from __future__ import annotations

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_breast_cancer

import opboost as op
from robustness.command_line import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


LOCAL = """
[mechanism]
epsilon = 2.0
[columns."mean radius"]
bounds = [5, 30]
[columns."worst texture"]
bounds = [10, 50]
[table]
drop = ["worst area"]
[booster]
kind = "{kind}"
seed = 0
params = {{ n_estimators = 20 }}
"""


def cancer_csv(folder, kind="xgboost"):
    names = ["mean radius", "worst texture", "worst area", "mean smoothness", "target"]
    frame = load_breast_cancer(as_frame=True).frame[names]
    frame["target"] = frame["target"].map({0: "ill", 1: "well"})
    frame.to_csv(folder / "people.csv", index=False)
    (folder / "local.toml").write_text(LOCAL.format(kind=kind))
    return frame


@pytest.mark.parametrize("kind", ["xgboost", "lightgbm", "gbdt"])
def test_train_and_predict_on_files(folder, kind):
    frame = cancer_csv(folder, kind)
    arguments = ["train", "people.csv", "--label", "target", "-c", "local.toml", "-o", "m.opboost"]
    status, out, err = run(*arguments, "--format", "json")
    assert status == 0, err
    report = json.loads(out)
    # Other tests of this process may have released the same rows: then the levels are added up.
    assert report["total"] % (2 * 9 * 2.0) == pytest.approx(0)
    assert set(report["importance"]) == {"mean radius", "worst texture", "mean smoothness"}
    status, _, err = run("predict", "m.opboost", "people.csv", "-o", "p.csv")
    assert status == 0, err
    with open("p.csv") as file:
        lines = list(csv.DictReader(file))
    hits = [line["prediction"] == true for line, true in zip(lines, frame["target"], strict=True)]
    assert np.mean(hits) > 0.85
    assert float(lines[0]["probability=ill"]) + float(
        lines[0]["probability=well"]
    ) == pytest.approx(1)
    noisy = run("predict", "m.opboost", "people.csv", "--desensitize", "-o", "n.parquet")
    assert noisy[0] == 0
    plain = [line["prediction"] for line in lines]
    assert pq.read_table("n.parquet")["prediction"].to_pylist() != plain


def test_train_tells_a_regression_from_a_classification(folder):
    frame = cancer_csv(folder)
    frame["target"] = frame["mean radius"] * 2 + 1
    frame.to_csv(folder / "people.csv", index=False)
    arguments = ["train", "people.csv", "--label", "target", "-c", "local.toml", "-o", "m.opboost"]
    assert run(*arguments)[0] == 0
    assert isinstance(op.load("m.opboost"), op.OpBoostRegressor)


@pytest.mark.parametrize(
    ("change", "label", "words"),
    [
        (None, "outcome", "'outcome' is to be the label but is not in the table"),
        (None, "mean radius", "'mean radius' is the label and has another role"),
        (lambda f: f.assign(target="ill"), "target", "one class only"),
        (lambda f: f.head(5), "target", "5 rows are too few"),
        (lambda f: f.assign(target=f["target"].where(f.index > 3)), "target", "has missing values"),
        (
            lambda f: f.drop(columns="mean radius"),
            "target",
            "'mean radius' of local.toml is not in",
        ),
    ],
)
def test_bad_training_tables_are_refused(folder, change, label, words):
    frame = cancer_csv(folder)
    if change:
        change(frame).to_csv(folder / "people.csv", index=False)
    arguments = ["train", "people.csv", "--label", label, "-c", "local.toml", "-o", "m.opboost"]
    try:
        status, _, message = run(*arguments)
    except ValueError as error:
        status, message = 5, str(error)
    assert status == 5
    assert words in message
    assert not (folder / "m.opboost").exists()


def test_a_model_of_another_schema_or_a_broken_one_is_refused(folder):
    cancer_csv(folder)
    arguments = ["train", "people.csv", "--label", "target", "-c", "local.toml", "-o", "m.opboost"]
    assert run(*arguments)[0] == 0
    (folder / "other.csv").write_text("a,b\n1,2\n")
    status, _, message = run("predict", "m.opboost", "other.csv")
    assert (status, "is needed by the model" in message) == (5, True)
    (folder / "m.opboost").write_bytes(b"PK broken")
    status, _, message = run("predict", "m.opboost", "people.csv")
    assert (status, "not a saved estimator" in message) == (5, True)
