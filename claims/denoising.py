"""Denoising on the paper's data sets: docs/denoising.md.  Needs ``OPBOOST_DATA``."""

from __future__ import annotations

import statistics
from functools import cache, partial

from claims.claim import Claim
from opboost.experiments.accuracy import mechanisms, parted, plain, score

SEEDS = range(5)
EPSILONS = (0.08, 0.64, 1.28)
TARGETS = {
    "Powerplant": (0.80, 0.915, 0.923),
    "Pen-digits": (0.75, 0.92, 0.942),
    "CASP": (0.10, 0.23, 0.25),
}


@cache
def scores(data: str, way: str, epsilon: float, denoise: object) -> list[float]:
    """One score a seed, with the paper's mapping; the seed parts the rows too, where there is no
    official split.
    """
    mechanism = mechanisms(epsilon)[way]
    return [
        score(data, mechanism, s, mapping="paper", denoise=denoise, data=parted(data, s))
        for s in SEEDS
    ]


def gains(data: str, way: str, epsilon: float) -> list[float]:
    """What "auto" gains over rows as they came, seed by seed."""
    pairs = zip(scores(data, way, epsilon, "auto"), scores(data, way, epsilon, False), strict=True)
    return [ours - naive for ours, naive in pairs]


def of_plain(data: str, epsilon: float) -> list[float]:
    """Shares of plain training on the same grid."""
    base = plain(data, on_grid=True, mapping="paper", data=parted(data, 0))
    return [s / base for s in scores(data, "Clamp-map", epsilon, "auto")]


HERE = "docs/denoising.md"
CLAIMS = [
    *(
        Claim(
            f"Clamp-map, denoised, ε={epsilon}, {data}, paper's mapping",
            HERE,
            "at least",
            target,
            partial(scores, data, "Clamp-map", epsilon, "auto"),
            middle=statistics.mean,
            short=(data, epsilon) == ("CASP", 0.08),
        )
        for data, targets in TARGETS.items()
        for epsilon, target in zip(EPSILONS, targets, strict=True)
    ),
    *(
        Claim(
            f"Clamp-map, ε={epsilon}, Adult: what denoising gains over rows as they came",
            HERE,
            "at least",
            0.0,
            partial(gains, "Adult", "Clamp-map", epsilon),
            middle=statistics.mean,
        )
        for epsilon in EPSILONS
    ),
    Claim(
        "Clamp-map, denoised, ε=1.28, Adult, share of plain AUC",
        HERE,
        "at least",
        0.995,
        partial(of_plain, "Adult", 1.28),
        middle=statistics.mean,
    ),
]
