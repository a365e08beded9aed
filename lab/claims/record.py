"""Models at record totals: docs/record-budgets.md.  Needs ``OPBOOST_DATA``.

The planning rule was chosen on seeds 0 to 4; these are seeds 5 to 9.
"""

from collections.abc import Sequence
from functools import partial
from statistics import fmean, stdev

from claims.claim import LEARNING, Claim, Page
from claims.denoising_industrial import left
from opboost_lab.accuracy import parted, plain
from opboost_lab.declared_sets import all_private
from opboost_lab.record_totals import Way, score

SEEDS = range(5, 10)
HERE = Page("docs/record-budgets.md", fmean)

TARGETS = {
    "Powerplant": {1: 0.89, 4: 0.92, 8: 0.93},
    "CASP": {1: 0.13, 4: 0.185, 8: 0.24},
    "Pen-digits": {1: 0.69, 4: 0.81, 8: 0.85},
    "Adult": {1: 0.84, 4: 0.875, 8: 0.888},
}
INDUSTRIAL = {4: 1.09, 8: 1.08}
SHORT = {("Powerplant", 4), ("Pen-digits", 4), ("Adult", 8), ("Industrial", 4), ("Industrial", 8)}
"""Targets that are not met yet."""

EVEN: dict[Way, object] = {"Piecewise": "auto", "Clamp-map": "auto", "Global-map": False}
"""Mechanisms for an even split over all columns; the paper trains on noisy rows."""


def less_an_error(values: Sequence[float]) -> float:
    return fmean(values) - stdev(values) / len(values) ** 0.5


def by_rows(data: str, total: float, kind: str) -> list[float]:
    """Return scores on clean test rows, or on test rows released under the same budget."""
    return [getattr(score(data, total, seed), kind) for seed in SEEDS]


def even(data: str, total: float, way: Way) -> list[float]:
    """Return scores for the same total, split evenly over all columns."""
    return [score(data, total, seed, way, EVEN[way], released=False).clean for seed in SEEDS]


def without_noise(data: str) -> list[float]:
    """Return scores of plain training on raw values, which no party could do alone."""
    return [plain(data, on_grid=False, data=all_private(parted(data, seed))) for seed in SEEDS]


def over_plain(total: float, kind: str) -> list[float]:
    """Return the mean squared error on the industrial stand-in over that of plain training."""
    return [(1 - r2) / left() for r2 in by_rows("Industrial", total, kind)]


def at_total(data: str, total: int) -> list[Claim]:
    """Claim the figures of a data set at one record total."""
    name = f"{data} at a record total of {total}"
    return [
        HERE.at_least(
            f"{name}, clean test rows",
            TARGETS[data].get(total, 0.0),
            partial(by_rows, data, total, "clean"),
            middle=less_an_error,
            short=(data, total) in SHORT,
        ),
        HERE.at_least(
            f"{name}, released test rows", -1.0, partial(by_rows, data, total, "released")
        ),
        *(
            HERE.at_least(f"{name}, {way}, even", -1.0, partial(even, data, total, way))
            for way in EVEN
        ),
    ]


COVERS = LEARNING
CLAIMS = [
    *(
        HERE.at_least(f"{data}, plain training on raw values", 0.0, partial(without_noise, data))
        for data in TARGETS
    ),
    *(claim for data in TARGETS for total in (1, 2, 4, 8, 16) for claim in at_total(data, total)),
    *(
        HERE.at_most(
            f"Industrial's stand-in at a record total of {total}, {kind} test rows: MSE over plain",
            target if kind == "clean" else 9.0,
            partial(over_plain, total, kind),
            short=("Industrial", total) in SHORT,
        )
        for total, target in INDUSTRIAL.items()
        for kind in ("clean", "released")
    ),
]
