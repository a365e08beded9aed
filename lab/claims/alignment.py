"""Private set intersection between two parties as processes, over the real service."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from claims.claim import Claim
from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_federation
from opboost_lab.counting_proxy import CountingProxy

TREES = {"num_boost_round": 1, "max_depth": 1}


class Run(NamedTuple):
    """Seconds from the first blinded ID to the common rows, and bytes both ways, TLS included."""

    seconds: float
    bytes: float
    wrong: float


@lru_cache(maxsize=2)
def run(rows: int) -> Run:
    """Two parties with ``rows`` IDs each, nine in ten of them common, in orders of their own."""
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

        outcome = run_federation(federation, between=between, timeout=1800.0)
    step = outcome.manifests[LABEL_PARTY]["align"]
    wrong = abs(step["common"] - (rows - rows // 10))
    return Run(step["seconds"], relays[0].up + relays[0].down, wrong)


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
