"""The versions that a manifest records."""

from __future__ import annotations

import platform
from importlib.metadata import version

import numpy as np
import pyarrow as pa


def versions() -> dict[str, str]:
    """Return the versions of OpBoost, Python and the libraries."""
    return {
        "opboost": version("opboost"),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
    }
