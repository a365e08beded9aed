"""Time and memory of training, compared with plain XGBoost: docs/speed.md."""

from claims.claim import LEARNING, Page, Rounds
from opboost_lab.bench.training import WAYS, measure

# OpBoost and plain XGBoost in turn, so that both see the same state of the machine.
PAIRS = Rounds(lambda: [measure(way, 300_000, 40, 3) for way in WAYS], 5)
FIT = "fit over plain XGBoost, 300,000 × 40"
HERE = Page("docs/speed.md, Sampling and training")
COVERS = LEARNING
CLAIMS = [
    HERE.at_most(f"{FIT}, time", 1.15, PAIRS.of(lambda p: p[0].seconds / p[1].seconds)),
    # Only what fit itself takes, without imports and the raw table.
    HERE.at_most(f"{FIT}, peak memory of fit", 1.15, PAIRS.of(lambda p: p[0].fit_mb / p[1].fit_mb)),
]
