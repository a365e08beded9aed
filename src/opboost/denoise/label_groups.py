"""Rows grouped by their label: classes, or bins of a regression's target, and who is near whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import FloatArray, IntArray

MAX_BINS = 32
MIN_ROWS_PER_BIN = 40


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The group of each row, and whether groups are ordered, so that neighbours are alike.

    Bins of a target hold equally many rows; a value that many rows share has a bin of its own.
    """

    of: IntArray
    count: int
    ordered: bool
    cuts: FloatArray | None = None

    @classmethod
    def classes(cls, y: Any, count: int) -> Groups:
        """One group a class."""
        return cls(np.asarray(y).astype(np.int64), count, False)

    @classmethod
    def bins(cls, y: Any) -> Groups:
        """Adaptive bins: at most 32, at least 40 rows each, cut at quantiles.

        >>> Groups.bins(np.arange(1000.0)).count
        25
        """
        target = np.asarray(y, dtype=np.float64)
        count = int(np.clip(len(target) // MIN_ROWS_PER_BIN, 1, MAX_BINS))
        cuts = np.unique(np.quantile(target, np.arange(1, count) / count))
        cuts = cuts[cuts > target.min()] if len(target) else cuts
        return cls(np.searchsorted(cuts, target, side="right"), len(cuts) + 1, True, cuts)

    def place(self, y: Any) -> IntArray:
        """The groups of further rows."""
        if self.cuts is None:
            return np.asarray(y).astype(np.int64)
        return np.searchsorted(self.cuts, np.asarray(y, dtype=np.float64), side="right")

    def kernel(self, width: float) -> FloatArray:
        """``[g, h]``: how much a row of group h counts for group g; ones on the diagonal.

        A Gaussian of this width, in bins; classes know no neighbours.
        """
        if not self.ordered or width <= 0:
            return np.eye(self.count)
        place = np.arange(self.count)
        gap = (place[:, None] - place) / width
        return np.asarray(np.exp(-0.5 * gap**2))
