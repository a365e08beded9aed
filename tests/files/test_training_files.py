"""``opboost train`` and ``opboost predict``, as a user calls them from the command line."""

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
    # Other tests in this process may have released the same rows; then the levels are added.
    assert report["total"] % (2 * 9 * 2.0) == pytest.approx(0)
    assert set(report["importance"]) == {"mean radius", "worst texture", "mean smoothness"}
    status, _, err = run("predict", "m.opboost", "people.csv", "-o", "p.csv")
    assert status == 0, err
    told = "One person's record: at most 0. Nothing was released: the rows stay here."
    assert err.splitlines()[-1] == told
    with open("p.csv") as file:
        lines = list(csv.DictReader(file))
    hits = [line["prediction"] == true for line, true in zip(lines, frame["target"], strict=True)]
    assert np.mean(hits) > 0.85
    assert float(lines[0]["probability=ill"]) + float(
        lines[0]["probability=well"]
    ) == pytest.approx(1)
    noisy = run("predict", "m.opboost", "people.csv", "--desensitize", "-o", "n.parquet")
    assert noisy[0] == 0
    # The same rows were also released for training, here and by the saved model: levels add up.
    total = 2 * report["total"] + 2 * 9 * 2.0
    assert noisy[2].splitlines()[-1] == f"One person's record: at most {total:.6g}."
    plain = [line["prediction"] for line in lines]
    assert pq.read_table("n.parquet")["prediction"].to_pylist() != plain


def test_a_record_total_in_the_file_is_what_training_reveals(folder):
    cancer_csv(folder)
    (folder / "local.toml").write_text(
        "[budget]\nrecord = 4.0\n"
        + LOCAL.format(kind="xgboost").split("[mechanism]")[1].replace("epsilon = 2.0", "")
    )
    arguments = ["train", "people.csv", "--label", "target", "-c", "local.toml", "-o", "m.opboost"]
    status, out, err = run(*arguments)
    assert status == 0, err
    last = out.strip().split("\n")[-1]
    assert float(last.removeprefix("One person's record: at most ").removesuffix(".")) % 4 == 0
    for more in (["-o", "p.csv"], ["-o", "noisy.csv", "--desensitize"]):
        status, _, err = run("predict", "m.opboost", "people.csv", *more)
        assert status == 0, err


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
        (None, "outcome", "'outcome' should be the label but is not in the table"),
        (None, "mean radius", "'mean radius' is the label and has another role"),
        (lambda f: f.assign(target="ill"), "target", "holds only one value"),
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


def test_train_prints_a_score_and_predict_scores_a_table_with_labels(folder):
    frame = cancer_csv(folder)
    status, out, err = run(
        "train", "people.csv", "--label", "target", "-c", "local.toml", "-o", "m.opboost"
    )
    assert status == 0, err
    line, last = out.strip().splitlines()[-2:]
    assert line.startswith("AUC on 113 held-out rows: own columns alone 0.")
    assert "→ with the private columns 0." in line
    assert last.startswith("One person's record: at most ")
    status, _, err = run("predict", "m.opboost", "people.csv", "-o", "p.csv")
    assert status == 0, err
    assert "AUC on 569 labelled rows: 0.9" in err
    frame.drop(columns="target").to_csv(folder / "new.csv", index=False)
    status, _, err = run("predict", "m.opboost", "new.csv", "-o", "q.csv")
    assert status == 0, err
    assert "labelled" not in err
    frame.assign(target="well").to_csv(folder / "one.csv", index=False)
    status, _, err = run("predict", "m.opboost", "one.csv", "-o", "r.csv")
    assert status == 0, err
    assert "No score: AUC needs rows of both classes" in err
    frame.assign(target="unknown").to_csv(folder / "odd.csv", index=False)
    status, _, err = run("predict", "m.opboost", "odd.csv", "-o", "s.csv")
    assert status == 0, err
    assert "No score: the label holds a class that the model does not know" in err
    (folder / "local.toml").write_text(LOCAL.format(kind="xgboost") + "[train]\nheld_out = 0\n")
    status, out, err = run(
        "train", "people.csv", "--label", "target", "-c", "local.toml", "-o", "n.opboost"
    )
    assert status == 0, err
    assert "held-out" not in out


