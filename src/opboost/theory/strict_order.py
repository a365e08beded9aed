"""Order preservation in the paper's strict sense."""

from __future__ import annotations

import numpy as np

from opboost._typing import ArrayLike
from opboost.errors import DataError


def is_order_preserving(x: ArrayLike, y: ArrayLike) -> bool:
    """Return whether ``x_i > x_j`` implies ``y_i > y_j`` and ``y_i > y_j`` implies ``x_i >= x_j``.

    Equal x may have different y, but different x must not have equal y.  Cost: O(n log n).

    >>> is_order_preserving([1, 1, 2], [5, 3, 9]), is_order_preserving([1, 1, 2], [5, 3, 4])
    (True, False)
    """
    before, after = np.asarray(x), np.asarray(y)
    if before.shape != after.shape or before.ndim != 1:
        raise DataError(f"x and y must have the same length; got {before.shape} and {after.shape}")
    # The second condition is the contrapositive of the first, with ties allowed.
    order = np.argsort(before, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(before[order]) != 0][: len(order)])
    if len(starts) < 2:
        return True
    smallest = np.minimum.reduceat(after[order], starts)
    largest = np.maximum.reduceat(after[order], starts)
    return bool((smallest[1:] > np.maximum.accumulate(largest)[:-1]).all())
