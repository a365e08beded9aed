"""Group rows by class, or by bins of a regression target, with a kernel over nearby groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray

MAX_BINS = 32
MIN_ROWS_PER_BIN = 40


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The group of each row, and whether groups are ordered (neighbouring ones are then similar).

    Bins of a target hold equally many rows; a value that many rows share has a bin of its own.
    ``weight`` says how many rows each row counts for in fits; None if every row counts once.
    """

    of: IntArray
    count: int
    ordered: bool
    cuts: FloatArray | None = None
    weight: FloatArray | None = None

    @classmethod
    def classes(cls, y: Any, count: int, weight: FloatArray | None = None) -> Groups:
        """Make one group per class."""
        return cls(np.asarray(y).astype(_narrow(count)), count, False, None, weight)

    @classmethod
    def bins(cls, y: Any, weight: FloatArray | None = None) -> Groups:
        """Make adaptive bins: at most 32, at least 40 rows each, cut at quantiles.

        >>> Groups.bins(np.arange(1000.0)).count
        25
        """
        target = np.asarray(y, dtype=np.float64)
        count = int(np.clip(len(target) // MIN_ROWS_PER_BIN, 1, MAX_BINS))
        cuts = np.unique(np.quantile(target, np.arange(1, count) / count))
        cuts = cuts[cuts > target.min()] if len(target) else cuts
        place = np.searchsorted(cuts, target, side="right").astype(_narrow(len(cuts) + 1))
        return cls(place, len(cuts) + 1, True, cuts, weight)

    def sizes(self) -> FloatArray:
        """Return the sum of the weights of each group's rows."""
        return np.bincount(self.of, self.weight, minlength=self.count).astype(np.float64)

    def means(self, y: FloatArray) -> FloatArray:
        """Return the mean target of each group; 0 if its rows have no weight."""
        total = np.bincount(self.of, y if self.weight is None else y * self.weight, self.count)
        size = self.sizes()
        return np.divide(total, size, out=np.zeros_like(total), where=size > 0)

    def where(self, rows: IntArray) -> Groups:
        """Select some of the rows, in the same groups."""
        weight = None if self.weight is None else self.weight[rows]
        return replace(self, of=self.of[rows], weight=weight)

    def place(self, y: Any) -> IntArray:
        """Return the groups to which other rows belong, given their labels."""
        if self.cuts is None:
            return np.asarray(y).astype(np.int64)
        return np.searchsorted(self.cuts, np.asarray(y, dtype=np.float64), side="right")

    def kernel(self, width: float) -> FloatArray:
        """Return ``[g, h]``: the weight of a row of group h in the fit of group g; [g, g] is 1.

        The kernel is a Gaussian of this width, in bins.  Classes have no neighbours.
        """
        if not self.ordered or width <= 0:
            return np.eye(self.count)
        place = np.arange(self.count)
        gap = (place[:, None] - place) / width
        return np.asarray(np.exp(-0.5 * gap**2))


def _narrow(groups: int) -> np.dtype[Any]:
    """Return the smallest type that can hold a group: large tables store the group of every row."""
    return np.min_scalar_type(max(0, groups - 1))
