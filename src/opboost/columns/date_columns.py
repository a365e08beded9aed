"""Columns of dates or times as days since 1970-01-01, in UTC, from any kind of table.

Dates may be ISO 8601 text or the dates and times of Python, numpy, pandas, polars and Arrow.  A
value with a time zone is converted to UTC; one without counts as UTC.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost._typing import FloatArray
from opboost.columns.dataframes import arrow_column, column, is_frame
from opboost.errors import ColumnError, ParameterError
from opboost.grid.dates import MICROSECONDS_PER_DAY, day_number

MISSING_DATE_TEXTS = ("NA", "N/A", "#N/A", "NULL", "null", "None", "NaN", "nan", "-nan", "NaT", "")
"""The texts that mean a missing value."""

_TIME = pa.timestamp("us")
_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


def as_days(table: Any, name: Hashable, first_row: int = 0) -> FloatArray:
    """Return a column as days since 1970-01-01, missing values as NaN; refuse other values.

    >>> as_days(pa.table({"day": ["1970-01-02", None, "1970-01-01T12:00+12:00"]}), "day").tolist()
    [1.0, nan, 0.0]
    """
    if is_frame(table):
        try:
            return _arrow_days(arrow_column(table, name), name, first_row)
        except (pa.ArrowException, TypeError):  # objects of several kinds
            pass
    values = column(table, name)
    if values.dtype.kind == "M":
        return _numpy_days(values)
    return np.array([_day(v, name, first_row + row) for row, v in enumerate(values.tolist())])


def holds_dates(table: Any, name: Hashable) -> bool:
    """Return whether a column has a type of dates or times."""
    if not is_frame(table):
        return bool(column(table, name).dtype.kind == "M")
    try:
        kind = arrow_column(table, name).type
    except (pa.ArrowException, TypeError):
        return False
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def times(text: pa.Array) -> pa.Array:
    """Return ISO 8601 texts as times in UTC; raise ``ArrowInvalid`` if one is not a date."""
    gaps = pc.is_in(text, value_set=pa.array(MISSING_DATE_TEXTS, text.type))
    text = pc.if_else(gaps, pa.scalar(None, text.type), text)
    zoned = pc.fill_null(pc.match_substring_regex(text, _ZONE), False)
    nothing = pa.scalar(None, text.type)
    local = pc.if_else(zoned, nothing, text).cast(_TIME)
    if not pc.any(zoned).as_py():
        return local
    abroad = pc.if_else(zoned, text, nothing).cast(pa.timestamp("us", "UTC"))
    return pc.coalesce(local, abroad.cast(pa.int64()).cast(_TIME))


def _arrow_days(values: pa.Array, name: Hashable, first_row: int) -> FloatArray:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        try:
            values = times(values)
        except pa.ArrowInvalid:
            raise _no_date(name, first_row + _first_bad(values)) from None
    elif pa.types.is_null(kind):
        return np.full(len(values), np.nan)
    elif not (pa.types.is_date(kind) or pa.types.is_timestamp(kind)):
        raise _no_date(name, first_row)
    counted = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False)
    numbers = counted.cast(pa.int64())
    days = numbers.fill_null(0).to_numpy(zero_copy_only=False) / MICROSECONDS_PER_DAY
    return np.where(values.is_null().to_numpy(zero_copy_only=False), np.nan, days)


def _numpy_days(values: np.ndarray[Any, Any]) -> FloatArray:
    days = values.astype("datetime64[us]").astype(np.int64) / MICROSECONDS_PER_DAY
    return np.where(np.isnat(values), np.nan, days)


def _day(value: Any, name: Hashable, row: int) -> float:
    if value is None or value != value or value in MISSING_DATE_TEXTS:
        return np.nan
    if isinstance(value, str):
        return float(_arrow_days(pa.array([value]), name, row)[0])
    try:
        return day_number(value)
    except ParameterError:
        raise _no_date(name, row) from None


def _first_bad(texts: pa.Array) -> int:
    for row, text in enumerate(texts):
        try:
            times(pa.array([text.as_py()], texts.type))
        except pa.ArrowInvalid:
            return row
    return 0


def _no_date(name: Hashable, row: int) -> ColumnError:
    """Return an error that names the row, but never shows the value, which is private."""
    return ColumnError(
        name,
        "has dates as bounds, so it must hold dates",
        detail=f"row {row} does not",
        hint="Write 2024-05-31 or 2024-05-31T18:00+02:00, or leave it empty.",
        row=row,
    )
