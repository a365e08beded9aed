"""What holds for every test and every example of a page or docstring."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
"""Where files cost no disk: tests kill processes, never the machine, so nothing has to last."""

if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))  # for tmp_path alone


@pytest.fixture(autouse=True)
def _no_release_of_another_test():
    """Start each test as a process that has released nothing: equal rows count as one person's."""
    yield
    processes = sys.modules.get("opboost.budgets.release_counts")
    if processes is not None:
        processes.begin_anew()
