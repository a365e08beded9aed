"""Single columns on a grid, by name: those of the figures on order and on range queries.

The name of a stand-in for one of the paper's columns says so, so that results are not confused.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from opboost._typing import IntArray
from opboost.errors import ParameterError
from opboost.grid import Domain, NumericMapping
from opboost_lab.data import datasets

AGE = "age of Adult"
AGE_ALIKE = "made-up ages"
SALARIES = "TotalPay of Salaries"
SALARIES_ALIKE = "made-up salaries"
UNIFORM = "uniform"
NORMAL = "normal"

AGES = (17.0, 90.0)
PAY = (0.0, 567_595.43)
"""The declared bounds: zero, and the largest published total pay."""


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column, and its number of rows, which real columns ignore."""

    name: str
    rows: int


@lru_cache(maxsize=8)
def column(name: str, lower: int, upper: int, rows: int) -> IntArray:
    """Return the cells of a column on ``lower..upper``; real columns ignore ``rows``.

    The paper's mapping B assigns raw values to cells (docs/errata.md, Mapping).
    """
    domain, rng = Domain(lower, upper), np.random.default_rng(0)
    if name == UNIFORM:
        return rng.integers(lower, upper + 1, rows)
    if name == NORMAL:
        middle, spread = (lower + upper) / 2, domain.span / 6
        return np.clip(np.rint(rng.normal(middle, spread, rows)), lower, upper).astype(np.int64)
    if name == AGE:
        return _cells(domain, AGES, datasets.adult().train["age"].to_numpy())
    if name == AGE_ALIKE:
        return _cells(domain, AGES, 17 + np.minimum(rng.gamma(2.6, 8.3, rows), 73))
    if name == SALARIES:
        return _cells(domain, PAY, datasets.salaries())
    if name == SALARIES_ALIKE:
        # Two log-normal distributions: people who worked part of a year, and all year.
        part_of_year = rng.random(rows) < 0.3
        pay = rng.lognormal(9.0, 1.2, rows), rng.lognormal(11.35, 0.35, rows)
        return _cells(domain, PAY, np.where(part_of_year, *pay))
    raise ParameterError(f"No column is called {name!r}.")


def _cells(domain: Domain, bounds: tuple[float, float], raw: object) -> IntArray:
    mapping = NumericMapping(domain, bounds, mapping="paper")
    return mapping.to_grid(np.asarray(raw, dtype=np.float64)).astype(np.int64)
