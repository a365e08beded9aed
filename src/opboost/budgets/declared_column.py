"""The declaration of a column whose mechanism a record budget chooses."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any, Literal

from opboost.budgets.planning_rule import DEFAULT_GRID_CELLS, few_values, nominal_column
from opboost.columns.private_column import Flag, PrivateColumn
from opboost.errors import ColumnError, ParameterError
from opboost.grid import Dates, Domain, Integers, NumericMapping, Ordered, OrdinalMapping
from opboost.grid.dates import Unit, dates_of
from opboost.grid.numeric_mapping import Scale, checked_bounds
from opboost.mechanisms import WindowMap
from opboost.mechanisms.window_width import smooth_width


@dataclass(frozen=True, slots=True)
class DeclaredColumn:
    """One private column before its mechanism is chosen: bounds or categories, and settings.

    ``grid`` is an explicit grid, which takes precedence.  ``radius`` is in raw units; for ordered
    categories it counts categories.  ``share`` is a radius as a fraction of the declared range.
    """

    name: Hashable
    bounds: tuple[float, float] | None = None
    categories: tuple[Hashable, ...] | None = None
    ordered: bool = False
    integers: bool = False
    scale: Scale = "linear"
    mapping: Literal["cells", "paper"] = "cells"
    outside: Literal["clamp", "raise"] = "clamp"
    missing: Any = "raise"
    grid: Domain | None = None
    radius: float | None = None
    share: float | None = None
    unit: Unit | None = None
    """The step of a column of dates, whose bounds are days since 1970-01-01."""

    def __post_init__(self) -> None:
        if isinstance(self.missing, Flag):
            raise ColumnError(
                self.name,
                "flags missing values at a separate level, which a record budget does not have",
                hint="Write missing='symbol': missing is then one more value, at no extra cost.",
            )
        if self.radius is None:
            return
        if self.categories is not None and not self.ordered:
            raise ColumnError(
                self.name,
                "has a radius, but categories without an order have no distance",
                hint="Leave the radius out, or declare the order.",
            )
        if self.bounds is not None and self.scale != "linear":
            raise ColumnError(
                self.name,
                f"has a radius in raw units, but a {self._scale_name()} scale, on which equal "
                "raw distances differ",
                hint="Give the radius as a share of the range, or use a linear scale.",
            )
        if not 0 < self.radius <= self.range:
            raise ColumnError(
                self.name,
                f"needs a radius above zero and within its range of {self.range:g}",
                detail=f"got {self.radius!r}",
            )

    @classmethod
    def numeric(cls, name: Hashable, bounds: Any, **declared: Any) -> DeclaredColumn:
        """Return a column of numbers or dates; ``op.Integers`` bounds mean whole numbers."""
        try:
            if (found := dates_of(bounds)) is not None:
                return cls._of_dates(name, found, declared)
            checked = checked_bounds(bounds)
        except ParameterError as error:
            raise ColumnError.of(name, error) from None
        whole = declared.pop("integers", False) or isinstance(bounds, Integers)
        if whole and not all(b.is_integer() for b in checked):
            raise ColumnError(
                name,
                "is declared as whole numbers, but its bounds are not",
                detail=f"got {bounds!r}",
            )
        return cls(name, checked, integers=whole, **declared)

    @classmethod
    def _of_dates(cls, name: Hashable, bounds: Dates, declared: dict[str, Any]) -> DeclaredColumn:
        if declared.pop("integers", False):
            raise ColumnError(
                name,
                "has dates as bounds, which are not whole numbers",
                hint="Leave integers out: unit says how fine the grid is.",
            )
        grid = declared.get("grid") or Domain(1, 2)
        scale = declared.get("scale", "linear")
        if isinstance(scale, tuple):
            grid = Domain(1, len(scale) + 1)
        mapping = declared.get("mapping", "cells")
        made = NumericMapping(grid, bounds, scale, mapping)  # type: ignore[arg-type]
        declared["scale"] = made.scale
        return cls(name, made.bounds, unit=made.unit, **declared)

    @classmethod
    def of_categories(cls, name: Hashable, categories: Any, **declared: Any) -> DeclaredColumn:
        """Return a column of categories, ordered if they are ``op.Ordered``."""
        ordered = isinstance(categories, Ordered)
        try:
            listed = (categories if ordered else Ordered(categories)).categories
        except ParameterError as error:
            raise ColumnError.of(name, error) from None
        return cls(name, categories=listed, ordered=ordered, **declared)

    @property
    def range(self) -> float:
        """The width of the bounds, or the steps between the first and the last category."""
        if self.bounds is None:
            return len(self.categories or ()) - 1
        return float(self.bounds[1]) - float(self.bounds[0])

    @property
    def values(self) -> float:
        """The number of distinct values that the column may have; infinity for real numbers."""
        if self.unit is not None and self.bounds is not None:
            return NumericMapping(Domain(1, 2), self.bounds, unit=self.unit).units
        return self.range + 1 if self.integers else math.inf

    def _scale_name(self) -> str:
        return self.scale if isinstance(self.scale, str) else "broken"

    def column(self, level: float) -> PrivateColumn:
        """Return the private column, with its mechanism at this level."""
        if self.categories is not None and not self.ordered:
            categories = self.categories
            missing = self.missing
            if isinstance(missing, str) and missing == "symbol":  # missing is one more category
                missing = "raise"
                categories = categories if None in categories else (*categories, None)
            return nominal_column(self.name, categories, level, missing)
        if self.categories is not None:
            grid = Domain(1, len(self.categories))
            order = OrdinalMapping(grid, Ordered(self.categories))
            return PrivateColumn(
                self.name, order, self.window(grid, level), self.outside, self.missing
            )
        grid = self.grid or Domain(1, self._cells())
        assert self.bounds is not None
        mapping = NumericMapping(grid, self.bounds, self.scale, self.mapping, self.unit)
        return PrivateColumn(
            self.name, mapping, self.window(grid, level), self.outside, self.missing
        )

    def _cells(self) -> int:
        if isinstance(self.scale, tuple):
            return len(self.scale) + 1
        if few_values(self.values):
            return int(self.values)
        return DEFAULT_GRID_CELLS

    def window(self, grid: Domain, level: float) -> WindowMap:
        """Return the mechanism on a grid: plain LDP, or smaller bounds within the radius."""
        steps = self.radius_in_cells(grid)
        near = None if steps == 1 else level / steps
        width = smooth_width(grid.size, level, near or level)
        return WindowMap(grid, total=level, near=near, width=width, clipped=False)

    def radius_in_cells(self, grid: Domain) -> int:
        """Return the smallest distance at which a pair costs the whole level; 1 is plain LDP."""
        if self.radius is not None:
            cell = self.range / (grid.size if self.bounds is not None else grid.span)
            return max(1, round(self.radius / cell))
        return 1 if self.share is None else max(1, round(self.share * grid.size))

    def raw_radius(self, grid: Domain) -> float | None:
        """Return the radius as rounded to the grid, in raw units or categories; None for plain LDP.

        It is also None on a scale that is not linear, where no single raw distance matches it.
        """
        steps = self.radius_in_cells(grid)
        if steps == 1 or (self.bounds is not None and self.scale != "linear"):
            return None
        return steps * self.range / (grid.size if self.bounds is not None else grid.span)

    def scale_radius(self, grid: Domain) -> float | None:
        """Return the radius as rounded to the grid, as a share of the scale; None for plain LDP."""
        steps = self.radius_in_cells(grid)
        return None if steps == 1 else steps / grid.size

    def with_settings(
        self, cells: int | None, radius: float | None, share: float | None
    ) -> DeclaredColumn:
        """Return the column with the budget's settings; its own settings take precedence."""
        grid = self.grid
        if grid is None and cells is not None and self.bounds is not None:
            if isinstance(self.scale, tuple) and cells != len(self.scale) + 1:
                raise ColumnError(
                    self.name,
                    f"has {len(self.scale)} breakpoints, which make {len(self.scale) + 1} cells",
                    detail=f"got cells = {cells}",
                    hint="Leave cells out.",
                )
            grid = Domain(1, cells)
        own = self.radius if self.radius is not None else radius
        nominal = self.categories is not None and not self.ordered
        return replace(self, grid=grid, radius=own, share=None if nominal or own else share)
