"""Time and memory of ``fit`` at a record budget beside plain training: docs/record-budgets.md."""

from __future__ import annotations

from functools import cache

from claims.covered_sources import LEARNING
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
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
taken = []
for _ in range(2):
    start = time.perf_counter()
    work(rows)
    taken.append(time.perf_counter() - start)
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({"time": min(taken), "memory": peak, "grown": peak - before}))
"""


@cache
def measured(rows: int, columns: int, way: str) -> list[dict[str, float]]:
    """Seconds and peak memory, in processes of their own."""
    return in_processes(_SCRIPT, rows, columns, way)


def ratio(what: str, rows: int, columns: int) -> list[float]:
    """Of a record budget's to plain training's."""
    pairs = zip(measured(rows, columns, "record"), measured(rows, columns, "plain"), strict=True)
    return [ours[what] / plain[what] for ours, plain in pairs]


COVERS = LEARNING
CLAIMS = [
    claim
    for rows, columns in SIZES
    for claim in (
        HERE.at_most(
            f"fit at a record total of 4 on {rows:,} x {columns}, time over plain training",
            4.0,
            lambda r=rows, c=columns: ratio("time", r, c),
            short=True,
        ),
        HERE.at_most(
            f"fit at a record total of 4 on {rows:,} x {columns}, peak memory over plain training",
            1.5,
            lambda r=rows, c=columns: ratio("memory", r, c),
            short=columns == 40,
        ),
    )
]
