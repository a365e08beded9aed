"""The features of an exported model: in the order of the table, by name, in raw units.

Given a table like the training table, a stock library then predicts as OpBoost does, or refuses the
table.  It refuses because a column that becomes several features, or stays in grid values, has a
different name in the model.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import chain, count
from typing import Any, Literal

import numpy as np

from opboost.boosting.booster import Exportable, Matrix, StockFeature
from opboost.columns.dataframes import as_numbers, column
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.errors import ParameterError
from opboost.grid import NumericMapping, RawUnits
from opboost.grid.thresholds import rounded_cut
from opboost.training.column_origins import Origins
from opboost.training.feature_matrix import Layout, OwnColumn

Units = Literal["raw", "grid"]

GUARD = "(grid units)"
"""The name of an unused feature.

It makes a library that does not check names refuse a raw table, which has one column too few.
"""


def stock_features(
    trained: Exportable, layout: Layout, order: Sequence[Hashable], origins: Origins, units: Units
) -> list[StockFeature]:
    """Return the features of the stock model for a table with these columns.

    >>> import opboost as op
    >>> from opboost.boosting.booster import Problem, make_booster
    >>> grid = op.Domain(1, 10)
    >>> age = op.PrivateColumn("age", op.NumericMapping(grid, (17, 90)), op.ClampMap(grid, 1.0))
    >>> layout = Layout((age,), (OwnColumn("pay", None), OwnColumn("city", ("north", "south"))))
    >>> X = np.random.default_rng(0).random((99, 4))
    >>> trained = make_booster("gbdt").train(Problem(X, X[:, 0], "regression"))
    >>> table = ["city", "age", "pay"]
    >>> [f.name for f in stock_features(trained, layout, table, Origins(), "raw")]
    ['city=north', 'city=south', 'age', 'pay']
    >>> [f.name for f in stock_features(trained, layout, table, Origins(), "grid")]
    ['city=north', 'city=south', 'age (grid)', 'pay']
    """
    if units not in ("raw", "grid"):
        raise ParameterError(f"units must be 'grid' or 'raw'; got {units!r}.")
    private, own = {c.name: c for c in layout.private}, {c.name: c for c in layout.own}
    places, place = {}, 0
    for name, width in layout.widths():
        places[name] = place
        place += width
    found: list[StockFeature] = []
    in_cells = False
    for name in order:
        if name in own:
            found += _own(trained, own[name], places[name])
        elif private[name].has_order:
            raw = units == "raw" and has_raw_units(private[name], origins)
            found.append(_ordered(trained, private[name], places[name], raw))
            in_cells |= not raw
        else:
            names = private[name].feature_names()
            found += [StockFeature(text, places[name] + k) for k, text in enumerate(names)]
    if in_cells and len(found) == len(order) and not trained.checks_names:
        found.append(StockFeature(GUARD, None))
    return list(_spelled(trained, found))


def has_raw_units(private: PrivateColumn, origins: Origins) -> bool:
    """Return whether a column's cuts can be stated in the units of a table."""
    return isinstance(private.mapping, NumericMapping) and private.name not in origins.withheld


def _ordered(trained: Exportable, private: PrivateColumn, place: int, raw: bool) -> StockFeature:
    if not raw:
        return StockFeature(f"{private.name} (grid)", place)
    assert isinstance(private.mapping, NumericMapping)
    cut = RawUnits(private.mapping, trained.left_up_to, trained.floats)
    return StockFeature(str(private.name), place, cut, private.cell_of_gaps())


def _own(trained: Exportable, own: OwnColumn, place: int) -> Iterator[StockFeature]:
    """Yield an own column's features; adjust cuts for a library that compares 64-bit floats.

    OpBoost rounds the label party's numbers to 32 bits.
    """
    cut = rounded_cut if trained.floats is np.float64 and own.categories is None else None
    for k, name in enumerate(own.names()):
        yield StockFeature(name, place + k, cut)


def _spelled(trained: Exportable, features: Sequence[StockFeature]) -> Iterator[StockFeature]:
    """Yield the features under unique names that the library allows."""
    taken: set[str] = set()
    for f in features:
        first = trained.spelled(f.name)
        name = next(
            name
            for name in chain([first], (f"{first}_{number}" for number in count(2)))
            if name not in taken
        )
        taken.add(name)
        yield StockFeature(name, f.place, f.cut, f.gap)


def raw_values(
    layout: Layout, origins: Origins, table: Any, prepared: Mapping[Hashable, Prepared]
) -> dict[int, np.ndarray[Any, Any]]:
    """Return the columns that the stock model expects in raw units, by position in our model.

    If a public constant is declared for gaps, it replaces them; reported gaps are NaN.
    """
    found: dict[int, np.ndarray[Any, Any]] = {}
    place = 0
    for private in layout.private:
        if has_raw_units(private, origins):
            cells = prepared[private.name]
            gaps = cells.missing if private.flagged() is not None else False
            found[place] = np.where(gaps, np.nan, cells.raw)
        place += len(private.feature_names())
    for own in layout.own:
        if own.categories is None:
            found[place] = as_numbers(own.name, column(table, own.name))
        place += len(own.names())
    return found


def stock_columns(
    features: Sequence[StockFeature], matrix: Matrix, raw: Mapping[int, np.ndarray[Any, Any]]
) -> dict[str, np.ndarray[Any, Any]]:
    """Return the rows of our matrix in the stock model's form, one column per feature."""
    nothing = np.zeros(len(matrix), dtype=np.uint8)
    return {
        f.name: nothing
        if f.place is None
        else raw[f.place]
        if f.place in raw
        else matrix[:, f.place]
        for f in features
    }
