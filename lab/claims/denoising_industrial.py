"""The industrial set's stand-in: docs/denoising-results.md.  Needs ``OPBOOST_DATA``; long."""

from functools import cache, partial

from claims.claim import LEARNING
from claims.denoising import HERE, scores
from opboost_lab.accuracy import parted, plain

EPSILONS = (0.64, 1.28, 2.56)
SEEDS = range(1)


@cache
def left() -> float:
    """Return the share of variance that plain training on raw values does not explain."""
    return 1 - plain("Industrial", on_grid=False, data=parted("Industrial", 0))


def ratios(way: str, epsilon: float, denoise: object) -> list[float]:
    """Return the mean squared error over that of the plain model, for each seed."""
    found = scores("Industrial", way, epsilon, denoise, "cells", SEEDS)
    return [(1 - r2) / left() for r2 in found]


COVERS = LEARNING
CLAIMS = [
    HERE.at_most(
        f"{way}, {'denoised' if denoise else 'noisy rows'}, ε={epsilon}, Industrial's stand-in: "
        "MSE over plain",
        1.25,
        partial(ratios, way, epsilon, denoise),
    )
    for way, denoise in (("Global-map", False), ("Clamp-map", False), ("Clamp-map", "auto"))
    for epsilon in EPSILONS
]
