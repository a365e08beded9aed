"""The modules that a job's processes load: only the label party loads a booster, XGBoost."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from opboost.demo.local_federation import LABEL_PARTY, started_process, wait_for_address
from opboost.runtime.child_processes import python_command
from robustness.party_processes import federation

HEAVY = {"xgboost", "lightgbm", "sklearn", "scipy.linalg", "pandas", "matplotlib", "cffi"}


def noting_modules(file: Path, *words: str) -> list[str]:
    """Return a command that runs ``opboost`` and finally writes which modules are loaded."""
    code = (
        "import atexit, json, pathlib, sys\n"
        f"file = pathlib.Path({str(file)!r})\n"
        "atexit.register(lambda: file.write_text(json.dumps(sorted(sys.modules))))\n"
        "from opboost.cli import main; main()"
    )
    return python_command("-c", code, *words)


def loaded(file: Path, *words: str) -> set[str]:
    """Run a command line in a new process; return the modules that were loaded at its end."""
    run = subprocess.run(noting_modules(file, *words), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return set(json.loads(file.read_text()))


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    tasks = Path(f"/proc/{process}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")
def test_a_feature_party_and_the_label_server_load_neither_boosters_nor_pandas(tmp_path):
    made = federation(tmp_path, parties=("shop",), align="given")
    with started_process(made.command(LABEL_PARTY)) as serving:
        try:
            address = wait_for_address(serving)
            join = ("join", "-c", str(made.config("shop")), "--connect", address)
            modules = loaded(tmp_path / "modules", *join, "--leave")
            assert not modules & HEAVY
            assert {"numba", "pyarrow.flight"} <= modules  # it has drawn, coded and sent
            (label_server,) = children(serving.pid)
            libraries = Path(f"/proc/{label_server}/maps").read_text()
            assert "/pyarrow/" in libraries
            assert "/llvmlite/" in libraries
            found = {p for p in ("xgboost", "sklearn", "pandas", "scipy/linalg") if p in libraries}
            assert not found
            assert not loaded(tmp_path / "modules", *join) & HEAVY  # it answers the split query
            assert serving.wait(60) == 0, serving.stderr.read()
        finally:
            serving.kill()


def test_a_label_party_trains_and_saves_without_scikit_learn_and_pandas(tmp_path):
    made = federation(tmp_path, parties=("shop",), align="given")
    file = tmp_path / "of serve"
    serve = noting_modules(file, "serve", "-c", str(made.config(LABEL_PARTY)))
    with started_process(serve) as serving:
        try:
            address = wait_for_address(serving)
            join = ("join", "-c", str(made.config("shop")), "--connect", address)
            loaded(tmp_path / "modules", *join)
            assert serving.wait(60) == 0, serving.stderr.read()
        finally:
            serving.kill()
    modules = set(json.loads(file.read_text()))
    assert {"xgboost", "numba"} <= modules
    assert not modules & {"sklearn", "scipy.stats", "pandas", "lightgbm", "matplotlib"}


def test_the_help_of_a_verb_loads_no_numerical_library(tmp_path):
    for verb in ("join", "serve"):
        modules = loaded(tmp_path / "modules", verb, "--help")
        assert not modules & (HEAVY | {"numpy", "pyarrow", "numba", "opboost_lab"})


def test_a_label_party_has_no_need_of_numba_before_it_listens():
    code = (
        "import sys, opboost.transport.label.run_over_network, opboost.parties.label.label_party\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run(python_command("-c", code), check=True)
