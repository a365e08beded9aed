"""Settings for every test, and for every example on a page or in a docstring."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest

MEMORY_DISK = Path("/dev/shm")
"""A disk in memory for temporary files.

Tests kill processes but never the machine, so no file has to survive on a real disk.
"""

if MEMORY_DISK.is_dir() and shutil.disk_usage(MEMORY_DISK).free > 4 << 30:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY_DISK))  # only for tmp_path


@pytest.fixture(autouse=True)
def _no_release_of_another_test():
    """Forget the releases of a test when it ends, because equal rows count as one person's."""
    yield
    processes = sys.modules.get("opboost.budgets.release_counts")
    if processes is not None:
        processes.begin_anew()


def pytest_collection_modifyitems(items):
    """Skip the page about MLflow if it is not installed; do not treat its warnings as errors."""
    absent = importlib.util.find_spec("mlflow") is None
    for item in items:
        if item.path.name == "mlflow.md":
            item.add_marker(pytest.mark.filterwarnings("ignore"))
            item.add_marker(pytest.mark.skipif(absent, reason="mlflow is not installed"))
