"""Detect features whose bins need no sketch: those with few, small integers, such as codes."""

from __future__ import annotations

import numpy as np

from opboost._typing import BoolArray
from opboost.boosting.booster import Matrix

MAX_SMALL_INTEGER = 255
"""The largest value that counts as small."""

FIRST_ROWS = 1024
"""The number of rows checked first, so that most other features are ruled out early."""


def value_table(X: Matrix, most: int) -> Matrix | None:
    """Return a short matrix whose columns hold the distinct values of each feature, ascending.

    NaN pads a column; gaps of ``X`` are left out.  Return None if a feature has more than
    ``most`` values, or one that is not an integer from 0 to 255.

    >>> value_table(np.array([[3, 0.0], [np.nan, 1], [5, 1]]), 256).tolist()
    [[3.0, 0.0], [5.0, 1.0]]
    >>> value_table(np.array([[0.5], [1.0]]), 256) is None
    True
    """
    found = []
    for feature in range(X.shape[1]):
        present = _present(X[:, feature])
        if present is None or present.sum() > most:
            return None
        found.append(np.flatnonzero(present))
    table = np.full((max(map(len, found), default=0), len(found)), np.nan, dtype=np.float32)
    for feature, values in enumerate(found):
        table[: len(values), feature] = values
    return table if table.size else None


def _present(column: Matrix) -> BoolArray | None:
    """Return which of 0..255 occur; None if any other value does."""
    present = np.zeros(MAX_SMALL_INTEGER + 1, dtype=np.bool_)
    if column.dtype == np.uint8:
        present[column] = True
        return present
    for part in (column[:FIRST_ROWS], column[FIRST_ROWS:]):
        known = part[~np.isnan(part)] if part.dtype.kind == "f" else part
        if len(known) and not (known.min() >= 0 and known.max() <= MAX_SMALL_INTEGER):
            return None
        codes = known.astype(np.uint8)
        if (codes != known).any():
            return None
        present[codes] = True
    return present
