"""What holds for every test and every example of a page or docstring."""

from __future__ import annotations

import importlib.util
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


def pytest_collection_modifyitems(items):
    """Skip the page about MLflow where it is not installed; its own warnings are no errors."""
    absent = importlib.util.find_spec("mlflow") is None
    for item in items:
        if item.path.name == "mlflow.md":
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            item.add_marker(pytest.mark.skipif(absent, reason="mlflow is not installed"))
