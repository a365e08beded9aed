"""Denoising of rows that stay on disk, compared with training without it: docs/scale.md.

Ten dependent columns on grids of ten cells, 20 trees, and one thread of XGBoost; the label party's
processor time and peak memory.
"""

from functools import cache, partial

from claims.claim import LEARNING, Page
from opboost.training.denoised_rows import Choice
from opboost_lab.bench.scaling import Measured, measure
from opboost_lab.bench.scaling_point import Point


@cache
def found(rows: int, denoise: Choice) -> Measured:
    """Return what both sides of a job use, each in its own process."""
    return measure(Point(rows, 10, denoise=denoise, related=True))


def over_noisy(rows: int, figure: str) -> float:
    """Return the label party's figure with denoising, divided by the same figure without it."""
    return getattr(found(rows, "auto"), figure) / getattr(found(rows, False), figure)


HERE = Page("docs/scale.md, From disk")
COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        f"{rows:,} × 10, denoised from disk: {words} over that of noisy rows",
        target,
        partial(over_noisy, rows, figure),
    )
    for rows, words, figure, target in (
        (1_000_000, "memory", "label_mb", 1.5),
        (10_000_000, "memory", "label_mb", 1.5),
        (10_000_000, "time", "label_seconds", 3.0),
    )
]
