"""No process that OpBoost starts runs code from the working directory."""

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pandas as pd
import pytest

import opboost
import opboost_lab
from tests.support.releases import files

PLAIN = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
NAMES = (
    "distributed", "json", "multiprocessing", "numpy", "opboost", "pickle", "pip", "pyarrow",
    "pyspark", "runpy", "selectors", "signal", "socket", "subprocess", "tempfile", "venv",
    "xgboost",
)  # fmt: skip
"""Modules that some child imports, early or late."""

CONFIG = """
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [17, 90]
[table]
drop = ["name", "pay", "city"]
[align]
id = "id"
"""

TRIAL = """
import time
from pathlib import Path
from opboost.explorer.trial_process import TrialProcess
trial = TrialProcess()
trial.start(Path("t.csv"), "y", "[mechanism]\\nepsilon = 1.5\\n[columns.a]\\nbounds = [0, 1]\\n")
while trial.progress().state == "running":
    time.sleep(0.05)
assert trial.progress().state == "done", trial.progress()
"""

ENVIRONMENT = """
import os
os.environ["XDG_CACHE_HOME"] = os.path.abspath("cache")
from opboost_lab.bench.library_peers import Peer
assert Peer("nobody", ("--help",), "").environment().exists()
"""

PEERS = """
from opboost_lab.bench import federated_peers
from opboost_lab.bench.federated_peers import OPBOOST, run, synthetic
from opboost_lab.bench.federation import Size
federated_peers._plain = lambda rows, limit, runs: 1.0  # six more that start as the peer does
(ran,) = run((OPBOOST,), {"synthetic": synthetic(Size(300, 2, 2, 1))})
assert not ran.problem, ran.problem
"""

BESIDE = """
from pathlib import Path
import numpy as np
import pyarrow as pa
from opboost_lab.bench.federation import plain_program
X = np.arange(40.0).reshape(-1, 1)
y = np.arange(40) % 2
assert plain_program(Path("."), pa.table({"x": X[:, 0]}), y, X, y)[0] > 0
"""

TRAINING = """
from opboost_lab.bench.training import measure
assert measure("plain xgboost", 600, 3, repeats=1).seconds > 0
"""

POINT = """
from pathlib import Path
from opboost_lab.bench.scaling import played
from opboost_lab.bench.scaling_point import Point
assert played("release", Point(300, 2, trees=2), Path("points"))["bytes"]
"""

LOAD = """
from opboost_lab.bench.load import by_flight
assert by_flight([]) > 0
"""


OPBOOST = """
from opboost.cli import main
main()
"""


def engine(name):
    return OPBOOST, *f"desensitize raw -c b.toml -o out --workers 2 --engine {name}".split()


LABEL_SERVER = """
from opboost.transport.label.label_server_process import LabelServerProcess
with LabelServerProcess():
    pass
"""

CHILDREN = {
    "the gate": (LABEL_SERVER,),
    "the parties of the demo": (OPBOOST, "demo", "--data", "breast-cancer"),
    "workers of the local engine": engine("local"),
    "workers of the Dask engine": engine("dask"),
    "workers of the Spark engine": engine("spark"),
    "workers of a reproduction": (OPBOOST, "reproduce", "tab:op-prob-t", "--quick"),
    "a trial of the explorer": (TRIAL,),
    "a peer's environment": (ENVIRONMENT,),
    "a peer and what it starts": (PEERS,),
    "a plain program beside a federation": (BESIDE,),
    "a fit that is timed": (TRAINING,),
    "a point of the scale benchmark": (POINT,),
    "a server of the load benchmark": (LOAD,),
}


@pytest.fixture
def hostile(tmp_path):
    """Return a working directory that holds an attacker's modules and the children's input."""
    home = tmp_path / "shared"
    home.mkdir()
    for name in NAMES:
        code = (
            f"open({str(tmp_path / 'ran')!r}, 'a').write({name + chr(10)!r})\nraise SystemExit(99)"
        )
        (home / f"{name}.py").write_text(code)
    files(home / "raw", parts=2, rows=60)
    (home / "b.toml").write_text(CONFIG)
    rows = pd.DataFrame({"a": [i / 90 for i in range(90)], "y": ["no", "yes"] * 45})
    rows.to_csv(home / "t.csv", index=False)
    return home


def started_in(home, program, *arguments):
    """Run a program from another folder, like the command ``opboost``, which is itself safe."""
    script = home.parent / "program.py"
    script.write_text("if __name__ == '__main__':" + program.replace("\n", "\n    "))
    command = [sys.executable, str(script), *arguments]
    return subprocess.run(command, cwd=home, env=PLAIN, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_runs_no_code_of_the_working_directory(hostile, child):
    if "Spark" in child and (find_spec("pyspark") is None or shutil.which("java") is None):
        pytest.skip("Spark is not installed")
    done = started_in(hostile, *CHILDREN[child])
    ran = hostile.parent / "ran"
    assert not ran.exists(), f"{child} ran {set(ran.read_text().split())}"
    assert done.returncode == 0, done.stderr


def test_python_started_as_usual_does_run_such_code(hostile):
    """This happens without ``-P``, so the test above would notice."""
    command = [sys.executable, "-c", "import pyarrow"]
    assert subprocess.run(command, cwd=hostile, env=PLAIN).returncode == 99
    assert (hostile.parent / "ran").read_text() == "pyarrow\n"


def test_interpreters_are_started_in_known_places_only():
    """Any new place must avoid the working directory, too: see ``child_processes``."""
    folders = (Path(opboost.__file__).parent, Path(opboost_lab.__file__).parent)
    found = {
        str(file.relative_to(source.parent))
        for source in folders
        for file in source.rglob("*.py")
        for word in ("sys.executable", "import multiprocessing", "ProcessPoolExecutor(", "os.fork(")
        if word in file.read_text()
    }
    assert found == {
        "opboost/auditing/independence.py",  # a fork, which imports nothing
        "opboost/budgets/release_counts.py",  # asks whether this is a child, but starts none
        "opboost/runtime/child_processes.py",
        "opboost/scale/cluster_booster.py",  # passed to Spark, with PYTHONSAFEPATH
        "opboost/scale/clusters.py",  # the same
        "opboost_lab/bench/federated_peers.py",  # a script by its path
        "opboost_lab/bench/peer_scripts/fed_xgboost.py",  # forks
        "opboost_lab/bench/peer_scripts/loopback.py",  # a script by its path
    }
