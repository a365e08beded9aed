"""Predictions from released scores and from released columns: docs/score-release.md.

Needs ``OPBOOST_DATA``; long.  All columns are private.  The size of codebooks was chosen with other
seeds, on rows held out of the training set: ``opboost_lab.codebook_size``.
"""

from __future__ import annotations

import statistics
from functools import partial

from claims.claim import Claim
from claims.covered_sources import LEARNING
from opboost_lab.score_totals import by_party_cost, ways

SEEDS = range(5, 10)
HERE = "docs/score-release.md"
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
    """Of test rows that are released in one way, or clean, seed by seed."""
    return [getattr(ways(data, total, seed), way) for seed in SEEDS]


def gained(data: str, total: float) -> list[float]:
    """What scores predict better than columns, seed by seed."""
    found = [ways(data, total, seed) for seed in SEEDS]
    return [one.scores - one.columns for one in found]


COVERS = (*LEARNING, "opboost.scores")
CLAIMS = [
    *(
        Claim(
            f"{data} at a total of {total}, predicted from {words}",
            HERE,
            "at least",
            TARGETS.get((data, total), -1.0) if way == "scores" else -1.0,
            partial(by_way, data, total, way),
            middle=statistics.fmean,
            short=(data, total, way) == ("Powerplant", 4, "scores"),
        )
        for data in SETS
        for total in TOTALS
        for way, words in (
            ("clean", "clean rows"),
            ("columns", "released columns"),
            ("scores", "released scores"),
        )
    ),
    *(
        Claim(
            f"{data} at a total of {total}: released scores over released columns",
            HERE,
            "at least",
            0.0,
            partial(gained, data, total),
            middle=statistics.fmean,
        )
        for data in SETS
        for total in TOTALS
    ),
    *(
        Claim(
            f"{data}: what by-party trees cost, columns dealt to two parties, no noise",
            HERE,
            "at most",
            most,
            partial(lambda data: [by_party_cost(data, seed) for seed in SEEDS], data),
            middle=statistics.fmean,
        )
        for data, most in COSTS.items()
    ),
]
