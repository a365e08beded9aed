"""Figures about mechanisms: README.md (Mechanisms), docs/errata.md (Privacy)."""

from __future__ import annotations

from functools import partial

import numpy as np

import opboost as op
from claims.claim import Claim

TEN, HUNDRED = op.Domain(1, 10), op.Domain(1, 100)


def moved(mechanism: op.Mechanism) -> float:
    """The mean distance moved, over all values of the grid, from the law itself."""
    matrix = mechanism.transition_matrix()
    cells = np.arange(len(matrix))
    return float((matrix * np.abs(cells[:, None] - cells)).sum(axis=1).mean())


def exact_ratio(mechanism: op.Mechanism, epsilon: float) -> float:
    """The exact level as a multiple of the nominal one."""
    return mechanism.exact_epsilon() / epsilon


def _readme() -> list[Claim]:
    figures = {
        0.08: ((17.63, 0.005, 0.0769), (10.86, 0.005, 0.08)),
        1.28: ((1.430, 0.0005, 0.8625), (0.594, 0.0005, 1.28)),
    }
    claims = []
    for epsilon, of_each in figures.items():
        kinds = (("Global-map", op.GlobalMap), ("Clamp-map", op.ClampMap))
        for (name, kind), (distance, within, exact) in zip(kinds, of_each, strict=True):
            m = kind(HUNDRED, epsilon)
            where = "README.md, Mechanisms"
            claims += [
                Claim(
                    f"{name} moves, ε={epsilon}, 100 cells",
                    where,
                    "equals",
                    distance,
                    partial(moved, m),
                    within,
                ),
                Claim(
                    f"{name} exact level, ε={epsilon}, 100 cells",
                    where,
                    "equals",
                    exact,
                    m.exact_epsilon,
                    0.00005,
                ),
            ]
    return claims


def _errata() -> list[Claim]:
    rows = [
        (HUNDRED, 10, 0.1, 0.5, 6.2, 0.05),
        (HUNDRED, 10, 0.1, 1, 6.6, 0.05),
        (HUNDRED, 10, 0.1, 5, 7.0, 0.05),
        (TEN, 2, 0.64, 0.5, 0.99, 0.005),
        (TEN, 2, 0.64, 1, 1.13, 0.005),
        (TEN, 2, 0.64, 5, 1.27, 0.005),
    ]
    claims = [
        Claim(
            f"Adj-map exact/ε, {grid.size} cells, θ={theta}, ε={epsilon}, α={alpha}",
            "docs/errata.md, Privacy",
            "equals",
            ratio,
            partial(exact_ratio, op.AdjMap(grid, epsilon, theta=theta, alpha=alpha), epsilon),
            within,
        )
        for grid, theta, epsilon, alpha, ratio, within in rows
    ]
    for epsilon, ratio in ((0.08, 0.89), (1.28, 0.67)):
        claims.append(
            Claim(
                f"Global-map exact/ε, 10 cells, ε={epsilon}",
                "docs/errata.md, Privacy",
                "equals",
                ratio,
                partial(exact_ratio, op.GlobalMap(TEN, epsilon), epsilon),
                0.005,
            )
        )
    return claims


CLAIMS = [*_readme(), *_errata()]
