"""Every command that sets or spends a record total warns if the total hides next to nothing."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest

from opboost.explorer import pages
from opboost.explorer.choice import Form
from opboost.explorer.record_form import RecordForm
from opboost.promises import large_total_warning
from robustness.command_line import run

BY_EPSILON = '[mechanism]\nkind = "clamp-map"\nepsilon = {}\n[columns.age]\nbounds = [0, 100]\n'
BY_RECORD = "[budget]\nrecord = {}\n[columns.age]\nbounds = [0, 100]\n"
WARNING = "Warning: a record total of {} hides next to nothing."


@pytest.mark.parametrize("total", [0.1, 8.0, 20.0, math.inf])
def test_usual_totals_get_no_warning(total):
    assert large_total_warning(total) is None


def test_the_warning_states_odds_and_the_bound_on_a_guess():
    words = large_total_warning(24.0)
    assert "e^24 ≈ 2.6e10 times as likely" in words  # e^24 = 26,489,122,129.8
    assert "e^24/(1 + e^24) ≈ 1 − 4e-11" in words
    assert math.exp(24) == pytest.approx(2.6e10, rel=0.02)
    assert "e^1800 ≈ 5.4e781 " in large_total_warning(1800.0)  # beyond the range of floats


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 100, 60)
    pd.DataFrame({"age": age, "old": (age > 50).astype(int)}).to_csv("people.csv", index=False)
    return tmp_path


def test_certify_plan_and_train_warn_before_anything_is_spent(folder):
    (folder / "even.toml").write_text(BY_EPSILON.format(100))
    (folder / "usual.toml").write_text(BY_EPSILON.format(1))
    (folder / "record.toml").write_text(BY_RECORD.format(46.4))
    train = ("train", "people.csv", "--label", "old", "-o")
    for total, verb in (
        (900, ("certify", "-c", "even.toml")),
        (900, (*train, "m.opboost", "-c", "even.toml")),
        (46.4, ("plan", "-c", "record.toml")),
    ):
        status, out, err = run(*verb)
        assert status == 0, err
        assert WARNING.format(total) in err
        assert WARNING.format(total) not in out
    status, out, err = run("certify", "-c", "usual.toml", "--format", "json")
    assert status == 0, err
    assert "Warning" not in err
    assert json.loads(out)["warning"] is None
    status, out, err = run("plan", "-c", "record.toml", "--format", "json")
    assert status == 0, err
    assert json.loads(out)["warning"].startswith(WARNING.format(46.4))


def test_both_pages_of_the_explorer_warn():
    record = pages.record_part(RecordForm.of({"record": "46"}))
    assert WARNING.format(46) in record.html
    assert "Warning" not in pages.record_part(RecordForm.of({"record": "8"})).html
    mechanism = pages.mechanism_part(Form.of({"epsilon": "8"}, {}))
    assert "hides next to nothing" in mechanism.html
