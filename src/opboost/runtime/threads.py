"""How many threads a piece of work gets: one per 100,000 cells, and no more than there are cores.

On a small table threads wait for each other longer than they work, most of all on a busy machine.
A cell is one value of one row.  The rule holds for training, denoising and prediction: for
boosters unless their parameters name a number of threads (``nthread``, ``n_jobs``), for the linear
algebra beside them, and for our own compiled loops.
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
"""With fewer cells another thread costs more than it brings."""


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

    OpenMP's limit is one of the calling thread.  A limit that equals the number of cores is none:
    libraries then do as they always do.
    """
    threads = threads_for(cells)
    if threads >= most_threads():
        yield
        return
    loaded = tuple(name for name in ("xgboost", "lightgbm", "sklearn") if name in sys.modules)
    with _controller(loaded).limit(limits=threads):
        yield


def side_by_side(first: Callable[[], A], second: Callable[[], B]) -> tuple[A, B]:
    """Call both at the same time, each under thread limits of its own; return their results.

    Libraries that know one limit for all threads keep theirs, because it is set before and restored
    after both.
    """
    with threads_limited(0), ThreadPoolExecutor(1) as beside:
        other = beside.submit(first)
        found = second()
        return other.result(), found


@lru_cache(maxsize=8)
def _controller(loaded: tuple[str, ...]) -> ThreadpoolController:
    """The thread pools of the libraries that are loaded; to find them takes milliseconds."""
    return ThreadpoolController()


def most_threads() -> int:
    """Return the cores that this process may use, or fewer where OMP_NUM_THREADS says so."""
    cores = max(1, int(usable_cores()))
    said = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return min(cores, int(said)) if said.isdigit() and int(said) else cores


def usable_cores(quota: Path = Path("/sys/fs/cgroup/cpu.max")) -> float:
    """Cores as far as the scheduler and a container's quota let this process use them."""
    cores = float(schedulable_cores())
    try:
        most, period = quota.read_text().split()
        return min(cores, int(most) / int(period))
    except (OSError, ValueError):  # no container, or "max": no quota
        return cores


def schedulable_cores() -> int:
    """Cores on which the scheduler may put this process."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
