"""Peers run separately; a failing peer is reported, stops no other, and leaves nothing behind."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opboost.errors import DataError
from opboost_lab.bench import federated_peers, library_peers, peer_results, peer_table
from opboost_lab.bench.federated_peers import (
    ALONE,
    DP_EBM,
    OPBOOST,
    PEERS,
    PLAIN,
    TREES,
    Elsewhere,
    FederatedPeer,
    Ran,
    run,
    synthetic,
)
from opboost_lab.bench.federation import Size
from opboost_lab.bench.library_peers import Family, PeerError, answered, interpreter
from opboost_lab.bench.peer_results import Results
from opboost_lab.data.datasets import has
from robustness.command_line import run as command

DOCS = Path(__file__).parents[2] / "docs"
SMALL = Size(400, 3, 2, 1)
TABLES = {"small": synthetic(SMALL)}
OTHER = Elsewhere(173.0, 900.0, 6_000_000)
ABSENT = FederatedPeer(
    "absent", "order", "nobody", "fed_plain.py", ("opboost-no-such-package",), elsewhere=OTHER
)


def test_plain_training_is_scored_and_a_failing_peer_stops_nobody():
    broken = FederatedPeer("broken", "nothing", "nobody", "no_such_script.py")
    slow = FederatedPeer("heavy", "HE", "nobody", "", ("no-such-package",), heavy=True)
    first, second, third = run((broken, slow, PLAIN), TABLES, repeats=2, plain_runs=1)
    assert "no_such_script" in first.problem
    assert first.problem.endswith(f"(trees: {TREES})")
    assert second.problem.startswith("not tried")
    assert third.problem == ""
    assert len(third.auc["small"]) == 2
    assert third.auc["small"][0] > 0.7
    assert third.ratio == 1
    assert third.version


@pytest.fixture(scope="module")
def plain():
    """Return the figures of plain training, measured once."""
    (ran,) = run((PLAIN,), TABLES, plain_runs=1)
    return ran


def test_the_label_party_alone_has_fewer_columns(plain):
    (alone,) = run((ALONE,), TABLES, plain_runs=1)
    assert alone.auc["small"] != plain.auc["small"]
    assert 0 < alone.plain < 5
    assert alone.ratio == alone.seconds / alone.plain


def test_time_and_bytes_of_few_trees_are_extrapolated_by_their_difference(plain):
    slow = replace(PLAIN, run="extrapolated")
    assert federated_peers._figure([10.0, 14.0], slow) == 10 + 2 * (TREES - 1)
    assert federated_peers._figure([10.0, 14.0, 11.0], PLAIN) == 11
    (ran,) = run((slow,), TABLES, plain_runs=1)
    assert len(ran.auc["small"]) == 1
    assert ran.auc["small"][0] < plain.auc["small"][0]  # the score after three trees


def test_a_peer_that_does_not_install_in_time_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    needy = replace(ABSENT, needs="It needs libntl44.")
    (ran,) = run((needy,), TABLES, install_limit=0.01)
    assert ran.problem == "did not install within 0 s. It needs libntl44."


def test_a_version_of_python_that_is_not_here_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (ran,) = run((replace(ABSENT, python="3.2"),), TABLES)
    assert ran.problem == "needs Python 3.2, which is not here; OPBOOST_PYTHON_3_2 can name one"


@pytest.mark.skipif(os.name == "nt", reason="makes scripts that Windows does not run")
def test_a_python_of_the_right_version_is_named_or_found_on_the_path_or_in_pyenv(
    monkeypatch, tmp_path
):
    version = f"3.{sys.version_info.minor}"

    def python(place, line):
        place.parent.mkdir(parents=True)
        place.write_text(f"#!/bin/sh\n{line}\n")
        place.chmod(0o755)
        return str(place)

    run_this = f'exec "{sys.executable}" "$@"'
    pyenv = python(tmp_path / f"versions/{version}.1/bin/python", run_this)
    shim = tmp_path / f"shims/python{version}"
    python(shim, "echo 'pyenv: command not found' >&2; exit 127")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", f"{shim.parent}:/bin:/usr/bin")
    assert interpreter(version) == pyenv
    monkeypatch.setenv("PATH", str(Path(python(tmp_path / f"on/python{version}", run_this)).parent))
    assert interpreter(version) == str(tmp_path / f"on/python{version}")
    named = python(tmp_path / "named/python", run_this)
    monkeypatch.setenv(f"OPBOOST_PYTHON_3_{sys.version_info.minor}", named)
    assert interpreter(version) == named
    for other in ("absent", "shims", f"shims/python{version}"):  # missing, a folder, one that fails
        monkeypatch.setenv(f"OPBOOST_PYTHON_3_{sys.version_info.minor}", str(tmp_path / other))
        with pytest.raises(PeerError, match=f"needs Python {version}"):
            interpreter(version)


def test_a_peer_that_takes_too_long_is_ended_with_its_children(tmp_path):
    code = (
        "import subprocess, sys, time\n"
        "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'],"
        " start_new_session=True)\n"
        "time.sleep(60)"
    )
    seen = []
    end = Family.end

    def watched(self):
        seen.append((self, len(self.members())))
        end(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Family, "end", watched)
        with pytest.raises(PeerError, match="did not finish within 4 s"):
            answered([sys.executable, "-c", code], {}, 4, tmp_path)
    family, members = seen[0]
    assert members == 2
    for _ in range(50):
        if not family.members():
            break
        time.sleep(0.1)
    assert not family.members()


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import sys; sys.exit('the disk\\n is full\\n\\n')", "is full"),
        ("print('no JSON')", "gave no answer that can be read: no JSON"),
        ("import os; os._exit(3)", "status 3"),
    ],
)
def test_a_peer_that_fails_has_a_reason_of_one_line(tmp_path, code, reason):
    with pytest.raises(PeerError) as error:
        answered([sys.executable, "-c", code], {}, 60, tmp_path)
    assert str(error.value) == reason


def test_one_party_that_fails_does_not_leave_the_other_waiting(tmp_path):
    """A script runs two parties: the first waits forever, the second fails."""
    code = (
        f"import sys; sys.path.insert(0, {str(library_peers.SCRIPTS)!r})\n"
        "import time; from loopback import two_parties\n"
        "def work(rank, request, trained):\n"
        "    time.sleep(600) if rank == 0 else int('a party failed')\n"
        "two_parties(work, {})"
    )
    with pytest.raises(PeerError, match="a party failed"):
        answered([sys.executable, "-c", code], {}, 120, tmp_path)


def ran(peer=PLAIN, **figures):
    found = {"seconds": 2.0, "plain": 0.5, "bytes": 98_305, "apart": True, "version": "1.0"}
    return Ran(peer, **{**found, "auc": {"synthetic": [0.8, 0.9]}, **figures})


def results(*found):
    return Results("400 rows", 2, "2 cores, Python 3.11.7", found)


def test_a_row_says_whether_it_was_measured_extrapolated_or_taken_from_elsewhere():
    assert peer_table.figures(ran()) == ["2.00 s", "4", "0.50 s", "98 kB"]
    assert peer_table.basis(ran()) == "measured"
    assert peer_table.basis(ran(replace(PLAIN, run="once"))) == "measured once"
    assert peer_table.score(ran(auc={"a": [0.7, 0.7]}), "a") == "0.700"
    slow = replace(PLAIN, run="extrapolated")
    found = ran(slow, seconds=6880.4, bytes=0)
    assert peer_table.figures(found) == ["6,880 s", "14,000", "0.50 s", "none"]
    assert peer_table.basis(found) == "from 2 trees"
    assert peer_table.score(ran(slow, auc={"a": [0.7]}), "a") == "0.700 (3 trees)"
    failed = Ran(ABSENT, problem="no")
    assert peer_table.figures(failed) == ["173 s", "900", "–", "6.0 MB"]
    assert peer_table.basis(failed) == "measured elsewhere"
    far = Ran(replace(ABSENT, elsewhere=Elsewhere(1.0, 2.0, extrapolated=True)), problem="no")
    assert peer_table.figures(far) == ["1.00 s", "2", "–", "–"]
    assert peer_table.basis(far) == "measured elsewhere, from 2 trees"
    assert peer_table.figures(Ran(PLAIN, problem="no")) == ["–"] * 4
    assert peer_table.basis(Ran(PLAIN, problem="no")) == "none"
    assert peer_table.figures(ran(apart=False))[3] == "98 kB \\*"
    assert peer_table.figures(ran(plain=0.0))[1:3] == ["–", "–"]


def test_a_peer_that_cannot_be_installed_is_listed_with_its_error(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = list(run((replace(ABSENT, requirements=("./no-such-wheel.whl",)),), TABLES))
    text = peer_table.table([ran(), *found])
    head, rule, first, second, _, reason = text.splitlines()
    assert head == (
        "| system | training time | × plain | plain then | over loopback | AUC, synthetic "
        "| basis | protects | you must trust |"
    )
    assert head.count("|") == rule.count("|") == first.count("|") == second.count("|")
    assert "0.850 ± 0.071" in first
    assert second.startswith("| absent | 173 s | 900 | – | 6.0 MB | – | measured elsewhere")
    assert reason.startswith("- **absent** was not measured here: ")
    assert "no-such-wheel.whl" in reason


def test_the_page_begins_with_the_answer_and_needs_the_rows_it_speaks_of():
    found = [ran(peer, seconds=i + 1.0) for i, peer in enumerate(PEERS)]
    text = peer_table.page(results(*found))
    place = PEERS.index(OPBOOST)
    assert f"took {2 * (place + 1)} times as long as plain XGBoost" in text
    encrypting = [peer for peer in PEERS if peer.encrypts]
    assert {peer.run for peer in encrypting} == {"extrapolated"}
    assert f"encrypts and was measured here, {encrypting[0].name},\n  would take" in text
    assert all(f"times ({peer.name})" in text for peer in encrypting[1:])
    assert "0.850 ± 0.071" in text
    assert "a trusted place that sees all raw rows" in text
    assert peer_table.table(found) in text
    unfinished = peer_table.page(results(*found[:-1]))
    assert f"- **{PEERS[-1].name}** was not measured here: the run was stopped" in unfinished
    found[place] = Ran(OPBOOST, problem="no")
    with pytest.raises(DataError, match=OPBOOST.name):
        peer_table.page(results(*found))


def test_the_page_of_the_manual_is_written_from_the_stored_results():
    stored = peer_results.load(DOCS / "peers.json")
    measured = [ran.peer for ran in stored.ran if not ran.problem]
    assert all(peer in measured for peer in (PLAIN, ALONE, OPBOOST, DP_EBM))
    assert (DOCS / "peers.md").read_text(encoding="utf-8") == peer_table.page(stored)


def test_stored_results_come_back_unless_the_peer_is_run_differently_now(tmp_path):
    path = tmp_path / "peers.json"
    found = results(ran(auc={"a": [0.5, 0.25]}), Ran(ABSENT, problem="no"))
    found.save(path)
    assert peer_results.load(path, (PLAIN, ABSENT)) == found
    described = replace(PLAIN, protects="the same in other words")
    assert [r.peer for r in peer_results.load(path, (described,)).ran] == [described]
    changed = replace(PLAIN, settings={"alone": True}), replace(ABSENT, requirements=("other",))
    assert peer_results.load(path, changed).ran == ()


def test_a_continued_run_measures_only_what_is_missing_or_failed(monkeypatch, tmp_path):
    path, tried = tmp_path / "peers.json", []

    def measure(peer, *_):
        tried.append(peer.name)
        if len(tried) == 2:
            raise PeerError("no network")
        return ran(peer)

    monkeypatch.setattr(federated_peers, "_one", measure)
    monkeypatch.setattr(federated_peers, "PEERS", PEERS[:2])
    monkeypatch.setattr(federated_peers, "QUICK", SMALL)
    call = ["bench", "peers", "--quick", "--results", str(path), "--repeats"]
    assert command(*call, "1")[0] == 0
    first, second = peer_results.load(path, PEERS[:2]).ran
    assert second.problem == "no network"
    monkeypatch.setattr(federated_peers, "PEERS", PEERS[:3])
    assert command(*call, "1")[0] == 0
    assert tried == [PEERS[0].name, PEERS[1].name, PEERS[1].name, PEERS[2].name]
    assert peer_results.load(path, PEERS[:3]).ran == (first, ran(PEERS[1]), ran(PEERS[2]))
    status, _, errors = command(*call, "2")
    assert status == 5
    assert "1 repeats" in " ".join(errors.split())


def test_the_listed_peers_are_those_that_the_page_speaks_of():
    assert [peer.settings.get("record") for peer in PEERS[2:5]] == [1, 4, 8]
    assert [peer.settings.get("epsilon") for peer in PEERS[5:8]] == [1, 4, 8]
    assert OPBOOST.settings == {"record": 4.0}
    assert DP_EBM.settings["epsilon"] == 4
    assert ALONE.settings == {"alone": True}
    for peer in PEERS:
        assert not peer.script or (library_peers.SCRIPTS / peer.script).is_file()
        assert peer.script or peer.elsewhere


@pytest.mark.skipif(not has("adult_train"), reason="the paper's data are not available")
def test_adult_has_the_categories_first_and_values_within_declared_bounds():
    rows = federated_peers.adult()
    assert rows.own == 8
    assert rows.nominal.sum() == 8
    for X in (rows.X, rows.X_test):
        assert (rows.bounds[:, 0] <= X.min(axis=0)).all()
        assert (X.max(axis=0) <= rows.bounds[:, 1]).all()
    assert set(np.unique(rows.y)) == {0, 1}
    assert rows.X.shape == (32_561, 13)


def test_the_verb_prints_ratios_and_reasons_and_refuses_a_page_without_its_rows(
    monkeypatch, tmp_path
):
    heavy = FederatedPeer("heavy", "HE", "nobody", "", heavy=True)
    monkeypatch.setattr(federated_peers, "PEERS", (PLAIN, heavy))
    monkeypatch.setattr(federated_peers, "QUICK", SMALL)
    status, text, _ = command("bench", "peers", "--quick", "--repeats", "1")
    assert status == 0
    assert "**heavy** was not measured here: not tried" in " ".join(text.split())
    assert "plain XGBoost" in text
    page = tmp_path / "peers.md"
    status, _, errors = command("bench", "peers", "--quick", "--repeats", "1", "--page", str(page))
    assert status == 5
    assert "OpBoost, record total 4" in " ".join(errors.split())
    assert not page.exists()


def test_a_page_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    status, _, errors = command("bench", "peers", "--no-peers", "--page", str(tmp_path / "p.md"))
    assert status == 2
    assert "--no-peers" in errors
    status, _, errors = command("bench", "peers", "--page", str(tmp_path / "absent" / "p.md"))
    assert status == 2
    assert "absent" in errors
