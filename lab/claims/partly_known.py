"""Rows that a feature party does not have: docs/partly-known-rows.md.  Needs ``OPBOOST_DATA``.

How many rounds to add for a partner was settled on seeds 0 to 9; these are seeds 10 to 14.
"""

from functools import partial
from statistics import fmean

from claims.claim import FEDERATION, LEARNING, Page
from opboost_lab.partly_known import partly_known

HERE = Page("docs/partly-known-rows.md", fmean)
SEEDS = range(10, 15)
SETS = ("Adult", "Pen-digits", "Industrial")
TOTAL = 8


def over(data: str, other: str) -> list[float]:
    """Return what a model of all rows gains over another one on clean test rows, for each seed."""
    found = [partly_known(data, TOTAL, seed) for seed in SEEDS]
    return [each.mine - getattr(each, other) for each in found]


COVERS = (*FEDERATION, *LEARNING)
CLAIMS = [
    HERE.at_least(
        f"{data} at a record total of {TOTAL}, 30 % known: rows = 'mine' over {words}",
        0.0,
        partial(over, data, other),
    )
    for data in SETS
    for other, words in (("common", "the common rows"), ("own", "own columns alone"))
]
