"""How time grows, and what a hundred million rows need: docs/scale.md."""

import re
import subprocess
import sys
from dataclasses import replace
from functools import lru_cache, partial

from claims.claim import LEARNING, ROOT, Page
from opboost_lab.bench.child_answer import child_answer
from opboost_lab.bench.scaling import Measured, growth, measure, points, run
from opboost_lab.bench.scaling_point import Point

ROWS = (100_000, 300_000, 1_000_000, 3_000_000)
HUGE = Point(100_000_000, 10, trees=20, rows_a_tree=10_000_000)


@lru_cache(maxsize=1)
def found() -> list[Measured]:
    """Measure the points that vary rows or columns; the fastest of three tries counts."""
    chosen = [(axis, p) for axis, p in points(ROWS) if axis in ("rows", "columns")]
    return list(run(chosen, 3))


def grown(figure: str) -> float:
    """Return the exponent with which a figure grows with rows × columns."""
    return growth(found(), lambda measured: getattr(measured, figure))


@lru_cache(maxsize=2)
def huge(rows_a_tree: int | None = HUGE.rows_a_tree) -> Measured:
    """Measure a job on a hundred million rows; it needs 20 GB of disk."""
    return measure(replace(HUGE, rows_a_tree=rows_a_tree))


def on_spark() -> float:
    """Return how many tests passed on real Spark, which need ``opboost[spark]`` and Java 17."""
    files = ("tests/scale/test_scale_spark.py", "tests/scale/test_training_spark.py")
    command = [sys.executable, "-m", "pytest", "-n", "0", "-o", "addopts=", "-rN", *files]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    passed = re.search(r"(\d+) passed", found.stdout)
    if found.returncode or passed is None or "skipped" in found.stdout:
        raise RuntimeError(found.stdout[-400:])
    return float(passed[1])


ALONE = """
import re, sys, tempfile
import numpy as np, xgboost as xgb
rows, block = int(sys.argv[1]), 2**20
class Codes(xgb.DataIter):
    def reset(self): self.start = 0
    def next(self, take):
        size = min(block, rows - self.start)
        if size == 0: return False
        codes = np.random.default_rng(self.start).integers(0, 10, (size, 10), dtype=np.uint8)
        take(data=codes, label=codes[:, 0] > 4)
        self.start += size
        return True
with tempfile.TemporaryDirectory() as folder:
    codes = Codes(cache_prefix=folder + "/bins")
    codes.start = 0
    data = xgb.ExtMemQuantileDMatrix(codes, max_bin=256)
    xgb.train({"max_depth": 3, "objective": "binary:logistic"}, data, 3)
    del data
print(int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024)
"""


def xgboost_bytes_per_row() -> float:
    """Return how many more bytes of memory XGBoost alone needs for each further row on disk."""
    rows = (4 * 2**20, 16 * 2**20)
    few, many = (child_answer("-c", ALONE, str(n), what="XGBoost alone") for n in rows)
    return (many - few) / (rows[1] - rows[0])


HERE = Page("docs/scale.md, Measured")
HUGE_POINT = "100,000,000 × 10: MB of the"
COVERS = (*LEARNING, "opboost.files", "opboost.scale")
CLAIMS = [
    Page("docs/scale.md").at_least("tests on a real Spark session: passed", 4, on_spark),
    *(
        HERE.at_most(f"growth of {what}: exponent", 1.05, partial(grown, figure))
        for what, figure in (
            ("time in rows × columns", "seconds"),
            ("the feature party's time", "feature_seconds"),
            ("the label party's time", "label_seconds"),
        )
    ),
    HERE.at_most(f"{HUGE_POINT} feature party", 500, lambda: huge().feature_mb),
    HERE.at_most(
        f"{HUGE_POINT} label party, 10,000,000 rows a tree", 1500, lambda: huge().label_mb
    ),
    HERE.at_most(
        f"{HUGE_POINT} label party, all rows a tree", 2500, lambda: huge(None).label_mb, short=True
    ),
    Page("docs/decisions/0019-training-at-scale.md").equals(
        "XGBoost alone, bins on disk: bytes per row", 40, xgboost_bytes_per_row, within=4
    ),
]
