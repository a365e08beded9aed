"""What a manifest says of the programs that ran."""

from __future__ import annotations

import platform
from importlib.metadata import version

import numpy as np
import pyarrow as pa


def versions() -> dict[str, str]:
    """The versions of what ran."""
    return {
        "opboost": version("opboost"),
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
        "numpy": np.__version__,
    }
