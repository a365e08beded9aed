"""Denoising on the paper's data sets and on others: docs/denoising.md.  Needs ``OPBOOST_DATA``."""

from __future__ import annotations

import statistics
from functools import cache

from opboost.experiments.accuracy import mechanisms, parted, plain, score

SEEDS = range(5)
EPSILONS = (0.08, 0.64, 1.28)
TARGETS = {
    "Powerplant": (0.80, 0.915, 0.923),
    "CASP": (0.10, 0.23, 0.25),
    "Pen-digits": (0.75, 0.92, 0.942),
}
OTHERS = ("Global-map", "Local-map θ=2", "Local-map θ=4", "Adj-map θ=2 α=1", "Adj-map θ=4 α=10")


@cache
def scores(
    data: str, way: str, epsilon: float, denoise: object, mapping: str = "paper"
) -> list[float]:
    """One score a seed; the seed parts the rows too, where there is no official split."""
    mechanism = mechanisms(epsilon)[way]
    return [
        score(data, mechanism, s, mapping=mapping, denoise=denoise, data=parted(data, s))
        for s in SEEDS
    ]


def mean(data: str, way: str, epsilon: float, denoise: object, mapping: str = "paper") -> float:
    return statistics.mean(scores(data, way, epsilon, denoise, mapping))


def gain(data: str, way: str, epsilon: float) -> float:
    """What "auto" gains over rows as they came, in the mean of the seeds."""
    return mean(data, way, epsilon, "auto") - mean(data, way, epsilon, False)


def of_plain(data: str, epsilon: float) -> list[float]:
    """Shares of plain training on the same grid."""
    base = plain(data, on_grid=True, mapping="paper", data=parted(data, 0))
    return [s / base for s in scores(data, "Clamp-map", epsilon, "auto")]
