"""How a record total is spent best: columns per row, cells per column, and nominal mechanisms.

Public facts alone go in.  Why the figures are these: docs/decisions/0023-record-budgets.md.
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

GRID_CELLS = 32
"""Cells of a column of numbers."""

MAX_INTEGER_CELLS = 32
"""Columns of whole numbers with up to so many values have a cell for each."""


def columns_per_row(total: float, columns: int, task: Task | None = None) -> int:
    """How many columns a person sends.

    About as many as the level of each, so that both grow with the total: few columns at a level
    that tells something, and pairs of columns from the rows that send both.  Below a total of 6
    classes are told apart best one column at a time.

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
    """Whether each of so many whole numbers gets a cell of its own."""
    return count <= MAX_INTEGER_CELLS


def nominal_column(
    name: Hashable, categories: tuple[Hashable, ...], level: float, missing: Any
) -> PrivateColumn:
    """A column of categories without an order, by the mechanism with the smallest variance."""
    mechanism = best_nominal(categories, level)
    mapping = None
    if isinstance(mechanism, Mechanism):  # randomised response, on the numbers of the categories
        mapping = OrdinalMapping(mechanism.domain, Ordered(categories))
    return PrivateColumn(name, mapping, mechanism, missing=missing)
