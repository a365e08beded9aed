"""A thousand small jobs, one after the other, in one process that never ends."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import FEDERATION, Page
from opboost_lab.bench.soak import JOBS, Soak, soak


@lru_cache(maxsize=1)
def found() -> Soak:
    return soak(JOBS)


HERE = Page("docs/reliability.md, Load")
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training")
CLAIMS = [
    HERE.equals("jobs in one process: finished", JOBS, lambda: found().jobs),
    HERE.at_most(
        "jobs in one process: kB of memory that each leaves", 20, lambda: found().kb_per_job
    ),
    HERE.at_most("jobs in one process: descriptors left", 0, lambda: found().descriptors),
    HERE.at_most("jobs in one process: threads left", 0, lambda: found().threads),
    HERE.at_most("jobs in one process: child processes left", 0, lambda: found().children),
    HERE.at_most(
        "jobs in one process: temporary and half-written files left", 0, lambda: found().files
    ),
    HERE.at_most(
        "jobs in one process: a late job's seconds over an early one's", 1.5, lambda: found().slower
    ),
]
