"""Figures about mechanisms: docs/reference/mechanisms.md, docs/errata.md (Privacy)."""

from functools import partial

import numpy as np

import opboost as op
from claims.claim import NOISE, Page

TEN, HUNDRED = op.Domain(1, 10), op.Domain(1, 100)


def moved(mechanism: op.Mechanism) -> float:
    """Return the mean distance moved over all values of the grid, from the exact distribution."""
    matrix = mechanism.transition_matrix()
    cells = np.arange(len(matrix))
    return float((matrix * np.abs(cells[:, None] - cells)).sum(axis=1).mean())


def order(mechanism: op.Mechanism) -> float:
    """Return the expected weighted Kendall on an evenly filled grid, from the distribution."""
    p = mechanism.transition_matrix()
    below = np.column_stack([np.zeros(len(p)), p.cumsum(axis=1)[:, :-1]])
    above = p @ below.T  # [i, j]: the output of i is larger than that of j
    cells = np.arange(len(p))
    gap = np.abs(cells[:, None] - cells)
    kept = (np.sign(cells[:, None] - cells) * (above - above.T) * gap).sum()
    return float(kept / np.sqrt(gap.sum() * ((above + above.T) * gap).sum()))


MECHANISMS = [  # cells, epsilon, then moves, order and exact level of Global-map and of Clamp-map
    (TEN, 0.08, (3.099, 0.085, 0.0708), (3.543, 0.228, 0.08)),
    (TEN, 0.64, (1.919, 0.582, 0.4950), (1.152, 0.848, 0.64)),
    (HUNDRED, 0.08, (17.626, 0.642, 0.0769), (10.863, 0.874, 0.08)),
    (HUNDRED, 1.28, (1.430, 0.998, 0.8625), (0.594, 1.000, 1.28)),
]
MEASURES = (
    ("moves", moved, 0.0006),
    ("order", order, 0.0006),
    ("exact", lambda mechanism: mechanism.exact_epsilon(), 6e-5),
)
ADJ_MAPS = [  # cells, theta, epsilon, alpha, the exact level over the nominal one, and within
    (HUNDRED, 10, 0.1, 0.5, 6.2, 0.05),
    (HUNDRED, 10, 0.1, 1, 6.6, 0.05),
    (HUNDRED, 10, 0.1, 5, 7.0, 0.05),
    (TEN, 2, 0.64, 0.5, 0.99, 0.005),
    (TEN, 2, 0.64, 1, 1.13, 0.005),
    (TEN, 2, 0.64, 5, 1.27, 0.005),
]


def exact_ratio(mechanism: op.Mechanism, epsilon: float) -> float:
    return mechanism.exact_epsilon() / epsilon


TABLE, ERRATA = Page("docs/reference/mechanisms.md"), Page("docs/errata.md, Privacy")
COVERS = (*NOISE, "opboost.promises", "opboost.metrics")
CLAIMS = [
    *(
        TABLE.equals(
            f"{name} {what}, ε={epsilon}, {grid.size} cells",
            figure,
            partial(measure, kind(grid, epsilon)),
            within=within,
        )
        for grid, epsilon, *of_each in MECHANISMS
        for (name, kind), figures in zip(
            (("Global-map", op.GlobalMap), ("Clamp-map", op.ClampMap)), of_each, strict=True
        )
        for (what, measure, within), figure in zip(MEASURES, figures, strict=True)
    ),
    *(
        ERRATA.equals(
            f"Adj-map exact/ε, {grid.size} cells, θ={theta}, ε={epsilon}, α={alpha}",
            ratio,
            partial(exact_ratio, op.AdjMap(grid, epsilon, theta=theta, alpha=alpha), epsilon),
            within=within,
        )
        for grid, theta, epsilon, alpha, ratio, within in ADJ_MAPS
    ),
    *(
        ERRATA.equals(
            f"Global-map exact/ε, 10 cells, ε={epsilon}",
            ratio,
            partial(exact_ratio, op.GlobalMap(TEN, epsilon), epsilon),
            within=0.005,
        )
        for epsilon, ratio in ((0.08, 0.89), (1.28, 0.67))
    ),
]
