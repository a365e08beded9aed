"""Systems without fcntl, resource or /proc: one clear sentence, and the work continues."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from opboost.doctor import machine_checks
from opboost.doctor.finding import State
from opboost.storage.atomic_files import NO_LOCKS
from opboost.transport.label.connection_limits import NOT_LIMITED, ConnectionLimits
from opboost.transport.shared import open_connections
from opboost.transport.shared.logs import Log

WITHOUT = """
import sys
sys.modules["fcntl"] = sys.modules["resource"] = None
"""
IMPORT_ALL = """
import importlib, pkgutil, opboost
for module in pkgutil.walk_packages(opboost.__path__, "opboost."):
    clusters = ("dask" in module.name) or ("spark" in module.name)  # extras with rules of their own
    if not clusters and not module.name.endswith("__main__"):
        importlib.import_module(module.name)
from opboost.transport.label import process_limits, label_server_process
process_limits.limit_memory(1024)
process_limits.allow_files(64)
process_limits.full_stack()
with label_server_process._small_stacks():
    pass
"""
RELEASE = """
from opboost.cli import main
sys.argv = ["opboost", "desensitize", "t.csv", "-c", "t.toml", "-o", "out.csv", "--to", "bank"]
main()
"""
TOML = """
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [0, 100]
[align]
id = "customer"
[ledger]
folder = "ledger"
key = "ledger.key"
"""


def child(program, folder):
    command = [sys.executable, "-P", "-c", WITHOUT + program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)


def test_every_module_is_imported_without_fcntl_and_resource(tmp_path):
    done = child(IMPORT_ALL, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_release_without_locks_says_so_once_and_is_made(tmp_path):
    (tmp_path / "t.toml").write_text(TOML)
    rows = "\n".join(f"C{k},{k}" for k in range(30))
    (tmp_path / "t.csv").write_text(f"customer,age\n{rows}\n")
    done = child(RELEASE, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(NO_LOCKS) == 1
    assert f"opboost: {NO_LOCKS}\n" in done.stderr  # no file name, no line of code
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 31


@pytest.fixture
def no_proc(monkeypatch):
    monkeypatch.setattr(open_connections, "DESCRIPTORS", Path("/nowhere/proc"))


def test_a_server_without_proc_notes_that_nothing_is_limited(tmp_path, no_proc):
    limits = ConnectionLimits(Log(tmp_path / "log"), held=1, calls=1)
    limits.watch(1)
    (line,) = map(json.loads, (tmp_path / "log").read_text().splitlines())
    assert (line["event"], line["why"]) == ("not limited", NOT_LIMITED)
    assert list(open_connections.connections(1)) == []


def test_the_doctor_lists_what_is_missing(no_proc, monkeypatch):
    monkeypatch.setitem(sys.modules, "fcntl", None)
    found = [machine_checks.locks(), machine_checks.connection_limits()]
    assert [(f.state, f.next_step) for f in found] == [
        (State.warning, NO_LOCKS),
        (State.warning, NOT_LIMITED),
    ]


def test_here_nothing_is_missing():
    if not sys.platform.startswith("linux"):
        pytest.skip("Linux has both; this is another system")
    assert machine_checks.locks().state is State.ok
    assert machine_checks.connection_limits().state is State.ok
