"""What holds for every test and every example of a page or docstring."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
"""Where files cost no disk: tests kill processes, never the machine, so nothing has to last."""

if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ["TMPDIR"], tempfile.tempdir = str(MEMORY), None


@pytest.fixture(autouse=True)
def _no_release_of_another_test():
    """Start each test as a process that has released nothing: equal rows count as one person's."""
    yield
    processes = sys.modules.get("opboost.estimators.processes")
    if processes is not None:
        processes.begin_anew()
