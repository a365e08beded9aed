"""Time and memory of ``fit`` at a record budget beside plain training: docs/record-budgets.md."""

from functools import partial
from statistics import median

from claims.claim import LEARNING
from claims.denoising_speed import in_processes
from claims.record import HERE

SIZES = ((45_000, 9), (300_000, 40))

_SCRIPT = """
way = sys.argv[3]
def record(n):
    kind = op.OpBoostClassifier if binary else op.OpBoostRegressor
    kind(bounds=(-4, 4), budget=op.Budget.record(4), random_state=0,
         booster_params={**params, "eta": 0.1}).fit(X[:n], y[:n])
work = {"plain": plain, "record": record}[way]
work(2000)  # load and compile before the clock runs
taken = []
for _ in range(2):
    start = time.perf_counter()
    work(rows)
    taken.append(time.perf_counter() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"time": min(taken), "memory": peak}))
"""


def ratio(what: str, rows: int, columns: int) -> list[float]:
    """Of a record budget's to plain training's."""
    found = (in_processes(_SCRIPT, rows, columns, way) for way in ("record", "plain"))
    return [ours[what] / plain[what] for ours, plain in zip(*found, strict=True)]


COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        f"fit at a record total of 4 on {rows:,} x {columns}, {words} over plain training",
        most,
        partial(ratio, what, rows, columns),
        middle=median,
        short=what == "time" or columns == 40,
    )
    for rows, columns in SIZES
    for what, words, most in (("time", "time", 4.0), ("memory", "peak memory", 1.5))
]
