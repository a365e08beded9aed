"""The number of threads for a piece of work: one per 100,000 cells, at most one per core.

On a small table, threads wait for each other longer than they work, above all on a busy machine.
A cell is one value of one row.  The rule applies to training, denoising and prediction: to boosters
unless their parameters name a number of threads (``nthread``, ``n_jobs``), to linear algebra, and
to our own compiled loops.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from threadpoolctl import ThreadpoolController

A = TypeVar("A")
B = TypeVar("B")

CELLS_PER_THREAD = 100_000
"""With fewer cells, another thread costs more time than it saves."""


def threads_for(cells: int) -> int:
    """Return how many threads work on this many cells.

    >>> threads_for(11_000)
    1
    >>> threads_for(10**12) == most_threads()
    True
    """
    needed = cells // CELLS_PER_THREAD
    return min(most_threads(), needed) if needed > 1 else 1


@contextmanager
def threads_limited(cells: int) -> Iterator[None]:
    """Let OpenMP and the linear algebra use as many threads as this many cells need.

    OpenMP's limit applies to the calling thread only.  If all cores may be used, no limit is set,
    and libraries keep their own defaults.
    """
    threads = threads_for(cells)
    if threads >= most_threads():
        yield
        return
    loaded = tuple(name for name in ("xgboost", "lightgbm", "sklearn") if name in sys.modules)
    with _controller(loaded).limit(limits=threads):
        yield


def side_by_side(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Call both functions at the same time, each under its own thread limits; return both results.

    Some libraries have one limit for all threads.  It is saved before both calls and restored after
    both.
    """
    with threads_limited(0), ThreadPoolExecutor(1) as beside:
        other = beside.submit(first)
        found = second()
        return other.result(), found


@lru_cache(maxsize=8)
def _controller(loaded: tuple[str, ...]) -> ThreadpoolController:
    """Return the thread pools of the loaded libraries; finding them takes milliseconds."""
    return ThreadpoolController()


def most_threads() -> int:
    """Return the number of cores that this process may use, or OMP_NUM_THREADS if it is lower."""
    cores = max(1, int(usable_cores()))
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(said)) if said.isdigit() and int(said) else cores


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """Return how many cores the scheduler and a container's quota let this process use."""
    cores = float(schedulable_cores())
    try:
        most, period = quota.read_text().split()
        return min(cores, int(most) / int(period))
    except (OSError, ValueError):  # no container, or "max": no quota
        return cores


def schedulable_cores() -> int:
    """Return the number of cores on which the scheduler may run this process."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
