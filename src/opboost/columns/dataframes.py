"""Convert tables: pandas, polars, Arrow or numpy in, the same kind out."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.errors import ColumnError, DataError


@dataclass(frozen=True, slots=True)
class OutColumn:
    """An output column: its values, and the rows without one."""

    name: Hashable
    values: np.ndarray[Any, Any]
    missing: BoolArray | None = None

    def where(self, rows: BoolArray) -> OutColumn:
        """Return some of the rows."""
        missing = None if self.missing is None else self.missing[rows]
        return OutColumn(self.name, self.values[rows], missing)


def is_frame(table: object) -> bool:
    """Return whether this is a table with named columns (pandas, polars, Arrow, ...).

    Refuse a polars LazyFrame.
    """
    if nw.dependencies.is_polars_lazyframe(table):
        raise DataError(
            "A polars LazyFrame holds no rows yet", hint="Give the table itself: X.collect()."
        )
    try:
        return isinstance(nw.from_native(table, eager_only=True, pass_through=True), nw.DataFrame)
    except nw.exceptions.DuplicateError as error:
        twice = " ".join(str(error).split())
        raise DataError(f"A column name occurs twice in the table: {twice}") from None


def has_index(table: Any) -> bool:
    """Return whether a table's rows have labels other than 0, 1, 2, ..."""
    if not is_frame(table):
        return False
    if not nw.from_native(table, eager_only=True).implementation.is_pandas_like():
        return False
    return not table.index.equals(table.reset_index(drop=True).index)


def column_names(table: Any) -> list[Hashable]:
    """Return the names of a table's columns; a numpy array's are 0, 1, 2, ..."""
    if is_frame(table):
        names: list[Hashable] = list(nw.from_native(table, eager_only=True).columns)
        if any(isinstance(name, tuple) for name in names):
            raise DataError(
                "Tables with several rows of column names are not supported",
                hint="Flatten them first: table.columns = ['_'.join(c) for c in table.columns].",
            )
        return names
    return list(range(np.asarray(table).shape[1]))


def _series(table: Any, name: Any) -> nw.Series[Any]:
    series: nw.Series[Any] = nw.from_native(table, eager_only=True).get_column(name)
    return series


def column(table: Any, name: Hashable) -> np.ndarray[Any, Any]:
    """Return one column as a numpy array; missing values are NaN (numbers) or None (otherwise)."""
    if not is_frame(table):
        position = operator.index(name)  # type: ignore[arg-type]
        return np.asarray(np.take(np.asarray(table), position, axis=1))
    series = _series(table, name)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        small = series.dtype not in (nw.Int128, nw.UInt128)
        if series.dtype.is_integer() and small and not series.is_null().any():
            return np.asarray(series.to_numpy())
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    return np.array(series.to_list(), dtype=object)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A column of categories: each row's position in ``values``, −1 if missing."""

    codes: IntArray
    values: list[Any]

    def __len__(self) -> int:
        return len(self.codes)


def arrow_column(table: Any, name: Hashable) -> Any:
    """Return one column of a table with named columns as an Arrow array."""
    arrow = _series(table, name).to_arrow()
    return arrow.combine_chunks() if hasattr(arrow, "combine_chunks") else arrow


def categories(table: Any, name: Hashable) -> Encoded:
    """Return one column as categories: its distinct values, and each row's position in them."""
    if not is_frame(table):
        return encode(np.asarray(column(table, name), dtype=object))
    arrow = arrow_column(table, name)
    try:
        encoded = arrow if hasattr(arrow, "dictionary") else arrow.dictionary_encode()
    except NotImplementedError:
        raise ColumnError(
            name, f"holds {arrow.type}, which cannot be categories", hint="Convert or drop it."
        ) from None
    codes = encoded.indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return Encoded(codes.astype(np.int64), encoded.dictionary.to_pylist())


def encode(values: np.ndarray[Any, Any]) -> Encoded:
    """Return distinct Python values in order of first occurrence; NaN and NA are missing."""
    seen: dict[Any, int] = {}
    codes = np.empty(len(values), dtype=np.int64)
    for i, value in enumerate(values):
        plain = _plain(value)
        codes[i] = -1 if plain is None else seen.setdefault(plain, len(seen))
    return Encoded(codes, list(seen))


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, float) and value != value
    ):
        return None
    return value


def as_numbers(
    name: Hashable, values: np.ndarray[Any, Any], first_row: int = 0
) -> np.ndarray[Any, Any]:
    """Return the column as integers or floats; refuse text, dates and complex numbers."""
    if values.dtype.kind in "iuf":
        return values
    if values.dtype.kind == "b":
        return values.astype(np.uint8)
    if values.dtype.kind == "O":
        plain = [_plain(v) for v in values]
        for row, value in enumerate(plain):
            if value is not None and not _is_number(value):
                raise _not_a_number(name, first_row + row, value)
        return np.array([np.nan if v is None else float(v) for v in plain])
    raise _not_a_number(name, first_row, values[0] if values.size else values.dtype)


