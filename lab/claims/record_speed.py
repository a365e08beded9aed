"""Time and memory of ``fit`` at a record budget against plain training: docs/record-budgets.md."""

from functools import cache, partial
from statistics import median

from claims.claim import LEARNING
from claims.record import HERE
from opboost_lab.bench.training import TrainTime, measure


@cache
def pairs(rows: int, columns: int) -> list[list[TrainTime]]:
    """Measure fits at a record budget and plain ones, in turns."""
    return [
        [measure(way, rows, columns, 2) for way in ("record", "plain xgboost")] for _ in range(5)
    ]


def ratio(figure: str, rows: int, columns: int) -> list[float]:
    """Return a figure at a record budget, divided by that of plain training."""
    return [getattr(ours, figure) / getattr(plain, figure) for ours, plain in pairs(rows, columns)]


COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        f"fit at a record total of 4 on {rows:,} x {columns}, {words} over plain training",
        most,
        partial(ratio, figure, rows, columns),
        middle=median,
        short=True,
    )
    for rows, columns in ((45_000, 9), (300_000, 40))
    for words, figure, most in (("time", "fastest", 4.0), ("peak memory", "process_mb", 1.5))
]
