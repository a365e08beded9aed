"""A grid cut into runs of neighbouring cells."""

from __future__ import annotations

import operator
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from opboost._typing import IntArray
from opboost.errors import ParameterError
from opboost.grid.domain import Domain, checked_domain

MAX_RUN_CELLS = 2**60
"""The widest run of a partition without a grid."""


@dataclass(frozen=True, slots=True)
class Partition:
    """A grid cut into runs of cells; ``theta`` is their width, or the cells that start a new run.

    A width is counted from the lower end of the grid; the last run may be shorter.  Without a
    domain, the runs continue without end in both directions from cell 0.

    >>> Partition(Domain(1, 10), 4).runs()
    [(1, 4), (5, 8), (9, 10)]
    >>> Partition(Domain(1, 10), (4, 9)).runs()
    [(1, 3), (4, 8), (9, 10)]
    """

    domain: Domain | None
    theta: int | tuple[int, ...]

    def __post_init__(self) -> None:
        if isinstance(self.theta, int | np.integer) and not isinstance(self.theta, bool):
            object.__setattr__(self, "theta", int(self.theta))
            limit = MAX_RUN_CELLS if self.domain is None else checked_domain(self.domain).size
            if not 1 <= self.theta <= limit:
                raise ParameterError(
                    f"theta must lie between 1 and {limit}, the number of cells; got {self.theta}."
                )
            return
        if self.domain is None:
            raise ParameterError(f"theta must be an integer width; got {self.theta!r}.")
        try:
            borders = tuple(operator.index(b) for b in self.theta)  # type: ignore[union-attr]
        except (TypeError, ValueError):
            raise ParameterError(
                f"theta must be an integer width or a tuple of borders; got {self.theta!r}. "
                "Write theta=2, or theta=(4, 9) for runs that start at cells 4 and 9."
            ) from None
        object.__setattr__(self, "theta", borders)
        edges = (self.domain.L, *borders, self.domain.R + 1)
        for left, right in pairwise(edges):
            if left >= right:
                raise ParameterError(
                    f"Borders must increase strictly within {self.domain.L + 1}..{self.domain.R}; "
                    f"got {borders!r}. A border is the first cell of a new run."
                )

    @property
    def count(self) -> int:
        """The number of runs."""
        assert self.domain is not None
        if isinstance(self.theta, int):
            return -(-self.domain.size // self.theta)
        return len(self.theta) + 1

    def index(self, x: int) -> int:
        """Return the run of a cell, counted from 0; a cell outside the grid is clamped first."""
        if self.domain is None:
            assert isinstance(self.theta, int)
            return int(x) // self.theta
        cell = self.domain.clamp(x)
        if isinstance(self.theta, int):
            return (cell - self.domain.L) // self.theta
        return bisect_right(self.theta, cell)

    def run(self, index: int) -> tuple[int, int]:
        """Return the first and last cell of run ``index``."""
        if self.domain is None:
            assert isinstance(self.theta, int)
            return index * self.theta, index * self.theta + self.theta - 1
        if isinstance(self.theta, int):
            first = self.domain.L + index * self.theta
            return first, min(first + self.theta - 1, self.domain.R)
        edges = (self.domain.L, *self.theta, self.domain.R + 1)
        return edges[index], edges[index + 1] - 1

    def runs(self) -> list[tuple[int, int]]:
        """Return every run, in order."""
        return [self.run(i) for i in range(self.count)]

    def indices(self, x: IntArray) -> IntArray:
        """Return the run of each cell, as :meth:`index` does for one."""
        if self.domain is None:
            return np.floor_divide(x, self.theta)
        cells = np.clip(x, self.domain.L, self.domain.R).astype(np.int64)
        if isinstance(self.theta, int):
            return (cells - self.domain.L) // self.theta
        return np.searchsorted(np.array(self.theta), cells, side="right")

    def ends(self, index: IntArray) -> tuple[IntArray, IntArray]:
        """Return the first and the last cell of each run, as :meth:`run` does for one."""
        if isinstance(self.theta, int):
            first = index * self.theta + (0 if self.domain is None else self.domain.L)
            last = first + self.theta - 1
            return first, last if self.domain is None else np.minimum(last, self.domain.R)
        assert self.domain is not None
        edges = np.array((self.domain.L, *self.theta, self.domain.R + 1))
        return edges[index], edges[index + 1] - 1

    def some_borders(self) -> tuple[int, ...]:
        """Return the first cells of the second and third run, and of the last two."""
        if self.domain is None:
            return ()
        chosen = {1, 2, self.count - 2, self.count - 1}
        return tuple(self.run(i)[0] for i in sorted(chosen) if 1 <= i < self.count)

    @property
    def widest(self) -> int:
        """The number of cells in the widest run."""
        if isinstance(self.theta, int):
            return self.theta
        return max(last - first + 1 for first, last in self.runs())
