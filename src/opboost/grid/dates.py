"""Dates and times as numbers: days since 1970-01-01, in UTC, on a grid of hours, days or months."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeGuard, get_args

import numpy as np

from opboost._typing import FloatArray, IntArray
from opboost.errors import ParameterError

Unit = Literal["hours", "days", "months"]
UNITS: tuple[str, ...] = get_args(Unit)

MICROSECONDS_PER_DAY = 86_400_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Dates(NamedTuple):
    """Declared bounds of a column of dates or times, both ends included.

    Accepted wherever bounds are.  A plain pair works too: dates then mean days, and times mean
    hours.  Values are rounded down to their ``unit``, the finest step that the grid distinguishes.

    >>> import opboost as op
    >>> from datetime import date
    >>> bounds = op.Dates(date(2024, 1, 1), date(2024, 12, 31), "months")
    >>> joined = op.NumericMapping(op.Domain(1, 4), bounds)
    >>> joined.interval(2), joined.words(joined.interval(2)[0])
    ((19814.0, 19905.0), '2024-04')
    """

    lower: date | np.datetime64
    upper: date | np.datetime64
    unit: Unit = "days"


def is_date(value: object) -> TypeGuard[date | np.datetime64]:
    """Return whether a value is a date or a time of Python, numpy or pandas."""
    return isinstance(value, date | np.datetime64)


def dates_of(bounds: Any) -> Dates | None:
    """Return bounds as dates, or None if they are not dates; refuse a pair with only one date."""
    if isinstance(bounds, Dates):
        return bounds
    try:
        pair = tuple(bounds)
    except TypeError:
        return None
    if not any(map(is_date, pair)):
        return None
    if len(pair) != 2 or not all(map(is_date, pair)):
        raise ParameterError(
            f"Bounds must be two dates or two numbers; got {bounds!r}. Write two dates, in TOML "
            "without quotes: bounds = [1990-01-01, 2025-12-31]."
        )
    return Dates(pair[0], pair[1], "hours" if any(map(_has_time, pair)) else "days")


def _has_time(value: Any) -> bool:
    return day_number(value) % 1 != 0


def day_number(value: date | np.datetime64) -> float:
    """Return the days between 1970-01-01 and a date or time; one without a time zone is UTC.

    >>> day_number(date(1970, 1, 2)), day_number(datetime(1970, 1, 1, 12))
    (1.0, 0.5)
    """
    if isinstance(value, np.datetime64):
        if np.isnat(value):
            raise ParameterError("NaT is not a date. Write a date, 1990-01-01.")
        return float(value.astype("datetime64[us]").astype(np.int64)) / MICROSECONDS_PER_DAY
    if not isinstance(value, date):
        raise ParameterError(f"A date is needed; got {value!r}. Write a date, 1990-01-01.")
    if value != value:  # pandas' NaT
        raise ParameterError("NaT is not a date. Write a date, 1990-01-01.")
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    elif value.tzinfo is None:
        value = value.replace(tzinfo=UTC)
    return (value - _EPOCH) / timedelta(days=1)


def checked_unit(unit: object) -> Unit:
    """Return the unit of a grid of dates."""
    if unit not in UNITS:
        raise ParameterError(f"unit must be 'hours', 'days' or 'months'; got {unit!r}.")
    return unit  # type: ignore[return-value]


def to_units(days: FloatArray, unit: Unit) -> IntArray:
    """Return the full hours, days or months since 1970-01-01; NaN is not allowed.

    >>> to_units(np.array([0.0, 31.5, -0.5]), "months").tolist()
    [0, 1, -1]
    """
    if unit == "hours":
        # Allow for rounding below a microsecond: hours / 24 is not an exact float.
        return np.floor(days * 24 + 1e-9).astype(np.int64)
    whole = np.floor(days).astype(np.int64)
    if unit == "days":
        return whole
    return whole.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def to_days(units: IntArray, unit: Unit) -> FloatArray:
    """Return the days since 1970-01-01 at which an hour, day or month begins."""
    if unit == "hours":
        return np.asarray(units, dtype=np.float64) / 24
    if unit == "days":
        return np.asarray(units, dtype=np.float64)
    months = np.asarray(units, dtype=np.int64).astype("datetime64[M]")
    return months.astype("datetime64[D]").astype(np.float64)


def date_words(days: float, unit: Unit) -> str:
    """Return a number of days as text: the hour, day or month that contains it.

    >>> date_words(19814.5, "hours"), date_words(19814.5, "days"), date_words(-np.inf, "days")
    ('2024-04-01T12', '2024-04-01', '-inf')
    """
    if not np.isfinite(days):
        return str(days)
    kind = {"hours": "datetime64[h]", "days": "datetime64[D]", "months": "datetime64[M]"}[unit]
    return str(to_units(np.array([days]), unit).astype(kind)[0])
