"""Budgets: the most that is spent on one person's record, and its split over the columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from opboost._typing import BoolArray, FloatArray, Words
from opboost.errors import ParameterError
from opboost.randomness.streams import Rng, default_rng

Task = Literal["classify", "regress"]

MIN_PILOT_ROWS = 1_000
"""A pilot of fewer people reveals too little about which columns are informative."""

CHUNK_ROWS = 2**14
"""Columns are chosen for this many rows at a time, so that sorting takes little memory."""


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on what one person's record may reveal, or a split of a level over the columns.

    * ``Budget.record(4)`` states the most that is revealed about one person; mechanisms, grids and
      the number of columns per row follow from it;
    * ``Budget.even()`` gives each of r columns 1/r of the level;
    * ``Budget.weighted({"age": 2, "income": 1})`` gives 2/3 and 1/3;
    * ``Budget.sampled(k)`` releases k columns of each row, each at 1/k of the level.  They are
      chosen at random, independently of the data; the others are missing in the release.

    >>> Budget.weighted({"age": 2, "income": 1}).shares(["age", "income"])
    {'age': 0.6666666666666666, 'income': 0.3333333333333333}
    """

    weights: Mapping[Any, float] | None = None
    columns_per_row: int | None = None

    def __post_init__(self) -> None:
        if self.weights is not None and self.columns_per_row is not None:
            raise ParameterError("Budget takes weights or columns_per_row, not both.")
        for name, weight in (self.weights or {}).items():
            if not isinstance(weight, int | float) or not 0 < weight < float("inf"):
                raise ParameterError(f"The weight of {name!r} must be above zero; got {weight!r}.")
        if self.columns_per_row is not None and (
            not isinstance(self.columns_per_row, int)
            or isinstance(self.columns_per_row, bool)
            or self.columns_per_row < 1
        ):
            raise ParameterError(
                f"columns_per_row must be a whole number, 1 or more; got {self.columns_per_row!r}."
            )

    @staticmethod
    def record(
        total: float,
        radius: float | Mapping[Any, float] | None = None,
        *,
        rows: int | None = None,
        columns_per_row: int | None = None,
        cells: int | Mapping[Any, int] | None = None,
        weights: Mapping[Any, float] | None = None,
        task: Task | None = None,
        pilot: float = 0.0,
    ) -> RecordBudget:
        """Return a budget that caps what is revealed about one person, over all columns.

        Args:
            total: Replacing a person's record with any other changes the probability of any
                output of the planned columns by a factor of at most e**total.  This also covers
                which values are missing.
            radius: A distance: a share of each column's declared range, or a dict by column in raw
                units.  Values closer than this have a smaller privacy loss, in proportion to their
                distance.  None means plain LDP.
            rows: The number of people, as you declare it; OpBoost does not count rows.
            columns_per_row: How many columns are sent for each person; chosen if not given.
            cells: The grid size of numeric columns, one number or a dict; chosen if not given.
            weights: How likely each column is to be sent for a person, relative to the others.
            task: ``"classify"`` or ``"regress"``, if known.
            pilot: The share of people whose columns are released first, to show which columns are
                informative.  Among all other people, informative columns are then sent more often.

        >>> Budget.record(4, radius={"age": 10}).total
        4.0
        """
        return RecordBudget(
            weights=None if weights is None else dict(weights),
            columns_per_row=columns_per_row,
            total=total,
            radius=dict(radius) if isinstance(radius, Mapping) else radius,
            cells=dict(cells) if isinstance(cells, Mapping) else cells,
            rows=rows,
            task=task,
            pilot=pilot,
        )

    @classmethod
    def even(cls) -> Budget:
        """Return a budget with the same share for every column."""
        return cls()

    @classmethod
    def weighted(cls, weights: Mapping[Any, float]) -> Budget:
        """Return a budget with shares proportional to ``weights``."""
        return cls(weights=dict(weights))

    @classmethod
    def sampled(cls, columns_per_row: int) -> Budget:
        """Return a budget that sends few columns per row, each with a larger share."""
        return cls(columns_per_row=columns_per_row)

    def __hash__(self) -> int:
        weights = None if self.weights is None else tuple(self.weights.items())
        return hash((weights, self.columns_per_row))

    def shares(self, columns: Sequence[Hashable]) -> dict[Hashable, float]:
        """Return each column's share of the level; those released for one row sum to one."""
        if self.columns_per_row is not None:
            if self.columns_per_row > len(columns):
                raise ParameterError(
                    f"columns_per_row is {self.columns_per_row}, but there are "
                    f"{len(columns)} private columns."
                )
            return dict.fromkeys(columns, 1 / self.columns_per_row)
        if self.weights is None:
            return dict.fromkeys(columns, 1 / len(columns))
        for name in columns:
            if name not in self.weights:
                raise ParameterError(f"Column {name!r} has no weight. Add it to Budget.weighted.")
        total = sum(self.weights[name] for name in columns)
        return {name: self.weights[name] / total for name in columns}

    def drawn(self, rows: int, columns: int, rng: Rng | None = None) -> BoolArray:
        """Return which columns are released for each row: random ones, independent of the data."""
        sent = columns_sent(self, lambda: cell_words(rows, columns, rng))
        return np.ones((rows, columns), dtype=np.bool_) if sent is None else sent


