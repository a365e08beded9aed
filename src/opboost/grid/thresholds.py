"""Turn cuts between cells into thresholds on raw values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost.grid.numeric_mapping import NumericMapping


@dataclass(frozen=True, slots=True)
class RawUnits:
    """A map from cuts between cells to thresholds that split raw values as the cuts split cells.

    ``floats`` is the type in which a library compares raw values.
    """

    mapping: NumericMapping
    left_up_to: bool
    floats: type[np.floating[Any]] = np.float32

    def __call__(self, cut: float) -> float:
        """Return the threshold: ``cell < cut`` iff ``raw < self(cut)``.

        With ``left_up_to``, both comparisons are ``<=``.
        """
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
        # A value on an edge is in the cell below it in the paper's mapping, else in the cell above.
        edge_goes_left = self.mapping.mapping == "paper"
        return _threshold(edge, edge_goes_left, self.left_up_to, self.floats)


def rounded_cut(cut: float) -> float:
    """Return the cut that sends 64-bit values left iff ``cut`` sends their 32-bit roundings left.

    A value that equals a cut goes left.

    >>> cut = rounded_cut(0.25)
    >>> 0.25 < cut, np.float32(cut) <= 0.25, np.float32(np.nextafter(cut, 1)) <= 0.25
    (True, np.True_, np.False_)
    """
    last, above = _neighbours(cut, np.float32)
    if float(above) == cut:
        above = np.nextafter(last, np.float32(np.inf))
    if not (np.isfinite(last) and np.isfinite(above)):
        return cut
    middle = (float(last) + float(above)) / 2
    return middle if np.float32(middle) == last else float(np.nextafter(middle, -np.inf))


def _neighbours(value: float, floats: type[np.floating[Any]]) -> tuple[Any, Any]:
    """Return the nearest floats below and above a value; both are the value if it is a float."""
    with np.errstate(over="ignore"):
        near = floats(value)
    below = near if float(near) <= value else np.nextafter(near, floats(-np.inf))
    above = near if float(near) >= value else np.nextafter(near, floats(np.inf))
    return below, above


def _threshold(
    edge: float, edge_goes_left: bool, left_up_to: bool, floats: type[np.floating[Any]]
) -> float:
    """Return the threshold that sends floats left iff they lie below ``edge`` (or on it)."""
    down, up = _neighbours(edge, floats)
    if left_up_to:
        if edge_goes_left or float(down) < edge:
            return float(down)
        return float(np.nextafter(down, floats(-np.inf)))
    return float(np.nextafter(down, floats(np.inf)) if edge_goes_left else up)
