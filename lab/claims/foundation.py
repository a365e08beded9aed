"""Figures about mechanisms: README.md (Mechanisms), docs/errata.md (Privacy)."""

from __future__ import annotations

from functools import partial

import numpy as np

import opboost as op
from claims.claim import Claim
from claims.covered_sources import NOISE

TEN, HUNDRED = op.Domain(1, 10), op.Domain(1, 100)


def moved(mechanism: op.Mechanism) -> float:
    """The mean distance moved, over all values of the grid, from the law itself."""
    matrix = mechanism.transition_matrix()
    cells = np.arange(len(matrix))
    return float((matrix * np.abs(cells[:, None] - cells)).sum(axis=1).mean())


def exact(mechanism: op.Mechanism) -> float:
    """The worst loss a cell."""
    return mechanism.exact_epsilon()


def exact_ratio(mechanism: op.Mechanism, epsilon: float) -> float:
    """The exact level as a multiple of the nominal one."""
    return mechanism.exact_epsilon() / epsilon


def order(mechanism: op.Mechanism) -> float:
    """Expected weighted Kendall on a grid that is evenly filled, from the law itself."""
    p = mechanism.transition_matrix()
    below = np.column_stack([np.zeros(len(p)), p.cumsum(axis=1)[:, :-1]])
    above = p @ below.T  # [i, j]: the output of i is larger than that of j
    cells = np.arange(len(p))
    gap = np.abs(cells[:, None] - cells)
    kept = (np.sign(cells[:, None] - cells) * (above - above.T) * gap).sum()
    return float(kept / np.sqrt(gap.sum() * ((above + above.T) * gap).sum()))


def _readme() -> list[Claim]:
    rows = [  # cells, epsilon, then moves, order and exact level of Global-map and of Clamp-map
        (TEN, 0.08, (3.099, 0.085, 0.0708), (3.543, 0.228, 0.08)),
        (TEN, 0.64, (1.919, 0.582, 0.4950), (1.152, 0.848, 0.64)),
        (HUNDRED, 0.08, (17.626, 0.642, 0.0769), (10.863, 0.874, 0.08)),
        (HUNDRED, 1.28, (1.430, 0.998, 0.8625), (0.594, 1.000, 1.28)),
    ]
    claims = []
    for grid, epsilon, *of_each in rows:
        kinds = (("Global-map", op.GlobalMap), ("Clamp-map", op.ClampMap))
        for (name, kind), figures in zip(kinds, of_each, strict=True):
            m = kind(grid, epsilon)
            measures = (("moves", moved, 0.0006), ("order", order, 0.0006), ("exact", exact, 6e-5))
            claims += [
                Claim(
                    f"{name} {what}, ε={epsilon}, {grid.size} cells",
                    "README.md, Mechanisms",
                    "equals",
                    figure,
                    partial(measure, m),
                    within,
                )
                for (what, measure, within), figure in zip(measures, figures, strict=True)
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


COVERS = (*NOISE, "opboost.promises", "opboost.metrics")
CLAIMS = [*_readme(), *_errata()]
