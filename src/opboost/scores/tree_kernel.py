"""Pass rows through trees that are stored as flat arrays."""

from __future__ import annotations

import math

from opboost.runtime.compiling import njit


@njit(cache=True, nogil=True)
def add_leaves(rows, roots, group, feature, cut, left, right, gap_left, value, sums):  # type: ignore[no-untyped-def]
    """Add the leaf value of each tree to its group's sum, for every row.

    A row goes left if its value is below the cut; the node says where a missing value goes.  A
    node without a left child (-1) is a leaf.
    """
    for i in range(rows.shape[0]):
        for t in range(roots.shape[0]):
            node = roots[t]
            while left[node] >= 0:
                found = rows[i, feature[node]]
                if math.isnan(found):
                    node = left[node] if gap_left[node] else right[node]
                else:
                    node = left[node] if found < cut[node] else right[node]
            sums[i, group[t]] += value[node]


@njit(cache=True, nogil=True)
def count_rows(rows, roots, feature, cut, left, right, gap_left, counts):  # type: ignore[no-untyped-def]
    """Add to ``counts`` how many rows pass through each node."""
    for i in range(rows.shape[0]):
        for t in range(roots.shape[0]):
            node = roots[t]
            counts[node] += 1
            while left[node] >= 0:
                found = rows[i, feature[node]]
                if math.isnan(found):
                    node = left[node] if gap_left[node] else right[node]
                else:
                    node = left[node] if found < cut[node] else right[node]
                counts[node] += 1
