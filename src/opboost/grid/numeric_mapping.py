"""Map numbers to cells and back, by declared bounds.

A mapping is an increasing list of edges in raw units, one more than there are cells.  Bounds and
breakpoints are public: they travel with every release.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from opboost._typing import ArrayLike, BoolArray, FloatArray, IntArray
from opboost.errors import DataError, ParameterError
from opboost.grid import dates
from opboost.grid.cells_kernel import find_cells
from opboost.grid.domain import Domain, checked_domain

Scale = Literal["linear", "log"] | tuple[float, ...]

MAX_TABLED_CELLS = 65_536
"""Up to this many cells, the edges are kept in a table."""


@dataclass(frozen=True, slots=True)
class NumericMapping:
    """A map from raw numbers to grid cells: ``to_grid(v) == g`` iff ``v`` lies in ``interval(g)``.

    ``mapping="cells"`` divides the range into cells of equal width, half open ``[a, b)``, the last
    one closed.  ``mapping="paper"`` is the ceiling of the paper's function B, half open ``(a, b]``,
    where cell L contains only the lower bound itself; it is kept for reproductions.

    ``scale`` is the scale on which cells have equal widths (``"linear"`` or ``"log"``), or a tuple
    of public breakpoints, one fewer than there are cells.

    If the bounds are dates (:class:`Dates`), raw values are days since 1970-01-01, and every edge
    lies on a whole ``unit``: an hour, a day or a month.

    >>> age = NumericMapping(Domain(1, 10), bounds=(20, 70))
    >>> age.to_grid([20, 24.9, 25, 70]).tolist()
    [1, 1, 2, 10]
    >>> age.interval(2), float(age.to_raw([2])[0])
    ((25.0, 30.0), 27.5)
    """

    domain: Domain
    bounds: tuple[float, float]
    scale: Scale = "linear"
    mapping: Literal["cells", "paper"] = "cells"
    unit: dates.Unit | None = None

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        self._settle_dates()
        lower, upper = checked_bounds(self.bounds)
        object.__setattr__(self, "bounds", (lower, upper))
        if self.mapping not in ("cells", "paper"):
            raise ParameterError(
                f"mapping must be 'cells' or 'paper'; got {self.mapping!r}. "
                "Use 'cells' unless you compare with the paper."
            )
        if isinstance(self.scale, str) or not isinstance(self.scale, tuple | list):
            self._check_named_scale(self.scale, lower)
        else:
            object.__setattr__(self, "scale", self._checked_breakpoints(self.scale))
        self._check_dates()
        self._check_resolution()

    def _settle_dates(self) -> None:
        """Convert bounds and breakpoints that are dates to days, rounded down to their unit."""
        found = dates.dates_of(self.bounds)
        if found is not None:
            object.__setattr__(self, "unit", self.unit or found.unit)
            days = tuple(dates.day_number(b) for b in (found.lower, found.upper))
            object.__setattr__(self, "bounds", days)
        if self.unit is None:
            return
        unit = dates.checked_unit(self.unit)
        bounds = np.array(checked_bounds(self.bounds))
        lower, upper = dates.to_days(dates.to_units(bounds, unit), unit).tolist()
        object.__setattr__(self, "bounds", (lower, upper))
        if isinstance(self.scale, tuple | list):
            given: tuple[Any, ...] = tuple(self.scale)
            points = tuple(dates.day_number(p) if dates.is_date(p) else p for p in given)
            object.__setattr__(self, "scale", points)

    def _check_dates(self) -> None:
        if self.unit is None:
            return
        if self.scale == "log" or self.mapping == "paper":
            wrong = "scale='log'" if self.scale == "log" else "mapping='paper'"
            raise ParameterError(f"{wrong} has no meaning for dates. Leave it out.")
        if not isinstance(self.scale, tuple) and self.domain.size > self.units:
            raise ParameterError(
                f"The bounds span {self.units} {self.unit}, which is fewer than the "
                f"{self.domain.size} cells of the grid. Use at most {self.units} cells, or a finer "
                "unit."
            )

    @property
    def units(self) -> int:
        """The number of hours, days or months within the bounds, both ends included."""
        assert self.unit is not None
        first, last = dates.to_units(np.array(self.bounds), self.unit).tolist()
        return int(last - first + 1)

    def words(self, raw: float) -> str:
        """Return a raw value as readable text: a date if the bounds are dates."""
        return f"{raw:g}" if self.unit is None else dates.date_words(raw, self.unit)

    def _check_named_scale(self, scale: str, lower: float) -> None:
        if scale not in ("linear", "log"):
            raise ParameterError(
                f"scale must be 'linear', 'log' or a list of breakpoints; got {scale!r}."
            )
        if scale == "log" and lower <= 0:
            raise ParameterError(
                f"scale='log' needs bounds above zero; got a lower bound of {lower!r}. "
                "Raise the lower bound, shift the column, or give breakpoints."
            )

    def _checked_breakpoints(self, scale: tuple[float, ...]) -> tuple[float, ...]:
        if self.mapping == "paper":
            raise ParameterError(
                "mapping='paper' has no breakpoints: its cells follow from the bounds. "
                "Drop mapping='paper', or the breakpoints."
            )
        try:
            points = tuple(float(p) for p in scale)
        except (TypeError, ValueError):
            raise ParameterError(
                f"scale must be 'linear', 'log' or a list of breakpoints; got {scale!r}."
            ) from None
        if len(points) != self.domain.size - 1:
            raise ParameterError(
                f"{self.domain.size} cells need {self.domain.size - 1} breakpoints between them; "
                f"got {len(points)}. Give that many, or a grid of {len(points) + 1} cells."
            )
        edges = (self.bounds[0], *points, self.bounds[1])
        for left, right in pairwise(edges):
            if not left < right:
                raise ParameterError(
                    "Breakpoints must increase strictly between the bounds "
                    f"{self.bounds[0]!r} and {self.bounds[1]!r}; {right!r} follows {left!r}."
                )
        return points

    def _check_resolution(self) -> None:
        last = self._count()
        probe = np.array([0, 1, last // 2, last // 2 + 1, last - 1, last])
        edges = self._edge(probe)
        if not (edges[0] < edges[1] and edges[2] < edges[3] and edges[4] < edges[5]):
            raise ParameterError(
                f"Bounds {self.bounds!r} cannot be told apart in {self.domain.size} cells: "
                "neighbouring edges are the same 64-bit float. Use a coarser grid."
            )

    def _count(self) -> int:
        """Return how many steps divide the range: one per cell, or one fewer for the paper's B."""
        return self.domain.size if self.mapping == "cells" else self.domain.span

    def _edge(self, index: IntArray) -> FloatArray:
        """Return the raw value of edge ``index``; edge 0 is the lower bound, the last the upper."""
        lower, upper = self.bounds
        count = self._count()
        if isinstance(self.scale, tuple):
            edges: FloatArray = np.array((lower, *self.scale, upper))[index]
            return edges
        if self.unit is not None:
            first = dates.to_units(np.array(lower), self.unit)
            offset = self.units * np.clip(index, 0, count).astype(np.int64) // count
            return dates.to_days(first + offset, self.unit)
        share = np.asarray(index, dtype=np.float64) / count
        if self.scale == "log":
            raw = np.exp(math.log(lower) + (math.log(upper) - math.log(lower)) * share)
        else:
            raw = lower + (upper - lower) * share
        inner = np.clip(raw, lower, upper)
        return np.where(index <= 0, lower, np.where(index >= count, upper, inner))

    def outside(self, values: ArrayLike) -> BoolArray:
        """Return which values lie outside the bounds."""
        raw = self._rounded(np.asarray(values, dtype=np.float64))
        return (raw < self.bounds[0]) | (raw > self.bounds[1])

    def to_grid(self, values: ArrayLike) -> IntArray:
        """Return the cell of each value; a value outside the bounds gets the cell at that end."""
        raw = np.asarray(values, dtype=np.float64)
        cells, missing, _, _ = self.scan(raw.reshape(-1))
        if missing:
            raise DataError(
                "NaN has no cell",
                detail=f"{missing} found",
                hint="Fill in the missing values, or choose a policy for them.",
            )
        return cells.reshape(raw.shape)

    def scan(self, raw: FloatArray) -> tuple[IntArray, int, int, int]:
        """Return the cells, and how many values are NaN, infinite, and outside the bounds."""
        out = np.empty(len(raw), dtype=self.domain.dtype())
        closed = self.mapping == "paper"
        raw = self._rounded(raw)
        tabled = self.unit is None and not isinstance(self.scale, tuple)
        if tabled and self._count() <= MAX_TABLED_CELLS:
            edges = self._edge(np.arange(self._count() + 1))
            counts = find_cells(raw, edges, self.scale == "log", closed, self.domain.L, out)
            return (out, *counts)
        missing = np.isnan(raw)
        filled = np.clip(np.where(missing, self.bounds[0], raw), *self.bounds)
        out[:] = self.domain.L + self._step(filled)
        beyond = int(self.outside(raw).sum())
        return out, int(missing.sum()), int(np.isinf(raw).sum()), beyond

    def _rounded(self, raw: FloatArray) -> FloatArray:
        """Round dates down to their unit, so that a time on the last day lies within the bounds."""
        if self.unit is None:
            return raw
        rounded = raw.copy()
        there = np.isfinite(raw)
        rounded[there] = dates.to_days(dates.to_units(raw[there], self.unit), self.unit)
        return rounded

    def _step(self, raw: FloatArray) -> IntArray:
        """Return how many cells lie below the cell of each value, without the table of edges."""
        if isinstance(self.scale, tuple):
            return np.searchsorted(np.array(self.scale), raw, side="right")
        if self.unit is not None:
            first = dates.to_units(np.array(self.bounds[0]), self.unit)
            passed = dates.to_units(raw, self.unit) - first + 1
            return (passed * self._count() - 1) // self.units
        count = self._count()
        right_closed = self.mapping == "paper"
        lower, upper = self.bounds
        if self.scale == "log":
            share = (np.log(raw) - math.log(lower)) / (math.log(upper) - math.log(lower))
        else:
            share = (raw - lower) / (upper - lower)
        guess = np.ceil(share * count) if right_closed else np.floor(share * count)
        top = count if right_closed else count - 1
        step = np.clip(guess, 0, top).astype(np.int64)
        # Near an edge, rounding may make the guess wrong by one or two; the edges decide.
        for _ in range(2):
            if right_closed:
                step += (step < top) & (raw > self._edge(step))
                step -= (step > 0) & (raw <= self._edge(step - 1))
            else:
                step += (step < top) & (raw >= self._edge(step + 1))
                step -= (step > 0) & (raw < self._edge(step))
        return step

    def interval(self, cell: int) -> tuple[float, float]:
        """Return the range of raw values that ``cell`` covers, as (from, to)."""
        if cell not in self.domain:
            raise ParameterError(
                f"Cell {cell} is outside the grid {self.domain.L}..{self.domain.R}."
            )
        index = np.array([cell - self.domain.L])
        if self.mapping == "cells":
            return float(self._edge(index)[0]), float(self._edge(index + 1)[0])
        return float(self._edge(np.maximum(index - 1, 0))[0]), float(self._edge(index)[0])

    def to_raw(self, cells: ArrayLike) -> FloatArray:
        """Return a raw value per cell: the middle of its interval, or B's inverse for ``"paper"``.

        Cells outside the grid get the raw value at that end.
        """
        step = self.domain.steps(cells)
        if self.mapping == "paper":
            return self._edge(step)
        left, right = self._edge(step), self._edge(step + 1)
        if self.scale == "log":
            return np.sqrt(left) * np.sqrt(right)
        return left + (right - left) / 2


def checked_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds as two finite numbers, the lower one first."""
    try:
        lower, upper = (float(b) for b in bounds)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(
            f"Bounds must be two numbers (lower, upper); got {bounds!r}. Write (17, 90)."
        ) from None
    if not (math.isfinite(lower) and math.isfinite(upper)):
        raise ParameterError(
            f"Bounds must be finite; got ({lower!r}, {upper!r}). "
            "Declare the widest values that make sense; values beyond them are clamped."
        )
    if lower >= upper:
        step = (
            "A column with one possible value carries no information: leave it out."
            if lower == upper
            else f"Did you mean ({upper!r}, {lower!r})?"
        )
        raise ParameterError(f"Bounds need lower < upper; got ({lower!r}, {upper!r}). {step}")
    if not math.isfinite(upper - lower):  # both are finite, but their difference is not
        raise ParameterError(f"Bounds ({lower!r}, {upper!r}) are too far apart for 64-bit floats.")
    return lower, upper
