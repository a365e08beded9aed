"""The border to tables: pandas, polars, Arrow and numpy in, the same kind out."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from opboost._typing import BoolArray
from opboost.errors import ColumnError, DataError


@dataclass(frozen=True, slots=True)
class OutColumn:
    """A column on its way out: values, and the rows that hold none."""

    name: Hashable
    values: np.ndarray[Any, Any]
    missing: BoolArray | None = None


def is_frame(table: object) -> bool:
    """Whether this is a table with named columns (pandas, polars, Arrow, ...)."""
    return isinstance(
        nw.from_native(table, eager_only=True, pass_through=True),
        nw.DataFrame,
    )


def column_names(table: Any) -> list[Hashable]:
    """The names of a table's columns; a numpy array's are 0, 1, 2, ..."""
    if is_frame(table):
        names: list[Hashable] = list(nw.from_native(table, eager_only=True).columns)
        if len(set(names)) < len(names):
            twice = next(n for n in names if names.count(n) > 1)
            raise DataError(f"Column {twice!r} stands twice in the table", hint="Rename one.")
        return names
    return list(range(np.asarray(table).shape[1]))


def column(table: Any, name: Hashable) -> np.ndarray[Any, Any]:
    """One column as a numpy array, missing values as NaN (numbers) or None (anything else)."""
    if not is_frame(table):
        position = operator.index(name)  # type: ignore[arg-type]
        return np.asarray(np.take(np.asarray(table), position, axis=1))
    series = nw.from_native(table, eager_only=True)[name]
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        if series.dtype.is_integer() and not series.is_null().any():
            return np.asarray(series.to_numpy())
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return np.array(series.to_list(), dtype=object)


def as_numbers(name: Hashable, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The column as integers or floats; text, dates and complex numbers are refused."""
    if values.dtype.kind in "iuf":
        return values
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype.kind == "O":
        for row, value in enumerate(values):
            if value is not None and not _is_number(value):
                raise _not_a_number(name, row, value)
        return np.array([np.nan if v is None else v for v in values], dtype=np.float64)
    raise _not_a_number(name, 0, values[0] if values.size else values.dtype)


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return not isinstance(value, str)


def _not_a_number(name: Hashable, row: int, value: object) -> ColumnError:
    return ColumnError(
        name,
        "has bounds, so it must hold numbers",
        detail=f"row {row} holds {value!r}",
        hint="Convert it, or declare its categories instead of bounds.",
    )


def rebuild(table: Any, columns: Sequence[OutColumn]) -> Any:
    """A table of these columns, of the kind of ``table`` and with its index."""
    if not is_frame(table):
        return stack(columns)
    frame = nw.from_native(table, eager_only=True)
    backend = nw.get_native_namespace(frame)
    series = [
        nw.new_series(str(c.name), _with_gaps(c, backend.__name__), backend=backend)
        for c in columns
    ]
    out = frame.select([]).with_columns(*series) if series else frame.select([])
    return nw.maybe_set_index(out, index=nw.maybe_get_index(frame)).to_native()


def _with_gaps(column: OutColumn, backend: str) -> Any:
    if column.missing is None:
        return column.values
    if backend == "pandas":
        return np.where(column.missing, np.nan, column.values)
    gaps = column.missing.tolist()
    return [None if gone else v for v, gone in zip(column.values.tolist(), gaps, strict=True)]


def stack(columns: Sequence[OutColumn]) -> np.ndarray[Any, Any]:
    """The columns side by side in one array; missing values make it floating point."""
    return np.column_stack([_with_gaps(c, "pandas") for c in columns])
