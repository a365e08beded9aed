"""Map ordered categories to cells and back, by a declared order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from opboost._typing import IntArray
from opboost.errors import DataError, ParameterError
from opboost.grid.domain import Domain


def checked_categories(categories: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the categories as a tuple of at least two, all different."""
    if isinstance(categories, str):
        raise ParameterError(
            f"Categories must be a list, not the text {categories!r}. Write ['low', 'high']."
        )
    try:
        items = tuple(_checked_category(c) for c in categories)
    except TypeError:
        raise ParameterError(
            f"Categories must be a list; got {categories!r}. Write ['low', 'high']."
        ) from None
    if len(items) < 2:
        raise ParameterError(
            f"A column needs at least two categories; got {list(items)!r}. "
            "Declare all that may occur."
        )
    seen: set[Hashable] = set()
    for item in items:
        if item in seen:
            raise ParameterError(f"Category {item!r} is declared twice. Keep one.")
        seen.add(item)
    return items


def _checked_category(value: object) -> Hashable:
    """Return a plain Python value; NaN becomes None, the category of missing values."""
    plain = value.item() if isinstance(value, np.generic) else value
    if isinstance(plain, float) and plain != plain:
        return None
    if plain is not None and not isinstance(plain, str | int | float | bytes | date):
        raise ParameterError(
            f"A category must be text, a number or a date; got {value!r}. Convert it first."
        )
    return plain


@dataclass(frozen=True, slots=True, init=False)
class Ordered:
    """Categories in a declared, public order, lowest first.

    >>> Ordered(["small", "medium", "large"]).categories
    ('small', 'medium', 'large')
    """

    categories: tuple[Hashable, ...]

    def __init__(self, categories: Iterable[Hashable]) -> None:
        object.__setattr__(self, "categories", checked_categories(categories))


@dataclass(frozen=True, slots=True)
class OrdinalMapping:
    """A map from ordered categories to the cells of a grid, one cell per category.

    >>> size = OrdinalMapping(Domain(1, 3), Ordered(["small", "medium", "large"]))
    >>> size.to_grid(["large", "small"]).tolist(), size.to_raw([2])
    ([3, 1], ['medium'])
    """

    domain: Domain
    order: Ordered

    def __post_init__(self) -> None:
        count = len(self.order.categories)
        if count != self.domain.size:
            raise ParameterError(
                f"{count} ordered categories need a grid of {count} cells; "
                f"got {self.domain.L}..{self.domain.R}. Use Domain(1, {count})."
            )

    def to_grid(self, values: Sequence[Any]) -> IntArray:
        """Return the cell of each category."""
        steps = category_positions(self.order.categories, values)
        grid: IntArray = (self.domain.L + steps).astype(self.domain.dtype())
        return grid

    def to_raw(self, cells: Sequence[int] | IntArray) -> list[Hashable]:
        """Return the category of each cell; cells outside the grid get the one at that end."""
        steps = self.domain.steps(cells)
        return [self.order.categories[step] for step in steps.tolist()]


def category_positions(categories: tuple[Hashable, ...], values: Sequence[Any]) -> IntArray:
    """Return each value's position in ``categories``; refuse an undeclared value."""
    return code_positions(categories, np.arange(len(values)), values)


def code_positions(
    categories: tuple[Hashable, ...],
    codes: IntArray,
    values: Sequence[Any],
    first_row: int = 0,
) -> IntArray:
    """Return each row's position in ``categories``; ``codes`` index the distinct ``values``."""
    position = {category: i for i, category in enumerate(categories)}
    known = np.array(
        [position.get(v, -1) if isinstance(v, Hashable) else -1 for v in values], dtype=np.int64
    )
    steps = known[codes] if len(known) else np.empty(0, dtype=np.int64)
    unknown = np.flatnonzero(steps < 0)
    if unknown.size:
        shown = ", ".join(map(repr, categories[:8])) + (", ..." if len(categories) > 8 else "")
        row = int(unknown[0])
        raise DataError(
            "a category occurs that was not declared",
            detail=f"{unknown.size} of {len(codes)} rows, "
            f"first: {values[int(codes[row])]!r} in row {row + first_row}",
            hint=f"Declared are {shown}. Declare it too, or map those rows to a declared one.",
            row=row + first_row,
        )
    return steps
