"""The rule for spending a record total: columns per row, cells per column, nominal mechanisms.

It uses public facts only.  The reasons for the figures: docs/decisions/0023-record-budgets.md.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

from opboost.budgets.budget import Task
from opboost.columns.private_column import PrivateColumn
from opboost.grid import Ordered, OrdinalMapping
from opboost.mechanisms import Mechanism
from opboost.mechanisms.best_nominal import best_nominal

DEFAULT_GRID_CELLS = 32
"""The number of cells of a column of numbers."""

MAX_INTEGER_CELLS = 32
"""A column of whole numbers with up to this many values has a cell for each."""


def columns_per_row(total: float, columns: int, task: Task | None = None) -> int:
    """Return how many columns are sent for each person.

    The total is divided so that this number and the level of each column are about equal, and both
    grow with the total.  Each column is then sent at an informative level, and rows with two
    columns show how these depend on each other.  Below a total of 6, classification works best with
    one column per person.

    >>> [columns_per_row(total, 12) for total in (1, 2, 4, 8, 16)]
    [1, 1, 2, 3, 4]
    """
    sent = round(math.sqrt(total))
    if task == "classify" and total < 6:
        sent = 1
    if task == "regress" and 6 <= total < 12:
        sent = 2
    return max(1, min(columns, sent))


def few_values(count: float) -> bool:
    """Return whether each of ``count`` whole numbers gets a cell of its own."""
    return count <= MAX_INTEGER_CELLS


def nominal_column(
    name: Hashable, categories: tuple[Hashable, ...], level: float, missing: Any
) -> PrivateColumn:
    """Return a column of unordered categories, with the mechanism of the smallest variance."""
    mechanism = best_nominal(categories, level)
    mapping = None
    if isinstance(mechanism, Mechanism):  # randomised response, on the numbers of the categories
        mapping = OrdinalMapping(mechanism.domain, Ordered(categories))
    return PrivateColumn(name, mapping, mechanism, missing=missing)
