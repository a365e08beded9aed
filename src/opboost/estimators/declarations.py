"""Turn what a user declares (bounds, categories, mechanisms by column) into private columns."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost.budgets.declared_column import DeclaredColumn
from opboost.columns.dataframes import as_numbers, column
from opboost.columns.private_column import Flag, PrivateColumn
from opboost.errors import ColumnError, ParameterError
from opboost.grid import Domain, NumericMapping, Ordered, OrdinalMapping
from opboost.mechanisms import (
    AdjLaplace,
    DiscreteLaplace,
    Mechanism,
    NominalMechanism,
    registry,
)


@dataclass(frozen=True, slots=True)
class Declarations:
    """The declarations of private columns: each field is one value for all, or a dict by column."""

    mechanism: Any
    bounds: Any = None
    categories: Mapping[Hashable, Any] | None = None
    scale: Any = "linear"
    mapping: Any = "cells"
    outside: Any = "clamp"
    missing: Any = "raise"

    def private_names(self, names: Sequence[Hashable]) -> list[Hashable]:
        """Return the private columns: those with bounds, categories or a mechanism of their own."""
        if self.categories is not None and not isinstance(self.categories, Mapping):
            raise ParameterError(
                f"categories must be a dict by column; got {self.categories!r}. "
                "Write {'city': ['north', 'south']}."
            )
        declared: set[Hashable] = set(self.categories or {})
        for declarations in (self.bounds, self.mechanism):
            if isinstance(declarations, Mapping):
                declared |= set(declarations)
        by_column = (self.scale, self.mapping, self.outside, self.missing)
        for name in declared.union(*(set(d) for d in by_column if isinstance(d, Mapping))):
            if name not in names:
                raise _unknown(name, names)
        for name in self.categories or {}:
            if isinstance(self.bounds, Mapping) and name in self.bounds:
                raise ColumnError(name, "has bounds and categories", hint="Give one of them.")
        if self._for_all_columns():
            return list(names)
        return [name for name in names if name in declared]

    def _for_all_columns(self) -> bool:
        """Return whether one declaration of bounds (a pair, or "infer") is for all columns."""
        return self.bounds is not None and not isinstance(self.bounds, Mapping)

    def column(self, name: Hashable, table: Any) -> tuple[PrivateColumn, bool]:
        """Return one private column, and whether its bounds were taken from the data."""
        mechanism = self._mechanism(name)
        outside = _of(self.outside, name, "clamp")
        missing = _of(self.missing, name, "raise")
        try:
            if isinstance(mechanism, NominalMechanism):
                self._check_same_categories(name, mechanism)
                return PrivateColumn(name, None, mechanism, outside, missing), False
            if self.categories and name in self.categories:
                order = self._order(name, mechanism)
                if order is None:
                    listed = tuple(self.categories[name])
                    if isinstance(missing, Flag) or missing == "symbol":
                        # Without an order, a missing value is one more category, at no extra cost.
                        missing = "raise"
                        listed = listed if None in listed else (*listed, None)
                    unary = nominal(name, mechanism, listed)
                    return PrivateColumn(name, None, unary, outside, missing), False
                grid = Domain(1, len(order.categories))
                mechanism = mechanism.on(grid)
                ordinal = OrdinalMapping(grid, order)
                return PrivateColumn(name, ordinal, mechanism, outside, missing), False
            bounds, inferred = self._bounds(name, table)
        except ParameterError as error:
            raise ColumnError.of(name, error) from None
        try:
            numeric = NumericMapping(
                mechanism.domain,
                bounds,
                _scale(_of(self.scale, name, "linear")),
                _of(self.mapping, name, "cells"),
            )
        except ParameterError as error:
            if inferred:  # the error's message shows the bounds, which are not public
                raise ColumnError(
                    name, "cannot be set up with bounds from the data", detail=str(error)
                ) from None
            raise ColumnError.of(name, error) from None
        return PrivateColumn(name, numeric, mechanism, outside, missing), inferred

    def declared_column(self, name: Hashable, table: Any) -> tuple[DeclaredColumn, bool]:
        """Return one column before its mechanism is chosen, and whether its bounds were inferred.

        This is for a record budget, which chooses the mechanisms itself.
        """
        outside, missing = _of(self.outside, name, "clamp"), _of(self.missing, name, "raise")
        if self.categories and name in self.categories:
            found = DeclaredColumn.of_categories(name, self.categories[name], missing=missing)
            return found, False
        bounds, inferred = self._bounds(name, table)
        return (
            DeclaredColumn.numeric(
                name,
                bounds,
                scale=_scale(_of(self.scale, name, "linear")),
                mapping=_of(self.mapping, name, "cells"),
                outside=outside,
                missing=missing,
            ),
            inferred,
        )

    def _mechanism(self, name: Hashable) -> Mechanism | NominalMechanism:
        mechanism = self.mechanism
        if isinstance(mechanism, Mapping):
            if name not in mechanism:
                raise ColumnError(
                    name, "has no mechanism", hint=f"Add {name!r} to the dict of mechanisms."
                )
            mechanism = mechanism[name]
        if not isinstance(mechanism, Mechanism | NominalMechanism):
            raise ColumnError(
                name,
                "needs a mechanism",
                detail=f"got {mechanism!r}",
                hint="State what may be revealed about one person, budget=op.Budget.record(4), or "
                "give a mechanism, op.ClampMap(op.Domain(1, 10), epsilon=0.64).",
            )
        if isinstance(mechanism, DiscreteLaplace | AdjLaplace):
            raise ColumnError(
                name,
                f"cannot go through {type(mechanism).__name__}, which has no grid",
                hint="Use op.ClampMap or op.AdjMap, or call the mechanism's sample yourself.",
            )
        return mechanism

    def _order(self, name: Hashable, mechanism: Mechanism) -> Ordered | None:
        """Return the order of the categories, or None if a nominal column needs unary encoding."""
        categories = (self.categories or {})[name]
        if isinstance(categories, Ordered):
            return categories
        if not registry.is_by_distance(mechanism):
            return Ordered(categories)  # all pairs are equally protected: any order will do
        return None

    def _check_same_categories(self, name: Hashable, mechanism: NominalMechanism) -> None:
        declared = (self.categories or {}).get(name)
        if declared is not None and tuple(declared) != mechanism.categories:
            raise ColumnError(
                name,
                f"has other categories than its {type(mechanism).__name__}",
                detail=f"{list(declared)!r} against {list(mechanism.categories)!r}",
                hint="Declare them once, in the mechanism.",
            )

    def _bounds(self, name: Hashable, table: Any) -> tuple[tuple[float, float], bool]:
        bounds = self.bounds.get(name) if isinstance(self.bounds, Mapping) else self.bounds
        if bounds is None:
            raise no_bounds(name)
        if isinstance(bounds, str):
            if bounds != "infer":
                raise ColumnError(
                    name,
                    f"has bounds {bounds!r}",
                    hint="Write (lower, upper), or 'infer' to reveal the column's extremes.",
                )
            return _inferred(name, table), True
        return bounds, False


def nominal(name: Hashable, mechanism: Mechanism, categories: Any) -> NominalMechanism:
    """Return unary encoding for a nominal column, at the level of a distance-based mechanism."""
    epsilon = mechanism.nominal_epsilon()
    if epsilon is None:
        raise ColumnError(
            name,
            f"has categories without an order, which {type(mechanism).__name__} cannot protect: "
            "it protects by distance",
            hint=f"Give the column op.UnaryEncoding({list(categories)!r}, epsilon=...), or declare "
            f"the order, op.Ordered({list(categories)!r}).",
        )
    return registry.build_nominal(registry.DEFAULT_NOMINAL_KIND, categories, epsilon=epsilon)


def no_bounds(name: Hashable) -> ColumnError:
    """Return the error for a column about which nothing was declared."""
    return ColumnError(
        name,
        "has no bounds: taking them from the data would reveal its extremes",
        hint=f"Add bounds={{{name!r}: (lower, upper)}}, or bounds='infer' if that is no secret.",
    )


def _inferred(name: Hashable, table: Any) -> tuple[float, float]:
    values = as_numbers(name, column(table, name)).astype(np.float64)
    finite = values[np.isfinite(values)]
    if not finite.size:
        raise ColumnError(name, "holds no finite number, so no bounds can be inferred")
    lower, upper = float(finite.min()), float(finite.max())
    # A constant column needs two different bounds, too: its value becomes the lower one.
    return (lower, upper) if lower < upper else (lower, lower + max(1.0, abs(lower)))


def _of(declared: Any, name: Hashable, default: Any) -> Any:
    return declared.get(name, default) if isinstance(declared, Mapping) else declared


def _scale(scale: Any) -> Any:
    if isinstance(scale, str) or not hasattr(scale, "__iter__"):
        return scale
    return tuple(scale)


def _unknown(name: Hashable, names: Sequence[Hashable]) -> ColumnError:
    near = difflib.get_close_matches(str(name), map(str, names), n=1)
    guess = (
        f"Did you mean {near[0]!r}?" if near else f"The table has {', '.join(map(repr, names))}."
    )
    return ColumnError(name, "is declared but not in the table", hint=guess)
