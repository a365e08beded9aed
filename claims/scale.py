"""How time grows, and what a hundred million rows need: docs/scale.md."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

from claims.claim import Claim
from opboost.bench.scale import Measured, growth, measure, points, run
from opboost.bench.scale_point import Point

ROWS = (100_000, 300_000, 1_000_000, 3_000_000)
ROUNDS = 3
HUGE = Point(100_000_000, 10, trees=20, rows_a_tree=10_000_000)


@lru_cache(maxsize=1)
def found() -> list[Measured]:
    """The points that change rows or columns, the fastest of three tries each."""
    chosen = [(axis, p) for axis, p in points(ROWS) if axis in ("rows", "columns")]
    return list(run(chosen, ROUNDS))


@lru_cache(maxsize=2)
def huge(rows_a_tree: int | None = HUGE.rows_a_tree) -> Measured:
    """A hundred million rows, from raw values to the model: needs 20 GB of disk."""
    return measure(replace(HUGE, rows_a_tree=rows_a_tree))


HERE = "docs/scale.md, Measured"
CLAIMS = [
    Claim("growth of time in rows × columns: exponent", HERE, "at most", 1.05,
          lambda: growth(found())),
    Claim("growth of the feature party's time: exponent", HERE, "at most", 1.05,
          lambda: growth(found(), lambda m: m.feature_seconds)),
    Claim("growth of the label party's time: exponent", HERE, "at most", 1.05,
          lambda: growth(found(), lambda m: m.label_seconds)),
    Claim("100,000,000 × 10: MB of the feature party", HERE, "at most", 500,
          lambda: huge().feature_mb),
    Claim("100,000,000 × 10: MB of the label party, 10,000,000 rows a tree", HERE, "at most", 1500,
          lambda: huge().label_mb),
    Claim("100,000,000 × 10: MB of the label party, all rows a tree", HERE, "at most", 1500,
          lambda: huge(None).label_mb, short=True),
]  # fmt: skip
