"""What a result was measured on: processor, memory, versions, load."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from opboost import __version__

PACKAGES = ("numpy", "scipy", "scikit-learn", "xgboost", "xgboost-cpu", "numba", "pyarrow")


@dataclass(frozen=True, slots=True)
class Machine:
    """Facts that belong beside any figure."""

    processor: str
    cores: int
    memory_gb: float | None
    python: str
    opboost: str
    versions: dict[str, str]
    load: tuple[float, ...]


def machine() -> Machine:
    """This machine, now; nothing that names it."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return Machine(
        _processor(),
        os.cpu_count() or 1,
        _memory(),
        platform.python_version(),
        __version__,
        versions,
        os.getloadavg() if hasattr(os, "getloadavg") else (),
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _memory() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (AttributeError, ValueError, OSError):
        return None