def _is_number(value: object) -> bool:
    if isinstance(value, str | bytes | bytearray):
        return False
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _not_a_number(name: Hashable, row: int, value: object) -> ColumnError:
    return ColumnError(
        name,
        "has bounds, so it must hold numbers",
        detail=f"row {row} holds {value!r}",
        hint="Convert it, or declare its categories instead of bounds.",
        row=row,
    )


def rebuild(table: Any, columns: Sequence[OutColumn | Hashable]) -> Any:
    """Return a table of the same kind as ``table``, with rows numbered from 0.

    A column that is given only by name is kept unchanged.
    """
    if not is_frame(table):
        return stack(table, columns)
    frame = nw.from_native(table, eager_only=True)
    if frame.implementation.is_pandas_like():
        plain = table.reset_index(drop=True)
        values = {
            _name(c): _with_nan(c) if isinstance(c, OutColumn) else _without_masked(plain[c])
            for c in columns
        }
        return type(table)(values, index=plain.index)
    import pyarrow as pa

    arrays = {
        str(_name(c)): (
            pa.array(c.values, mask=c.missing)
            if isinstance(c, OutColumn)
            else _without_hidden(_series(table, c).to_arrow())
        )
        for c in columns
    }
    return nw.from_arrow(pa.table(arrays), backend=frame.implementation).to_native()


def _without_masked(series: Any) -> Any:
    """Return a pandas column, rows numbered from 0, without the values that its mask hides."""
    if isinstance(series.dtype, np.dtype) or not series.isna().any():
        return series
    return series.dropna().reindex(series.index)


def _without_hidden(values: Any) -> Any:
    """Return an Arrow column without the values that its null slots hide."""
    if not values.null_count:
        return values
    import pyarrow as pa

    missing = np.asarray(values.is_null().to_numpy(zero_copy_only=False))
    return values.drop_null().take(pa.array(np.cumsum(~missing) - 1, mask=missing))


def table_like(table: Any, columns: dict[str, np.ndarray[Any, Any]]) -> Any:
    """Return new columns as a table of the same kind as ``table``; a pandas table for an array.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"age": [23, 71]}, index=["ann", "bob"])
    >>> table_like(people, {"adult": np.array([1, 1])}).index.tolist()
    ['ann', 'bob']
    """
    if not is_frame(table):
        return nw.from_dict(columns, backend="pandas").to_native()
    frame = nw.from_native(table, eager_only=True)
    made = nw.from_dict(columns, backend=frame.implementation).to_native()
    return made.set_axis(table.index) if frame.implementation.is_pandas_like() else made


def with_column(table: Any, name: str, values: np.ndarray[Any, Any]) -> Any:
    """Return the table with one more column, as the same kind of table.

    >>> import pandas as pd
    >>> with_column(pd.DataFrame({"age": [23, 71]}), "known", np.array([1, 0]))["known"].tolist()
    [1, 0]
    """
    frame = nw.from_native(table, eager_only=True)
    column = nw.from_native(table_like(table, {name: values}), eager_only=True)[name]
    return frame.with_columns(column).to_native()


def rows_of(table: Any, rows: slice | IntArray) -> Any:
    """Return some rows of a table in the given order, as the same kind of table.

    A slice is not copied if the kind of table allows that.
    """
    if not is_frame(table):
        return np.asarray(table)[rows]
    return nw.from_native(table, eager_only=True)[rows, :].to_native()


def _name(column: OutColumn | Hashable) -> Any:
    return column.name if isinstance(column, OutColumn) else column


def stack(table: Any, columns: Sequence[OutColumn | Hashable]) -> np.ndarray[Any, Any]:
    """Return the columns side by side in one array; missing values make it floating point."""
    return np.column_stack(
        [_with_nan(c) if isinstance(c, OutColumn) else column(table, c) for c in columns]
    )


def in_pandas(values: np.ndarray[Any, Any]) -> Any:
    """Return an array as a pandas table with numbered rows and columns."""
    return nw.from_numpy(values, backend="pandas").to_native()


def _with_nan(column: OutColumn) -> np.ndarray[Any, Any]:
    if column.missing is None:
        return column.values
    return np.where(column.missing, np.nan, column.values)


def hidden(out: OutColumn, gone: BoolArray) -> OutColumn:
    """Return the column with more rows missing; missing rows hold zero, not what was drawn."""
    missing = gone if out.missing is None else out.missing | gone
    return OutColumn(out.name, np.where(missing, out.values.dtype.type(0), out.values), missing)


def only_sent(columns: list[OutColumn], sent: BoolArray | None, place: int) -> list[OutColumn]:
    """Return the released columns of private column ``place``, missing where it is not sent.

    ``sent`` says which columns are sent for each row; None means all.
    """
    return columns if sent is None else [hidden(c, ~sent[:, place]) for c in columns]