TOWNS = """
[columns.town]
categories = {towns}
ordered = {ordered}
{missing}
[booster]
kind = "hist-gbdt"
params = {{ max_iter = 5 }}
"""
RECORD, CELL = "[budget]\nrecord = 8.0", "[mechanism]\nepsilon = 2.0"
FLAG = 'missing = "flag"\neps_missing = 1.0\nmissing_constant = "south"'


def towns(folder, budget, missing, ordered="false", listed='"north", "south"'):
    """Train on a column of towns, and write new rows with two undeclared towns."""
    rng = np.random.default_rng(0)
    rows = [f"{rng.choice(['north', 'south'])},{v},{v % 2}" for v in range(200)]
    (folder / "people.csv").write_text("\n".join(["town,own,paid", *rows]) + "\n")
    (folder / "new.csv").write_text("town,own\nnorth,1\natlantis,2\n,3\natlantis,4\n")
    (folder / "gaps.csv").write_text("town,own\nnorth,1\n,2\n,3\n,4\n")
    text = TOWNS.format(towns=f"[{listed}]", ordered=ordered, missing=missing)
    (folder / "local.toml").write_text(f"{budget}\n{text}")
    status, _, err = run(
        "train", "people.csv", "--label", "paid", "-c", "local.toml", "-o", "m.opboost"
    )
    assert status == 0, err


@pytest.mark.parametrize(
    ("budget", "missing", "ordered", "listed"),
    [
        (RECORD, 'missing = "symbol"', "false", '"north", "south"'),
        (RECORD, 'missing = "symbol"', "true", '"north", "south"'),
        (RECORD, 'missing = "south"', "true", '"north", "south"'),
        (CELL, "", "false", '"north", "south", nan'),
        (CELL, FLAG, "true", '"north", "south"'),
    ],
)
def test_an_unknown_category_is_predicted_as_a_gap_and_counted(
    folder, budget, missing, ordered, listed
):
    towns(folder, budget, missing, ordered, listed)
    status, _, err = run("predict", "m.opboost", "new.csv")
    assert (status, "category occurs that was not declared" in err) == (5, True)
    status, out, err = run("predict", "m.opboost", "new.csv", "--unknown", "missing")
    assert status == 0, err
    assert err.splitlines()[0] == "Unknown categories that count as missing: 2 values, town: 2."
    assert "atlantis" not in out + err
    assert out == run("predict", "m.opboost", "gaps.csv")[1]
    _, _, err = run("predict", "m.opboost", "gaps.csv", "--unknown", "missing")
    assert err.splitlines()[0] == "Unknown categories that count as missing: 0 values."


@pytest.mark.parametrize("budget", [RECORD, CELL])
@pytest.mark.parametrize("ordered", ["true", "false"])
def test_an_unknown_category_of_a_column_without_gaps_is_refused(folder, budget, ordered):
    towns(folder, budget, "", ordered)
    (folder / "new.csv").write_text("town,own\nnorth,1\natlantis,2\n")
    status, out, err = run("predict", "m.opboost", "new.csv", "--unknown", "missing")
    assert (status, out) == (5, "")
    assert "Column 'town' holds undeclared categories, and cannot have missing values" in err
    assert 'missing = "symbol"' in err
    assert "atlantis" not in err


def test_unknown_categories_of_peers_are_their_own_matter(folder):
    status, _, err = run(
        "predict", "m", "n.csv", "--unknown", "missing", "--with-peers", "-c", "a.toml"
    )
    assert (status, "--unknown is for one machine" in err) == (2, True)
