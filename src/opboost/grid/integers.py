"""Bounds of a column that holds whole numbers only."""

from __future__ import annotations

from typing import NamedTuple


class Integers(NamedTuple):
    """Declared bounds of a column of whole numbers, both ends included.

    It stands wherever bounds stand.  A record budget then gives each value a cell of its own where
    there are few of them.

    >>> import opboost as op
    >>> hours = op.Integers(0, 23)
    >>> hours.size, tuple(hours)
    (24, (0, 23))
    """

    lower: int
    upper: int

    @property
    def size(self) -> int:
        """How many values the column may have."""
        return int(self.upper) - int(self.lower) + 1
