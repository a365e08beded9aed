"""Denoising of rows that stay on disk, beside training without it: docs/scale.md.

Ten columns that vary together on grids of ten cells, 20 trees, one thread of XGBoost; processor
time of the label party, and its peak of memory.
"""

from __future__ import annotations

from functools import cache

from claims.claim import Claim
from claims.covered_sources import LEARNING
from opboost.training.denoised_rows import Choice
from opboost_lab.bench.scaling import Measured, measure
from opboost_lab.bench.scaling_point import Point

ROWS = (1_000_000, 10_000_000)


@cache
def found(rows: int, denoise: Choice) -> Measured:
    """Both sides of a job, each in a process of its own."""
    return measure(Point(rows, 10, denoise=denoise, related=True))


def memory(rows: int) -> float:
    """The peak of memory with denoising over that without."""
    return found(rows, "auto").label_mb / found(rows, False).label_mb


def time(rows: int) -> float:
    """Seconds with denoising over those without."""
    return found(rows, "auto").label_seconds / found(rows, False).label_seconds


HERE = "docs/scale.md, From disk"
COVERS = LEARNING
CLAIMS = [
    Claim("1,000,000 × 10, denoised from disk: memory over that of noisy rows", HERE, "at most",
          1.5, lambda: memory(ROWS[0])),
    Claim("10,000,000 × 10, denoised from disk: memory over that of noisy rows", HERE, "at most",
          1.5, lambda: memory(ROWS[1])),
    Claim("10,000,000 × 10, denoised from disk: time over that of noisy rows", HERE, "at most",
          3.0, lambda: time(ROWS[1])),
]  # fmt: skip
