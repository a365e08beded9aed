"""Cuts between cells as thresholds of raw values."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opboost.grid.numeric_mapping import NumericMapping


@dataclass(frozen=True, slots=True)
class RawUnits:
    """A cut in grid values to one in raw units that parts 32-bit raw values in the same way."""

    mapping: NumericMapping
    left_up_to: bool

    def __call__(self, cut: float) -> float:
        """``cell < cut`` iff ``raw < self(cut)``; with ``left_up_to`` both with ``<=``."""
        if not np.isfinite(cut):
            return cut
        cell = int(np.ceil(cut)) + (1 if self.left_up_to and cut == int(cut) else 0)
        domain = self.mapping.domain
        if cell <= domain.L:
            return -np.inf
        if cell > domain.R:
            return np.inf
        left, right = self.mapping.interval(cell - 1)[1], self.mapping.interval(cell)[0]
        edge = left if self.mapping.mapping == "paper" else right
        # A paper cell ends with its edge, a true cell begins with it: rows on the edge differ.
        edge_goes_left = self.mapping.mapping == "paper"
        return _threshold(edge, edge_goes_left, self.left_up_to)


def _threshold(edge: float, edge_goes_left: bool, left_up_to: bool) -> float:
    """The threshold that sends 32-bit values left iff they lie below ``edge`` (or on it)."""
    near = np.float32(edge)
    down = near if float(near) <= edge else np.nextafter(near, np.float32(-np.inf))
    up = near if float(near) >= edge else np.nextafter(near, np.float32(np.inf))
    if left_up_to:
        last = (
            down
            if edge_goes_left or float(down) < edge
            else np.nextafter(down, -np.float32(np.inf))
        )
        return float(last)
    first = np.nextafter(down, np.float32(np.inf)) if edge_goes_left else up
    return float(first)
