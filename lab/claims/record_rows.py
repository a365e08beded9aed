"""Accuracy at a record total by rows: docs/record-budgets.md.  Needs ``OPBOOST_DATA``; long."""

from functools import partial

from claims.claim import LEARNING
from claims.record import HERE
from opboost_lab.record_totals import score

SEEDS = range(5, 8)
SETS = ("Industrial", "Census")
TOTALS = (1, 4, 8)
ROWS = (20_000, 60_000, 190_000)
SHORT = {("Census", 4)}
"""Where more rows do not help so far."""


def clean(data: str, total: float, rows: int) -> list[float]:
    return [score(data, total, seed, rows=rows, released=False).clean for seed in SEEDS]


def grown(data: str, total: float) -> list[float]:
    """Return what the most rows gain over the fewest, for each seed."""
    few, many = (clean(data, total, rows) for rows in (ROWS[0], ROWS[-1]))
    return [b - a for a, b in zip(few, many, strict=True)]


COVERS = LEARNING
CLAIMS = [
    *(
        HERE.at_least(
            f"{data} at a record total of {total}, {rows:,} rows",
            -1.0,
            partial(clean, data, total, rows),
        )
        for data in SETS
        for total in TOTALS
        for rows in ROWS
    ),
    *(
        HERE.at_least(
            f"{data} at a record total of {total}: {ROWS[-1]:,} rows over {ROWS[0]:,}",
            0.0,
            partial(grown, data, total),
            short=(data, total) in SHORT,
        )
        for data in SETS
        for total in TOTALS
    ),
]
