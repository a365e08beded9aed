"""Bounds of a column that holds whole numbers only."""

from __future__ import annotations

from typing import NamedTuple


class Integers(NamedTuple):
    """Declared bounds of a column of whole numbers, both ends included.

    Accepted wherever bounds are.  If there are few values, a record budget gives each one a cell of
    its own.

    >>> import opboost as op
    >>> hours = op.Integers(0, 23)
    >>> hours.size, tuple(hours)
    (24, (0, 23))
    """

    lower: int
    upper: int

    @property
    def size(self) -> int:
        """The number of values that the column may have."""
        return int(self.upper) - int(self.lower) + 1
