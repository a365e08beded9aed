"""The grid: the integers L..R on which all mechanisms work."""

from __future__ import annotations

import operator
from dataclasses import dataclass

import numpy as np

from opboost._typing import ArrayLike, IntArray
from opboost.errors import ParameterError

MAX_GRID_VALUE = 2**61
"""Grids stay within ± this value, so that sums and differences of grid values fit in 64 bits."""


def checked_domain(value: object) -> Domain:
    """Return the value if it is a grid; refuse anything else."""
    if not isinstance(value, Domain):
        raise ParameterError(f"A grid must be a Domain; got {value!r}. Write op.Domain(1, 10).")
    return value


@dataclass(frozen=True, slots=True)
class Domain:
    """The integers ``L..R``, both ends included.

    >>> grid = Domain(1, 10)
    >>> grid.size, 7 in grid, grid.clamp(12)
    (10, True, 10)
    """

    L: int
    R: int

    def __post_init__(self) -> None:
        for name in ("L", "R"):
            value = getattr(self, name)
            try:
                number = operator.index(value)
            except TypeError:
                raise ParameterError(
                    f"Domain {name} must be an integer; got {value!r}. "
                    "A grid counts cells: write Domain(1, 10), and give raw units as bounds."
                ) from None
            object.__setattr__(self, name, number)
        if self.L >= self.R:
            raise ParameterError(
                f"Domain needs L < R; got L={self.L}, R={self.R}. "
                "One cell cannot tell values apart: write Domain(1, 10)."
            )
        if self.L < -MAX_GRID_VALUE or self.R > MAX_GRID_VALUE:
            raise ParameterError(
                f"Domain must lie within ±2**61; got L={self.L}, R={self.R}. "
                "Use a coarser grid: cells far finer than the noise carry no information."
            )

    @property
    def size(self) -> int:
        """The number of cells, R − L + 1."""
        return self.R - self.L + 1

    @property
    def span(self) -> int:
        """The largest distance on the grid, R − L."""
        return self.R - self.L

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int | np.integer) and self.L <= int(value) <= self.R

    def clamp(self, value: int) -> int:
        """Return the cell nearest to ``value``."""
        try:
            return min(max(operator.index(value), self.L), self.R)
        except TypeError:
            raise ParameterError(f"A grid value must be an integer; got {value!r}.") from None

    def steps(self, cells: ArrayLike) -> IntArray:
        """Return how many cells lie below each of ``cells``, clamped to the grid first."""
        return np.clip(np.asarray(cells, dtype=np.int64), self.L, self.R) - self.L

    def values(self) -> IntArray:
        """Return all cells in order."""
        return np.arange(self.L, self.R + 1)

    def dtype(self) -> np.dtype[np.integer]:
        """Return the narrowest integer type that holds every cell."""
        kinds = (np.uint8, np.uint16, np.uint32) if self.L >= 0 else (np.int8, np.int16, np.int32)
        for kind in kinds:
            limits = np.iinfo(kind)
            if limits.min <= self.L and limits.max >= self.R:
                return np.dtype(kind)
        return np.dtype(np.int64)
