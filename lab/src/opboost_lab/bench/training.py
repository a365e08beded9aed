"""``opboost bench train``: fitting on desensitised columns, beside plain training on the same rows.

Each way runs in a process of its own, so that its peak of memory is its own too.
"""

import statistics
from dataclasses import dataclass

from opboost_lab.bench.child_answer import child_answer

SIZES = ((30_000, 14), (300_000, 40))
WAYS = ("opboost", "plain xgboost")
TREES = 80

_SCRIPT = """
import json, re, sys, time
import numpy as np
way, rows, columns, trees, repeats = sys.argv[1], *map(int, sys.argv[2:6])
generator = np.random.default_rng(0)
X = generator.normal(size=(rows, columns))
y = (X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=rows) > 0).astype(int)
if way == "opboost":
    import opboost as op
    m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
    def fit():
        op.OpBoostClassifier(
            m, bounds=(-4, 4), denoise=False,
            booster_params={"n_estimators": trees, "max_depth": 3, "eta": 0.1},
        ).fit(X, y)
else:
    import xgboost
    def fit():
        xgboost.XGBClassifier(n_estimators=trees, max_depth=3, learning_rate=0.1).fit(X, y)
X_all, y_all = X, y
X, y = X_all[:500], y_all[:500]
fit()  # compile and import before the clock runs
X, y = X_all, y_all
def memory(what):
    return int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew here
before = memory("VmRSS")
seconds = []
for _ in range(repeats):
    start = time.perf_counter()
    fit()
    seconds.append(time.perf_counter() - start)
peak = memory("VmHWM")
print(json.dumps({"seconds": seconds, "peak": peak, "fit": peak - before}))
"""


@dataclass(frozen=True, slots=True)
class TrainTime:
    """Wall time of ``fit``, its own peak of memory, and that of the whole process with its imports
    and data.
    """

    way: str
    rows: int
    columns: int
    seconds: float
    fastest: float
    slowest: float
    fit_mb: float
    process_mb: float


def measure(way: str, rows: int, columns: int, repeats: int = 5) -> TrainTime:
    """Fit several times in a fresh process."""
    arguments = [way, str(rows), str(columns), str(TREES), str(repeats)]
    answer = child_answer("-c", _SCRIPT, *arguments, what=f"The fit of {way}")
    times = answer["seconds"]
    spread = statistics.median(times), min(times), max(times)
    return TrainTime(way, rows, columns, *spread, answer["fit"], answer["peak"])


def run(sizes: tuple[tuple[int, int], ...] = SIZES, repeats: int = 5) -> list[list[TrainTime]]:
    """Every way on every size."""
    return [[measure(way, *size, repeats) for way in WAYS] for size in sizes]
