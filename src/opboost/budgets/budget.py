"""How a level is split over the columns of a record."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opboost._typing import BoolArray, Words
from opboost.errors import ParameterError
from opboost.randomness.streams import Rng, default_rng


@dataclass(frozen=True, slots=True)
class Budget:
    """Shares of a mechanism's level, so that the whole record spends no more than one column would.

    * ``Budget.even()`` gives each of r columns 1/r of the level;
    * ``Budget.weighted({"age": 2, "income": 1})`` gives 2/3 and 1/3;
    * ``Budget.sampled(k)`` releases k columns of each row, drawn at random without a look at the
      data, each at 1/k of the level; the other cells are missing downstream.

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
                f"columns_per_row must be a whole number from 1; got {self.columns_per_row!r}."
            )

    @classmethod
    def even(cls) -> Budget:
        """The same share for every column."""
        return cls()

    @classmethod
    def weighted(cls, weights: Mapping[Any, float]) -> Budget:
        """Shares in proportion to ``weights``."""
        return cls(weights=dict(weights))

    @classmethod
    def sampled(cls, columns_per_row: int) -> Budget:
        """Few columns a row, each with a larger share."""
        return cls(columns_per_row=columns_per_row)

    def __hash__(self) -> int:
        weights = None if self.weights is None else tuple(self.weights.items())
        return hash((weights, self.columns_per_row))

    def shares(self, columns: Sequence[Hashable]) -> dict[Hashable, float]:
        """The share of each column's level; what one row releases adds up to one at most."""
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
        """Which cells are released: some columns of each row, drawn without a look at the data."""
        sent = columns_sent(self, lambda: cell_words(rows, columns, rng))
        return np.ones((rows, columns), dtype=np.bool_) if sent is None else sent


def columns_sent(budget: Budget | None, words: Callable[[], Words]) -> BoolArray | None:
    """Return which columns of each row are sent; None where every row sends all of them.

    ``words`` returns a uniform word for each cell.  The columns with the smallest words are sent:
    a column that is added or left out changes as few choices as possible.
    """
    if budget is None or budget.columns_per_row is None:
        return None
    found = words()
    sent = np.zeros(found.shape, dtype=np.bool_)
    nearest = np.argpartition(found, budget.columns_per_row - 1, axis=1)
    np.put_along_axis(sent, nearest[:, : budget.columns_per_row], True, axis=1)
    return sent


def cell_words(rows: int, columns: int, rng: Rng | None) -> Words:
    """Return a uniform word for each cell of a table."""
    return default_rng(rng).open().words(columns, 0, rows).T
