"""The planning rule against fixed choices, and ``denoise="auto"`` against both of its choices.

docs/decisions/0023-record-budgets.md.  Needs ``OPBOOST_DATA``; long.
"""

import statistics
from functools import partial
from typing import Any

from claims.claim import LEARNING, Page
from opboost.budgets.budget import Task
from opboost.budgets.planning_rule import columns_per_row
from opboost_lab.record_totals import Score, score

HERE = Page("docs/decisions/0023-record-budgets.md")
SEEDS = range(5, 8)
SETS = {"Powerplant": 4, "CASP": 9, "Pen-digits": 16, "Adult": 13}
TOTALS = (1, 4)
CHOICES = (1, 2, 3, 4)
"""The numbers of columns per row that are tried."""


def scored(data: str, total: float, seed: int, sent: int, denoise: Any = "auto") -> Score:
    """Return the score on clean test rows with ``sent`` columns per row."""
    return score(data, total, seed, denoise=denoise, columns_per_row=sent, released=False)


def planned(data: str, total: float) -> int:
    task: Task = "regress" if data in ("Powerplant", "CASP") else "classify"
    return columns_per_row(total, SETS[data], task)


def mean(data: str, total: float, sent: int) -> float:
    return statistics.fmean(scored(data, total, seed, sent).clean for seed in SEEDS)


def behind_the_best(data: str, total: float) -> float:
    """Return how far the plan is behind the best fixed number of columns per row."""
    best = max(mean(data, total, sent) for sent in CHOICES if sent <= SETS[data])
    return best - mean(data, total, planned(data, total))


def auto_behind(data: str, total: float) -> float:
    """Return how far "auto" is behind the better of denoising and noisy rows."""
    sent = planned(data, total)
    auto = [scored(data, total, seed, sent) for seed in SEEDS]

    def side(denoise: bool) -> float:
        """Return one side's mean score, from the model of "auto" where "auto" chose this side."""
        found = (
            told if told.denoised == denoise else scored(data, total, seed, sent, denoise)
            for told, seed in zip(auto, SEEDS, strict=True)
        )
        return statistics.fmean(s.clean for s in found)

    return max(side(True), side(False)) - statistics.fmean(s.clean for s in auto)


COVERS = LEARNING
CASES = [(data, total) for data in SETS for total in TOTALS]
CLAIMS = [
    *(
        HERE.at_most(
            f"{data} at {total}: best fixed choice less plan",
            0.01,
            partial(behind_the_best, data, total),
        )
        for data, total in CASES
    ),
    *(
        HERE.at_most(
            f"{data} at {total}: better side less auto", 0.02, partial(auto_behind, data, total)
        )
        for data, total in CASES
    ),
    HERE.at_most(
        "all sets and totals: better side less auto",
        0.005,
        lambda: statistics.fmean(auto_behind(data, total) for data, total in CASES),
    ),
]
