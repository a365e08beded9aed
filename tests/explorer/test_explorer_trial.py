"""The trial on a table: its scores, its refusals, and the process in which it runs."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import opboost as op
from opboost.config.columns_file import parse
from opboost.errors import ColumnError, DataError
from opboost.explorer.trial import FACTORS, TREES, sample_rows, tried
from opboost.explorer.trial_process import TrialProcess

TOML = "[mechanism]\nepsilon = 1.5\n[columns.a]\nbounds = [0, 1]\n[columns.b]\nbounds = [0, 1]\n"
RNG = np.random.default_rng(3)
X = RNG.uniform(size=(240, 2))
LABELS = {
    "AUC": np.where(X[:, 0] + X[:, 1] > 1, "yes", "no"),
    "accuracy": np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [0.3, 0.7])],
    "R²": 5 * X[:, 0] - X[:, 1],
}


def written(folder, y, name="t.csv"):
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "free text": "x", "y": y})
    frame.iloc[:9, 0] = np.nan  # rows with gaps are left out
    frame.to_csv(folder / name, index=False)
    return folder / name


@pytest.mark.parametrize("measure", LABELS)
def test_models_are_measured_without_noise_with_it_and_denoised(tmp_path, measure):
    file = written(tmp_path, LABELS[measure])
    plain, naive, denoised = islice(tried(file, parse(TOML, "b.toml"), "y"), 3)
    assert [r.way for r in (plain, naive, denoised)] == ["plain", "naive", "denoised"]
    assert [r.done for r in (plain, naive, denoised)] == [1, 2, 3]
    assert (plain.measure, plain.of, plain.rows) == (measure, 1 + 2 * len(FACTORS), 231)
    assert (plain.epsilon, naive.epsilon) == (None, 1.5 * FACTORS[0])
    assert plain.score > 0.9
    assert plain.score > naive.score + 0.03


def test_a_window_map_is_tried_at_multiples_of_its_total(tmp_path):
    window = TOML.replace("epsilon = 1.5", 'kind = "window-map"\ntotal = 4.0')
    file = written(tmp_path, LABELS["AUC"])
    _, naive, denoised = islice(tried(file, parse(window, "b.toml"), "y"), 3)
    assert naive.epsilon == denoised.epsilon == 4.0 * FACTORS[0]
    assert 0 <= denoised.score <= 1


def test_naive_and_denoised_are_what_the_estimator_makes_of_the_same_noise(tmp_path):
    file, plan = written(tmp_path, LABELS["AUC"]), parse(TOML, "b.toml")
    _, naive, denoised = islice(tried(file, plan, "y"), 3)
    sample = sample_rows(file, plan, "y", 0)
    y = np.array(sample.column("y").to_pylist())
    columns = tuple(c.scaled(FACTORS[0]) for c in plan.private)
    for result, denoise in ((naive, False), (denoised, True)):
        estimator = op.OpBoostClassifier(
            columns,
            booster_params=TREES["xgboost"],
            denoise=denoise,
            random_state=0,
            noise_rng=op.SeededRng(0).child(repr(FACTORS[0])),
        ).fit(sample.select(["a", "b"])[:154], y[:154])
        chances = estimator.predict_proba(sample.select(["a", "b"])[154:])[:, 1]
        assert roc_auc_score(y[154:] == "yes", chances) == result.score


def test_what_cannot_be_tried_is_said(tmp_path):
    plan = parse(TOML, "b.toml")
    with pytest.raises(ColumnError, match="'z' is not in the table"):
        next(tried(written(tmp_path, LABELS["AUC"]), plan, "z"))
    few = tmp_path / "few.csv"
    pd.read_csv(written(tmp_path, LABELS["AUC"]))[:40].to_csv(few, index=False)
    with pytest.raises(DataError, match="31 rows without missing values are too few"):
        next(tried(few, plan, "y"))
    one = parse("[mechanism]\nepsilon = 1\n[columns.a]\nbounds = [0, 1]\n", "b.toml")
    with pytest.raises(DataError, match="No column but the label has bounds"):
        next(tried(few, one, "a"))


def test_a_process_tells_its_problem_without_a_value(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text("a,b,y\n" + "secret-value,2,1\n" * 80)
    background = TrialProcess()
    assert background.progress().state == "idle"
    background.start(file, "y", TOML)
    end = time.monotonic() + 120
    while background.progress().state == "running" and time.monotonic() < end:
        time.sleep(0.05)
    progress = background.progress()
    assert progress.state == "failed"
    assert "Column 'a' of t.csv must hold numbers (first in row 0)" in progress.problem
    assert "secret-value" not in progress.problem
    background.stop()


def test_a_trial_that_is_stopped_is_gone(tmp_path):
    background = TrialProcess()
    background.start(written(tmp_path, LABELS["AUC"]), "y", TOML)
    process = background._process
    background.stop()
    assert process.returncode  # killed without waiting
    assert background.progress().state == "stopped"
    background.stop()  # a second call does no harm
