"""The auditor accuses no sound mechanism, and catches broken ones."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.stats import binom

import opboost as op
from opboost.auditing.independence import chance_of_independence
from opboost.auditing.loss_bounds import (
    loss_below,
    most_revealing_event,
    proportion_above,
    proportion_below,
)
from robustness.audits.auditor_trial import SOUND, attacked, caught
from robustness.audits.faulty_mechanisms import BROKEN, GRID
from robustness.command_line import run

AT_MILLIONS = {"level a hundredth larger", "one row in a hundred repeats the last"}
AT_TEN_MILLION = {"float noise with gaps"}


@pytest.mark.parametrize("n", [20, 1000, 10**8])
@pytest.mark.parametrize("risk", [0.05, 1e-9])
def test_the_bounds_are_clopper_and_pearsons(n, risk):
    for count in {0, 1, n // 3, n - 1, n}:
        low, high = proportion_below(count, n, risk), proportion_above(count, n, risk)
        assert low <= count / n <= high
        if count > 0:
            assert binom.sf(count - 1, n, low) == pytest.approx(risk, rel=1e-4)
        if high < 1:
            assert binom.cdf(count, n, high) == pytest.approx(risk, rel=1e-4)


def test_a_bound_errs_as_seldom_as_it_says():
    n, p, q, risk = 100, 0.3, 0.1, 0.1
    counts = np.arange(n + 1)
    wrong = sum(
        binom.pmf(a, n, p) * binom.pmf(b, n, q)
        for a in counts
        for b in counts[:40]
        if loss_below(int(a), n, int(b), n, risk) > np.log(p / q)
    )
    assert 0 < wrong <= risk


def test_the_event_is_the_one_that_tells_most():
    x, y = np.array([500, 300, 200, 0]), np.array([100, 60, 240, 600])
    assert most_revealing_event((x, y), (x, y), 8.0, 1e-6).tolist() == [True, True, False, False]
    assert most_revealing_event((y, x), (y, x), 8.0, 1e-6).tolist() == [False, False, False, True]


def test_a_sound_mechanism_is_accused_as_seldom_as_the_confidence_says():
    m = op.RandomizedResponse(op.Domain(1, 3), 0.5)
    alarms = sum(
        any(p.beyond_distribution for p in op.audit(m, samples=2000, pairs=1, confidence=0.5).pairs)
        for _ in range(20)
    )
    assert alarms <= binom.ppf(1 - 1e-9, 20, 0.25)


@pytest.mark.parametrize("name", SOUND)
def test_every_sound_mechanism_passes_and_its_loss_is_nearly_reached(name):
    one = attacked(name, 100_000, pairs=5)
    assert one.findings == ()
    assert 0.7 < one.nearest <= 1


@pytest.mark.parametrize("name", sorted(set(BROKEN) - AT_MILLIONS - AT_TEN_MILLION))
def test_every_broken_mechanism_is_caught(name):
    assert caught(name, 100_000)


@pytest.mark.parametrize("name", sorted(AT_MILLIONS))
def test_what_is_only_slightly_broken_takes_more_samples(name):
    assert caught(name, 5_000_000)


def test_independent_columns_look_so_and_others_do_not():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 6, (2, 50_000))
    assert chance_of_independence((a, b)) > 1e-6
    assert chance_of_independence((a, np.where(rng.random(50_000) < 0.05, a, b))) < 1e-9
    assert chance_of_independence((a, np.zeros_like(a))) == 1.0


def test_pairs_can_be_named_and_cover_missing_values():
    m = op.WithMissing(op.ClampMap(GRID, 0.5), eps_missing=1.0, constant=5)
    found = op.audit(m, samples=20_000, pairs=[(None, 7), (3, 4)])
    assert {frozenset((p.x, p.y)) for p in found.pairs} == {frozenset((None, 7)), frozenset((3, 4))}
    assert [p.promised for p in found.pairs] == [2.0, 0.5]


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"mechanism": "clamp-map"}, "takes a mechanism with a promise"),
        ({"samples": 10}, "1,000 samples or more"),
        ({"confidence": 1.0}, "between 0 and 1"),
        ({"pairs": []}, "at least one pair"),
    ],
)
def test_what_cannot_be_audited_is_refused(asked, words):
    given = {"mechanism": op.ClampMap(GRID, 0.5), "samples": 2000, **asked}
    with pytest.raises(op.ParameterError, match=words):
        op.audit(given.pop("mechanism"), **given)


CONFIG = """
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [17, 90]
[columns.pay]
bounds = [0, 100]
[columns.size]
categories = ["S", "M", "L"]
ordered = true
[budget]
split = "sampled"
columns_per_row = 1
"""


def test_the_command_prints_promise_exact_and_bound(tmp_path):
    config = tmp_path / "b.toml"
    config.write_text(CONFIG)
    status, out, _ = run("audit", "-c", config, "--samples", 20_000, "--pairs", 3)
    assert status == 0
    assert "age, pay" in out
    assert "a whole record" in out
    assert out.splitlines()[-1].startswith("One person's record: at most ")
    asked = ("audit", "-c", config, "--samples", 20_000, "--pairs", 3, "--format", "json")
    status, out, _ = run(*asked)
    said = json.loads(out)
    assert status == 0
    assert said["sound"] is True
    assert said["total"] > 0
    assert all(
        p["lower"] <= p["exact"] <= p["promised"] for a in said["audits"] for p in a["pairs"]
    )


def test_windows_gaps_and_sets_are_audited_and_certified(tmp_path):
    config = tmp_path / "b.toml"
    config.write_text(
        '[mechanism]\nkind = "window-map"\ntotal = 1.0\nnear = 0.25\n'
        '[columns.age]\nbounds = [17, 90]\nmissing = "symbol"\n'
        "[columns.pay]\nbounds = [0, 9]\n"
        'mechanism = { kind = "window-map", total = 2.0, clipped = false }\n'
        '[columns.city]\ncategories = ["n", "s", "e"]\n'
        'mechanism = { kind = "subset-selection", epsilon = 0.5 }\n'
    )
    asked = ("audit", "-c", config, "--samples", 20_000, "--pairs", 4, "--format", "json")
    status, out, _ = run(*asked)
    said = json.loads(out)
    assert (status, said["sound"]) == (0, True)
    pairs = [p for a in said["audits"] for p in a["pairs"]]
    assert any(None in (p["x"], p["y"]) for p in pairs)
    assert all(p["lower"] <= p["exact"] <= p["promised"] for p in pairs)
    status, out, _ = run("certify", "-c", config, "--format", "json")
    said = json.loads(out)
    assert (status, said["covered"], said["total"]) == (0, True, 3.5)
    assert [c["exact_epsilon"] for c in said["columns"]] == pytest.approx([0.25, 2.0, 0.5])


def test_the_command_refuses_a_broken_mechanism(tmp_path, monkeypatch):
    config = tmp_path / "b.toml"
    config.write_text(CONFIG.split("[budget]")[0])
    sound = op.ClampMap.sample
    monkeypatch.setattr(
        op.ClampMap, "sample", lambda self, x, rng=None, **how: sound(self.scaled(2), x, rng, **how)
    )
    status, out, err = run("audit", "-c", config, "--samples", 100_000, "--pairs", 3)
    assert status == 3
    assert "BROKEN" in out
    assert "the promise is 0.64" in err
