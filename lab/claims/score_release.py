"""Predictions from released scores and from released columns: docs/score-release.md.

Needs ``OPBOOST_DATA``; long.  All columns are private.  The codebook size was chosen with other
seeds, on rows held out from the training set.
"""

from functools import partial
from statistics import fmean

from claims.claim import LEARNING, Page
from opboost_lab.score_totals import by_party_cost, ways

SEEDS = range(5, 10)
HERE = Page("docs/score-release.md", fmean)
SETS = ("Powerplant", "CASP", "Pen-digits", "Adult")
TOTALS = (1, 4, 8)
TARGETS = {
    ("Powerplant", 4): 0.6,
    ("Powerplant", 8): 0.9,
    ("Pen-digits", 4): 0.67,
    ("Pen-digits", 8): 0.8,
}
COSTS = {"Powerplant": 0.01, "CASP": 0.06, "Pen-digits": 0.02, "Adult": 0.02}


def by_way(data: str, total: float, way: str) -> list[float]:
    """Return scores on test rows that are clean or released in one way, for each seed."""
    return [getattr(ways(data, total, seed), way) for seed in SEEDS]


def gained(data: str, total: float) -> list[float]:
    """Return by how much released scores beat released columns, for each seed."""
    found = [ways(data, total, seed) for seed in SEEDS]
    return [one.scores - one.columns for one in found]


COVERS = (*LEARNING, "opboost.scores")
CASES = [(data, total) for data in SETS for total in TOTALS]
WAYS = {"clean": "clean rows", "columns": "released columns", "scores": "released scores"}
CLAIMS = [
    *(
        HERE.at_least(
            f"{data} at a total of {total}, predicted from {words}",
            TARGETS.get((data, total), -1.0) if way == "scores" else -1.0,
            partial(by_way, data, total, way),
        )
        for data, total in CASES
        for way, words in WAYS.items()
    ),
    *(
        HERE.at_least(
            f"{data} at a total of {total}: released scores over released columns",
            0.0,
            partial(gained, data, total),
        )
        for data, total in CASES
    ),
    *(
        HERE.at_most(
            f"{data}: what by-party trees cost, columns dealt to two parties, no noise",
            most,
            lambda data=data: [by_party_cost(data, seed) for seed in SEEDS],
        )
        for data, most in COSTS.items()
    ),
]
