"""The window width, chosen from public parameters to reveal the most about smooth distributions.

A booster that is trained on denoised rows learns how the label changes along a column, so broad
shapes matter.  A width is therefore judged by the information of an output about the first few
cosines over the column.  Information about single cells would favour a narrower window, which
says less about shapes.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

COSINES = 3
"""A width is chosen for cosines with one to this many half waves over the column."""

MAX_LEVEL = 30.0
"""Higher levels count as this one, which already hides nothing; their floor may round to zero."""

MAX_CELLS_TRIED = 64
"""On a larger grid, the width for a grid of this size is scaled up."""


def smooth_information(cells: int, total: float, near: float, width: int) -> float:
    """Return the Fisher information of one output about the cosines, around a uniform column.

    Each cosine has variance one, so without noise each would contribute 1.

    >>> [round(smooth_information(32, 4.0, 4.0, width), 2) for width in (0, 1, 2, 3)]
    [1.18, 1.97, 2.11, 2.05]
    """
    reach = width + math.ceil(total / near) - 1
    distance = np.abs(np.arange(cells)[:, None] - np.arange(-reach, cells + reach))
    matrix = np.exp(-np.minimum(near * np.maximum(distance - width, 0), min(total, MAX_LEVEL)))
    matrix /= matrix.sum(axis=1, keepdims=True)
    place = (np.arange(cells) + 0.5) / cells
    wave = np.arange(1, min(COSINES, cells - 1) + 1)
    cosines = math.sqrt(2) * np.cos(math.pi * wave[:, None] * place)
    return float(((cosines @ matrix / cells) ** 2 / matrix.mean(axis=0)).sum())


@lru_cache(maxsize=4096)
def smooth_width(cells: int, total: float, near: float) -> int:
    """Return the width whose outputs carry the most information about smooth distributions.

    >>> [smooth_width(32, total, total) for total in (1.0, 2.0, 4.0)]
    [6, 4, 2]
    >>> [smooth_width(cells, 4.0, 4.0) for cells in (2, 4, 8, 16)]
    [0, 0, 0, 1]
    """
    if cells > MAX_CELLS_TRIED:
        scale = cells / MAX_CELLS_TRIED
        return round(smooth_width(MAX_CELLS_TRIED, total, min(near * scale, total)) * scale)
    information = [smooth_information(cells, total, near, w) for w in range((cells + 1) // 2)]
    return int(np.argmax(information))
