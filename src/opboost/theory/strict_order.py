"""Order preservation in the strict sense of the paper's definition."""

from __future__ import annotations

import numpy as np

from opboost._typing import ArrayLike
from opboost.errors import DataError


def is_order_preserving(x: ArrayLike, y: ArrayLike) -> bool:
    """Whether ``x_i > x_j`` implies ``y_i > y_j`` and ``y_i > y_j`` implies ``x_i >= x_j``.

    Equal x may have different y, different x may not have equal y.  Cost: O(n log n).

    >>> is_order_preserving([1, 1, 2], [5, 3, 9]), is_order_preserving([1, 1, 2], [5, 3, 4])
    (True, False)
    """
    before, after = np.asarray(x), np.asarray(y)
    if before.shape != after.shape or before.ndim != 1:
        raise DataError(f"x and y must be of one length; got {before.shape} and {after.shape}")
    # The second condition is the first one's contraposition, with room for ties.
    order = np.argsort(before, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(before[order]) != 0][: len(order)])
    if len(starts) < 2:
        return True
    smallest = np.minimum.reduceat(after[order], starts)
    largest = np.maximum.reduceat(after[order], starts)
    return bool((smallest[1:] > np.maximum.accumulate(largest)[:-1]).all())