@dataclass(frozen=True, slots=True)
class RecordBudget(Budget):
    """The most that one party reveals about one person; made by :meth:`Budget.record`.

    The plan chooses ``columns_per_row`` and ``cells`` if they are not given.  ``weights`` say how
    likely each column is to be sent for a person.
    """

    total: float = math.nan
    radius: float | Mapping[Any, float] | None = None
    cells: int | Mapping[Any, int] | None = None
    rows: int | None = None
    task: Task | None = None
    pilot: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "total", checked_total(self.total))
        if self.rows is not None and not _is_count(self.rows):
            raise ParameterError(
                f"rows, the declared size of the table, must be a whole number, 1 or more; "
                f"got {self.rows!r}."
            )
        if self.task not in (None, "classify", "regress"):
            raise ParameterError(f"task must be 'classify' or 'regress'; got {self.task!r}.")
        if self.columns_per_row is not None and not _is_count(self.columns_per_row):
            raise ParameterError(
                f"columns_per_row must be a whole number, 1 or more; got {self.columns_per_row!r}."
            )
        for name, cells in self._by_column(self.cells):
            if not _is_count(cells) or cells < 2:
                of = "" if name is None else f" of {name!r}"
                raise ParameterError(
                    f"cells{of} must be a whole number, 2 or more; got {cells!r}. Leave it out to "
                    "let OpBoost choose it."
                )
        for name, weight in (self.weights or {}).items():
            if not _is_positive(weight):
                raise ParameterError(f"The weight of {name!r} must be above zero; got {weight!r}.")
        self._check_radius()
        self._check_pilot()

    def _check_radius(self) -> None:
        for name, radius in self._by_column(self.radius):
            of = "" if name is None else f" of {name!r}"
            if not _is_positive(radius):
                raise ParameterError(
                    f"radius{of} must be above zero; got {radius!r}. Leave it out for plain LDP."
                )
            if name is None and radius > 1:
                raise ParameterError(
                    f"radius is a share of each column's declared range, at most 1; got "
                    f"{radius!r}. In raw units write radius={{'age': 10}}."
                )

    def _check_pilot(self) -> None:
        if isinstance(self.pilot, bool) or not isinstance(self.pilot, int | float):
            raise ParameterError(
                f"pilot must be a share, 0 or more and below 1; got {self.pilot!r}."
            )
        if not 0 <= self.pilot < 1:
            raise ParameterError(
                f"pilot is the share of people whose columns are released first, 0 or more and "
                f"below 1; got {self.pilot!r}."
            )
        if self.rows is not None:
            self.check_pilot_rows(self.rows)

    def check_pilot_rows(self, rows: int) -> None:
        """Refuse a pilot that is too small, with ``rows`` people in all, to show what matters."""
        if self.pilot and self.pilot * rows < MIN_PILOT_ROWS:
            raise ParameterError(
                f"A pilot of {self.pilot:g} of {rows:,} people has {self.pilot * rows:,.0f}, "
                f"too few to tell columns apart; it needs {MIN_PILOT_ROWS:,}. Leave pilot out, or "
                "make it larger."
            )

    def __hash__(self) -> int:
        return hash((self.total, self.columns_per_row, self.rows, self.task, self.pilot))

    @staticmethod
    def _by_column(value: Any) -> list[tuple[Hashable, Any]]:
        if value is None:
            return []
        return list(value.items()) if isinstance(value, Mapping) else [(None, value)]

    def check_names(self, columns: Sequence[Hashable]) -> None:
        """Refuse settings for columns that do not exist."""
        for setting in ("radius", "cells", "weights"):
            value = getattr(self, setting)
            for name in value if isinstance(value, Mapping) else ():
                if name not in columns:
                    raise ParameterError(
                        f"{setting} of the record budget names {name!r}, which is not a private "
                        "column."
                    )
        for name in columns:
            if self.weights is not None and name not in self.weights:
                raise ParameterError(
                    f"Column {name!r} has no weight. Add it to weights of the record budget."
                )

    @property
    def awaits_weights(self) -> bool:
        """Whether the column weights are unknown because the pilot has not been released yet."""
        return self.pilot > 0 and self.weights is None

    def shares(self, columns: Sequence[Hashable]) -> dict[Hashable, float]:
        """Refuse: the plan of a record budget chooses mechanisms, so there are no shares."""
        raise ParameterError(
            "A record budget chooses the mechanisms itself. Leave the mechanism out, or use "
            "Budget.even() with it."
        )


