"""Time and memory of training beside plain XGBoost: README.md (Speed)."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import Claim
from claims.covered_sources import LEARNING
from opboost_lab.bench.training import TrainTime, measure

ROWS, COLUMNS = 300_000, 40
ROUNDS = 3


@lru_cache(maxsize=1)
def pairs() -> list[tuple[TrainTime, TrainTime]]:
    """OpBoost and plain XGBoost in turn, so that both see the same state of the machine."""
    found = []
    for _ in range(ROUNDS):
        both = [measure(way, ROWS, COLUMNS, 3) for way in ("opboost", "plain xgboost")]
        for t in both:
            if t.problem:
                raise RuntimeError(f"{t.way}: {t.problem}")
        found.append((both[0], both[1]))
    return found


def time_ratio() -> list[float]:
    return [ours.seconds / plain.seconds for ours, plain in pairs()]


def memory_ratio() -> list[float]:
    """Of what fit itself takes; imports and the raw table are there before."""
    return [ours.fit_mb / plain.fit_mb for ours, plain in pairs()]


HERE = "README.md, Speed"
COVERS = LEARNING
CLAIMS = [
    Claim("fit over plain XGBoost, 300,000 × 40, time", HERE, "at most", 1.15, time_ratio),
    Claim(
        "fit over plain XGBoost, 300,000 × 40, peak memory of fit",
        HERE,
        "at most",
        1.0,
        memory_ratio,
    ),
]
