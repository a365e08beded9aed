"""Map raw numbers to cells in one pass."""

from __future__ import annotations

import math

import numpy as np

from opboost.runtime.compiling import njit


@njit(cache=True, nogil=True)
def find_cells(raw, edges, logarithmic, right_closed, first, out):  # type: ignore[no-untyped-def]
    """Write the cell of each value to ``out``.

    The value's share of the range gives a first guess, which the increasing edges correct.  Cell k
    lies between edge k and edge k + 1, or ends at edge k if ``right_closed``, as in the paper.
    Return how many values are NaN (they get the first cell), infinite, and outside.
    """
    count = edges.shape[0] - 1
    lower, upper = edges[0], edges[count]
    top = count if right_closed else count - 1
    if logarithmic:
        base, factor = math.log(lower), count / (math.log(upper) - math.log(lower))
    else:
        base, factor = lower, count / (upper - lower)
    missing, infinite, outside = 0, 0, 0
    for i in range(raw.shape[0]):
        value = raw[i]
        if math.isnan(value):
            missing += 1
            out[i] = first
            continue
        infinite += math.isinf(value)
        outside += (value < lower) | (value > upper)
        value = min(max(value, lower), upper)
        share = ((math.log(value) if logarithmic else value) - base) * factor
        step = min(max(np.int64(share), 0), top)
        if right_closed:
            while step < top and value > edges[step]:
                step += 1
            while step > 0 and value <= edges[step - 1]:
                step -= 1
        else:
            while step < top and value >= edges[step + 1]:
                step += 1
            while step > 0 and value < edges[step]:
                step -= 1
        out[i] = first + step
    return missing, infinite, outside
