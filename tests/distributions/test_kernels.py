"""Compiled loops where no cache may be written."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import opboost

CODE = "import opboost as op; print(op.ClampMap(op.Domain(1, 10), 0.64).sample([4]).shape)"


def test_a_read_only_installation_without_a_home_draws_all_the_same(tmp_path):
    package = tmp_path / "opboost"
    own = Path(opboost.__file__).parent
    shutil.copytree(own, package, ignore=shutil.ignore_patterns("__pycache__"))
    # A file instead of the folder stops even root.
    (package / "distributions" / "__pycache__").touch()
    for setting in ({}, {"NUMBA_CACHE_DIR": "/dev/null/numba"}):
        run = subprocess.run(
            [sys.executable, "-c", CODE],
            cwd=tmp_path,
            env={"HOME": "/dev/null", "PYTHONPATH": str(tmp_path)} | setting,
            capture_output=True,
            text=True,
        )
        assert run.stdout == "(1,)\n", run.stderr