def checked_total(total: object) -> float:
    """Return a record total: a positive, finite number."""
    if isinstance(total, bool) or not isinstance(total, int | float) or not _is_positive(total):
        raise ParameterError(
            f"A record total must be a positive, finite number; got {total!r}. Totals of 1 to 8 "
            "are usual: write Budget.record(4)."
        )
    return float(total)


def _is_positive(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    try:
        return bool(0 < value < math.inf)
    except TypeError:
        return False


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def check_no_pilot(budget: object, why: str) -> None:
    """Refuse a pilot without labels; ``why`` completes the message after "needs labels"."""
    if isinstance(budget, RecordBudget) and budget.awaits_weights:
        raise ParameterError(
            f"A pilot of {budget.pilot:g} needs labels, {why}. Leave pilot out, or give the "
            "weights of columns from an earlier pilot."
        )


def columns_sent(
    budget: Budget | None,
    words: Callable[[], Words],
    columns: Sequence[Hashable] = (),
    pilot: Callable[[], BoolArray] | None = None,
) -> BoolArray | None:
    """Return which columns are sent for each row; None if all are sent for every row.

    ``words`` returns a uniform 64-bit word for each cell.  For each row, the columns with the
    smallest words are sent, so adding or dropping a column changes as few choices as possible.

    If a record budget has weights (by the names in ``columns``), columns are drawn by weighted
    sampling without replacement.  A word u in (0, 1) becomes the key -log(1 - u) / weight, and
    the columns with the smallest keys are sent.  Raising one column's weight therefore never
    removes it from a row.  The weights do not apply to rows that ``pilot`` marks.
    """
    if budget is None or budget.columns_per_row is None:
        return None
    drawn, count = words(), budget.columns_per_row
    weights = None
    if budget.weights is not None:
        weights = np.array([budget.weights[name] for name in columns])
    first = None if pilot is None or weights is None else pilot()
    sent = np.zeros(drawn.shape, dtype=np.bool_)
    for begin in range(0, len(drawn), CHUNK_ROWS):
        rows = slice(begin, begin + CHUNK_ROWS)
        found: Words | FloatArray = drawn[rows]
        if weights is not None:
            found = _keys(drawn[rows], weights, None if first is None else first[rows])
        nearest = np.argpartition(found, count - 1, axis=1)
        np.put_along_axis(sent[rows], nearest[:, :count], True, axis=1)
    return sent


def _keys(words: Words, weights: FloatArray, pilot: BoolArray | None) -> FloatArray:
    """Return exponential variates with these rates; in the pilot's rows, every rate is one."""
    exponential: FloatArray = -np.log1p(-np.minimum((words + 0.5) / 2.0**64, 1 - 2.0**-53))
    keys = exponential / weights
    if pilot is not None:
        keys[pilot] = exponential[pilot]
    return keys


def below_share(words: Words, share: float) -> BoolArray:
    """Return which people are in the pilot: those whose word is in the lowest ``share``."""
    return np.asarray(words < np.uint64(min(int(share * 2**64), 2**64 - 1)))


def cell_words(rows: int, columns: int, rng: Rng | None) -> Words:
    """Return a uniform word for each cell of a table."""
    return default_rng(rng).open().words(columns, 0, rows).T
