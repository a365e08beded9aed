"""More mechanisms, denoised: docs/denoising-results.md.  Needs ``OPBOOST_DATA``; long."""

import statistics
from functools import partial

from claims.claim import LEARNING
from claims.denoising import HERE, gains

OTHERS = ("Global-map", "Local-map θ=2", "Local-map θ=4", "Adj-map θ=2 α=1", "Adj-map θ=4 α=10")
EPSILONS = (0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
SEEDS = range(1)


def worst(data: str, way: str) -> list[float]:
    return [statistics.mean(gains(data, way, epsilon, SEEDS)) for epsilon in EPSILONS]


COVERS = LEARNING
CLAIMS = [
    HERE.at_least(
        f"{way}, {data}: the least that denoising gains at any ε from .08 to 5.12",
        -0.005,
        partial(worst, data, way),
        middle=min,
    )
    for data in ("Powerplant", "Pen-digits", "Adult", "CASP")
    for way in OTHERS
]
