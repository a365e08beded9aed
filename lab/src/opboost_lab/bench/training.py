"""``opboost bench train``: fitting on desensitised columns, beside plain training on the same rows.

Each way runs in a process of its own, so that its peak of memory is its own too.
"""

from __future__ import annotations

import json
import statistics
import subprocess
from dataclasses import dataclass

from opboost.runtime.child_processes import python_command

SIZES = ((30_000, 14), (300_000, 40))
WAYS = ("opboost", "plain xgboost", "plain lightgbm", "plain scikit-learn")
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
elif way == "plain xgboost":
    import xgboost
    def fit():
        xgboost.XGBClassifier(n_estimators=trees, max_depth=3, learning_rate=0.1).fit(X, y)
elif way == "plain lightgbm":
    import lightgbm
    def fit():
        lightgbm.LGBMClassifier(
            n_estimators=trees, max_depth=3, learning_rate=0.1, verbosity=-1
        ).fit(X, y)
else:
    from sklearn.ensemble import HistGradientBoostingClassifier
    def fit():
        HistGradientBoostingClassifier(
            max_iter=trees, max_depth=3, learning_rate=0.1, early_stopping=False
        ).fit(X, y)
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
    and data; ``problem`` says why there is none.
    """

    way: str
    rows: int
    columns: int
    seconds: float = 0.0
    fastest: float = 0.0
    slowest: float = 0.0
    fit_mb: float = 0.0
    process_mb: float = 0.0
    problem: str = ""


def measure(way: str, rows: int, columns: int, repeats: int = 5) -> TrainTime:
    """Fit several times in a fresh process."""
    arguments = [way, str(rows), str(columns), str(TREES), str(repeats)]
    done = subprocess.run(
        python_command("-c", _SCRIPT, *arguments), capture_output=True, text=True, check=False
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return TrainTime(way, rows, columns, problem=last)
    answer = json.loads(done.stdout.strip().splitlines()[-1])
    times = answer["seconds"]
    return TrainTime(
        way,
        rows,
        columns,
        statistics.median(times),
        min(times),
        max(times),
        answer["fit"],
        answer["peak"],
    )


def run(sizes: tuple[tuple[int, int], ...] = SIZES, repeats: int = 5) -> list[list[TrainTime]]:
    """Every way on every size."""
    return [[measure(way, *size, repeats) for way in WAYS] for size in sizes]
