"""Time of denoising beside plain training: docs/denoising-results.md."""

from functools import cache, partial

from claims.claim import LEARNING, Page
from opboost_lab.bench.child_answer import child_answer

ROUNDS = 5
SIZES = ((45_000, 9, 3.0), (300_000, 40, 2.0))

_TABLE = """
import json, resource, sys, time
import numpy as np, xgboost
import opboost as op
rows, columns = map(int, sys.argv[1:3])
generator = np.random.default_rng(0)
X = generator.normal(size=(rows, columns))
y = X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=rows)
binary = columns > 9
if binary:
    y = (y > 0).astype(int)
params = {"n_estimators": 80, "max_depth": 3}
def plain(n):
    kind = xgboost.XGBClassifier if binary else xgboost.XGBRegressor
    kind(**params, learning_rate=0.1).fit(X[:n], y[:n])
"""
"""A table, and plain training on it."""

_SCRIPT = """
from opboost.denoise import Groups, Outputs, Space, noise_matrix_of, fit
m = op.ClampMap(op.Domain(1, 10), epsilon=0.64)
def whole(n):
    kind = op.OpBoostClassifier if binary else op.OpBoostRegressor
    kind(m, bounds=(-4, 4), random_state=0,
         booster_params={**params, "eta": 0.1}).fit(X[:n], y[:n])
cells = np.clip(((X + 4) / 0.8).astype(int), 0, 9)
codes = (m.sample(cells + 1) - 1).astype(np.uint8)
space = Space((noise_matrix_of(m),) * columns, (10,) * columns)
def denoise(n):
    groups = Groups.classes(y[:n], 2) if binary else Groups.bins(y[:n])
    outputs = Outputs(codes[:n], np.zeros((n, 0), np.uint8))
    found = fit(space, groups, outputs, 0)
    for k in range(2):
        found.draw(outputs, y[:n], k, 0)
times = {}
for work in (plain, denoise, whole):
    work(1000)
    work(rows)  # load and compile before the clock runs
    taken = []
    for _ in range(3):
        start = time.perf_counter()
        work(rows)
        taken.append(time.perf_counter() - start)
    times[work.__name__] = sorted(taken)[1]
print(json.dumps(times))
"""


@cache
def in_processes(script: str, *arguments: object) -> list[dict[str, float]]:
    """What a script prints after it made the table, in processes of their own."""
    command = ("-c", _TABLE + script, *map(str, arguments))
    return [child_answer(*command, what="A timing script") for _ in range(ROUNDS)]


def ratio(way: str, rows: int, columns: int) -> list[float]:
    """Of a way's time to plain training's."""
    return [t[way] / t["plain"] for t in in_processes(_SCRIPT, rows, columns)]


HERE = Page("docs/denoising-results.md")
COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        f"{what} over plain XGBoost, {rows:,} × {columns}, time",
        target,
        partial(ratio, way, rows, columns),
        short=rows == 45_000,
    )
    for rows, columns, most in SIZES
    for what, way, target in (
        ("fitting and drawing", "denoise", most),
        ("whole denoised fit", "whole", 4.0),
    )
]
