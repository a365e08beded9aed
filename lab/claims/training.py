"""Time and memory of training beside plain XGBoost: docs/speed.md."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import Page
from claims.covered_sources import LEARNING
from opboost_lab.bench.training import WAYS, TrainTime, measure

ROWS, COLUMNS = 300_000, 40
ROUNDS = 5


@lru_cache(maxsize=1)
def pairs() -> list[tuple[TrainTime, TrainTime]]:
    """OpBoost and plain XGBoost in turn, so that both see the same state of the machine."""
    found = []
    for _ in range(ROUNDS):
        both = [measure(way, ROWS, COLUMNS, 3) for way in WAYS]
        found.append((both[0], both[1]))
    return found


HERE = Page("docs/speed.md, Sampling and training")
COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        "fit over plain XGBoost, 300,000 × 40, time",
        1.15,
        lambda: [ours.seconds / plain.seconds for ours, plain in pairs()],
    ),
    HERE.at_most(  # of what fit itself takes; imports and the raw table are there before
        "fit over plain XGBoost, 300,000 × 40, peak memory of fit",
        1.15,
        lambda: [ours.fit_mb / plain.fit_mb for ours, plain in pairs()],
    ),
]
