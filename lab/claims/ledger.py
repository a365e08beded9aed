"""What the ledger costs: docs/ledger.md and docs/scale.md."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from claims.claim import Claim
from opboost_lab.bench.ledger_cost import QUICK, Remembered, run

ROUNDS = 5
LARGE_ROUNDS = 5
LARGE = replace(QUICK, rows=10_000_000)


@lru_cache(maxsize=1)
def million() -> list[Remembered]:
    return [run(QUICK) for _ in range(ROUNDS)]


@lru_cache(maxsize=1)
def ten_million() -> list[Remembered]:
    return [run(LARGE, in_parts=False) for _ in range(LARGE_ROUNDS)]


def of(found: Callable[[], list[Remembered]], figure: Callable[[Remembered], float]):
    return lambda: [figure(one) for one in found()]


HERE = "docs/scale.md, What the ledger costs"
COVERS = ("opboost.ledger", "opboost.storage", "opboost.columns", "opboost.files")
CLAIMS = [
    Claim("1,000,000 × 20: feature party with IDs and ledger over its three stages", HERE,
          "at most", 4, of(million, lambda m: m.first / m.stages)),
    Claim("10,000,000 × 20: feature party with IDs and ledger over its three stages", HERE,
          "at most", 4, of(ten_million, lambda m: m.first / m.stages)),
    Claim("1,000,000 × 20: a second release of known people over the first", HERE,
          "at most", 1, of(million, lambda m: m.second / m.first)),
    Claim("10,000,000 × 20: a second release of known people over the first", HERE,
          "at most", 1, of(ten_million, lambda m: m.second / m.first)),
    Claim("bytes of the ledger per cell, ten cells, 20 columns", "docs/ledger.md",
          "at most", 3, of(million, lambda m: m.bytes_per_cell)),
    Claim("1,000,000 × 20: a release in parts with charges over one without", HERE,
          "at most", 2, of(million, lambda m: m.charged / m.parts)),
]  # fmt: skip
