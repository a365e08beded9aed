"""Private set intersection between two parties as processes, over the real service."""

from __future__ import annotations

import resource
import tempfile
import time
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from claims.claim import Claim
from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_federation
from opboost.psi.blinding import Secret, at_once
from opboost.psi.curve_points import POINT_BYTES
from opboost_lab.counting_proxy import CountingProxy

TREES = {"num_boost_round": 1, "max_depth": 1}


SAMPLE = 40_000
"""Scalar multiplications that are timed before a run, and as many after it."""


class Run(NamedTuple):
    """What an alignment took, beside its 4 scalar multiplications per ID timed around it."""

    seconds: float
    """From the first blinded ID to the common rows."""
    bytes: float
    """Both ways, TLS included."""
    wrong: float
    """Rows too many or too few."""
    ratio: float
    """Seconds over those of the scalar multiplications on all cores."""
    core_ratio: float
    """Processor seconds of all processes, start and training included, over the same."""


class Spent(NamedTuple):
    """Seconds and processor seconds."""

    seconds: float
    processor: float


def multiplications() -> Spent:
    """Return what one scalar multiplication takes, with a thread per core."""
    secret = Secret.fresh()
    points = (9).to_bytes(POINT_BYTES, "little") * (SAMPLE // 20)
    start, processor = time.perf_counter(), time.process_time()
    for _ in at_once(lambda _: secret.raised(points, checked=True), range(20)):
        pass
    seconds, spent = time.perf_counter() - start, time.process_time() - processor
    return Spent(seconds / SAMPLE, spent / SAMPLE)


@lru_cache(maxsize=2)
def run(rows: int) -> Run:
    """Align two parties with ``rows`` IDs each, nine in ten of them common, in different orders."""
    rng = np.random.default_rng(0)
    ours = rng.permutation(rows)
    theirs = rng.permutation(np.arange(rows // 10, rows + rows // 10))
    label = pa.table({"id": ours, "y": (ours % 2).astype(np.int64)})
    table = pa.table({"x": theirs % 10, "id": theirs})
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        federation = write_federation(
            Path(folder),
            label,
            "y",
            {"shop": table},
            {"x": (0, 10)},
            epsilon=1.0,
            booster=TREES,
        )
        relays: list[CountingProxy] = []

        def between(name: str, address: str) -> str:
            relays.append(stack.enter_context(CountingProxy(address)))
            return relays[-1].address

        around, before = [multiplications()], _children()
        outcome = run_federation(federation, between=between, timeout=3600.0)
        processor = _children() - before
        around.append(multiplications())
    step = outcome.manifests[LABEL_PARTY]["align"]
    wrong = abs(step["common"] - (rows - rows // 10))
    alone = 4 * rows * sum(one.seconds for one in around) / 2
    cores = 4 * rows * sum(one.processor for one in around) / 2
    moved = relays[0].up + relays[0].down
    return Run(step["seconds"], moved, wrong, step["seconds"] / alone, processor / cores)


def _children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


HERE = "docs/alignment.md, What it costs"
CLAIMS = [
    Claim("100,000 IDs with 100,000: seconds", HERE, "at most", 120, lambda: run(100_000).seconds),
    Claim("... bytes an ID, both ways", HERE, "at most", 110, lambda: run(100_000).bytes / 1e5),
    Claim("... rows too many or too few", HERE, "equals", 0, lambda: run(100_000).wrong),
    Claim(
        "a million IDs with a million: seconds", HERE, "at most", 900, lambda: run(10**6).seconds
    ),
    Claim("... bytes an ID, both ways", HERE, "at most", 110, lambda: run(10**6).bytes / 1e6),
]
