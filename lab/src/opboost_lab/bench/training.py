"""``opboost bench train``: fitting on desensitised columns, and plain training on the same rows.

Each way runs in its own process, so that its peak memory can be measured.
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
y = X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=rows)
binary = columns > 9
if binary:
    y = (y > 0).astype(int)
params = {"n_estimators": trees, "max_depth": 3}
if way == "plain xgboost":
    import xgboost
    kind = xgboost.XGBClassifier if binary else xgboost.XGBRegressor
    def fit(n):
        kind(**params, learning_rate=0.1).fit(X[:n], y[:n])
else:
    import opboost as op
    m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
if way == "denoiser":
    from opboost.denoise import Groups, Outputs, Space, fit as fit_denoiser, noise_matrix_of
    cells = np.clip(((X + 4) / 0.8).astype(int), 0, 9)
    codes = (m.sample(cells + 1) - 1).astype(np.uint8)
    space = Space((noise_matrix_of(m),) * columns, (10,) * columns)
    def fit(n):
        groups = Groups.classes(y[:n], 2) if binary else Groups.bins(y[:n])
        outputs = Outputs(codes[:n], np.zeros((n, 0), np.uint8))
        found = fit_denoiser(space, groups, outputs, 0)
        for k in range(2):
            found.draw(outputs, y[:n], k, 0)
elif way != "plain xgboost":
    kind = op.OpBoostClassifier if binary else op.OpBoostRegressor
    settings = {"opboost": {"mechanism": m, "denoise": False}, "denoised": {"mechanism": m},
                "record": {"budget": op.Budget.record(4)}}[way]
    def fit(n):
        kind(bounds=(-4, 4), booster_params={**params, "eta": 0.1}, random_state=0,
             **settings).fit(X[:n], y[:n])
fit(min(rows, 2000))  # compile and import before the clock runs
def memory(what):
    return int(re.search(what + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew here
before = memory("VmRSS")
seconds = []
for _ in range(repeats):
    start = time.perf_counter()
    fit(rows)
    seconds.append(time.perf_counter() - start)
peak = memory("VmHWM")
print(json.dumps({"seconds": seconds, "peak": peak, "fit": peak - before}))
"""
"""More ways: ``denoised``, ``denoiser`` (its fit and draws), ``record`` (a record budget)."""


@dataclass(frozen=True, slots=True)
class TrainTime:
    """Wall time and peak memory of ``fit``, and the peak of the process with imports and data."""

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
    """Measure every way on every size."""
    return [[measure(way, *size, repeats) for way in WAYS] for size in sizes]
