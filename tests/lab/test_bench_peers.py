"""Peers: each runs apart, a failed one is told and stops nobody, nothing is left behind."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from opboost_lab.bench import federated_peers
from opboost_lab.bench.federated_peers import PLAIN, Family, FederatedPeer, run
from opboost_lab.bench.federation import Size
from robustness.command_line import run as command

SMALL = Size(400, 3, 2, 1)


def test_plain_training_is_scored_and_a_failing_peer_stops_nobody():
    broken = FederatedPeer("broken", "nothing", "no_such_script.py")
    slow = FederatedPeer("heavy", "HE", "", ("no-such-package",), heavy=True)
    first, second, third = run((broken, slow, PLAIN), SMALL)
    assert "no_such_script" in first.problem
    assert second.problem.startswith("not tried")
    assert third.problem == ""
    assert third.auc > 0.7
    assert third.seconds > 0
    assert third.memory_mb > 20
    assert third.version


def test_a_peer_that_does_not_install_in_time_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    absent = FederatedPeer("absent", "HE", "fed_plain.py", ("opboost-no-such-package",))
    (ran,) = run((absent,), SMALL, install_limit=0.01)
    assert "did not install within" in ran.problem


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
        _, _, problem = federated_peers.watched([sys.executable, "-c", code], "", 1.5, tmp_path)
    assert "did not finish" in problem
    family, members = seen[0]
    assert members == 2
    for _ in range(50):
        if not family.members():
            break
        time.sleep(0.1)
    assert not family.members()


def test_memory_is_that_of_all_marked_processes():
    family = Family("OPBOOST_PEER=test-of-memory")
    assert family.members() == []
    code = "import time; b = bytearray(60_000_000); print('ready', flush=True); time.sleep(30)"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={"OPBOOST_PEER": "test-of-memory"},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert family.members() == [process.pid]
        assert 60 < family.memory_mb() < 120
        process.kill()


def test_the_verb_prints_ratios_and_reasons(monkeypatch):
    monkeypatch.setattr(
        federated_peers, "PEERS", (PLAIN, FederatedPeer("heavy", "HE", "", heavy=True))
    )
    monkeypatch.setattr(federated_peers, "QUICK", SMALL)
    status, text, _ = command("bench", "peers", "--quick")
    assert status == 0
    assert "FAILED" in text
    assert "plain XGBoost" in text
