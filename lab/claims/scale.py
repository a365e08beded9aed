"""How time grows, and what a hundred million rows need: docs/scale.md."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from claims.claim import Claim
from claims.covered_sources import LEARNING
from opboost_lab.bench.scaling import Measured, growth, measure, points, run
from opboost_lab.bench.scaling_point import Point

ROOT = Path(__file__).parents[2]
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


def on_spark() -> float:
    """Tests that passed on a real Spark session: they need ``opboost[spark]`` and Java 17."""
    files = ("tests/scale/test_scale_spark.py", "tests/scale/test_training_spark.py")
    command = [sys.executable, "-m", "pytest", "-n", "0", "-o", "addopts=", "-rN", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    passed = re.search(r"(\d+) passed", found.stdout)
    if found.returncode or passed is None or "skipped" in found.stdout:
        raise RuntimeError(found.stdout[-400:])
    return float(passed[1])


HERE = "docs/scale.md, Measured"
COVERS = (*LEARNING, "opboost.files", "opboost.scale")
CLAIMS = [
    Claim("tests on a real Spark session: passed", "docs/scale.md", "at least", 4, on_spark),
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
