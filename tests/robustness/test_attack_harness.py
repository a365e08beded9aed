"""Hostile peers: attacks of the catalogue on live processes, which keep serving others."""

from __future__ import annotations

from opboost.transport.shared.logs import Log
from robustness.attacks.catalogue import CATALOGUE, by_bundles, on_a_join, on_the_label_server


def failures(report):
    return [str(outcome) for outcome in report.outcomes if not outcome.survived]


def test_every_attack_on_the_label_server_is_refused_and_others_are_served():
    report = on_the_label_server(len(CATALOGUE), seed=20, crowd=300)
    assert failures(report) == []
    assert report.finished


def test_a_hostile_label_party_is_refused_with_a_sentence():
    some = "500 MB|answers without end|steer a terminal|for everything"
    report = on_a_join(4, seed=21, only=some)
    assert failures(report) == []
    assert report.finished


def test_forged_bundles_are_refused_and_the_job_finishes_with_the_true_ones():
    report = by_bundles(2, seed=22)
    assert failures(report) == []
    assert report.finished


def test_a_log_takes_a_limited_number_of_lines_per_minute(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr("opboost.transport.shared.logs.time.monotonic", lambda: now[0])
    log = Log(tmp_path / "log", a_minute=3)
    for _ in range(10):
        log.write("refused", party="shop", why="No.")
    log.write("refused", party="telco", why="No.")
    now[0] = 61.0
    log.write("refused", party="shop", why="Again.")
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 3 + 1 + 2
    assert '"left_out": 7' in lines[4]
