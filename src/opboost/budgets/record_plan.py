"""The plan that a record budget makes from public facts, for a privacy engineer to sign."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from opboost.budgets.budget import Budget, RecordBudget
from opboost.budgets.column_chances import MAX_WEIGHT_RATIO, sending_people
from opboost.budgets.declared_column import DeclaredColumn
from opboost.budgets.planning_rule import columns_per_row
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ParameterError, visible
from opboost.grid import Domain
from opboost.mechanisms import Mechanism, registry
from opboost.promises import Joint
from opboost.randomness.exact import float_below

MIN_LEVEL = 1e-6
"""Below this level, a column is useless, however many people send it."""


@dataclass(frozen=True, slots=True)
class PlannedColumn:
    """One line of the plan; ``radius`` is in raw units, None for plain LDP."""

    name: Hashable
    mechanism: str
    cells: int
    radius: float | None
    level: float
    sent_per_thousand: tuple[int, int]
    """The fewest and most people of 1,000 for whom it is sent; they differ only before a pilot."""
    radius_share: float | None = None
    """The radius as a fraction of the column's scale."""

    @property
    def within(self) -> str:
        """The radius in words: in raw units or, if the scale is not linear, as a share of it."""
        if self.radius is not None:
            return f"{self.radius:.4g}"
        return "none" if self.radius_share is None else f"{self.radius_share:.0%} of the scale"

    @property
    def sent_for(self) -> str:
        """The share of the people for whom the column is sent, in words."""
        least, most = (f"{n / 10:g}" for n in self.sent_per_thousand)
        return f"{least} % of people" if least == most else f"{least} to {most} % of people"


@dataclass(frozen=True, slots=True)
class RecordPlan:
    """What is sent about each person: the columns, their mechanisms, and what they reveal.

    >>> import opboost as op
    >>> bounds = {"age": (17, 90), "pay": (0, 90_000), "hours": op.Integers(0, 23)}
    >>> plan = op.RecordPlan.of(op.Budget.record(4), bounds=bounds)
    >>> plan.columns_per_row, plan.total, plan.guarantee().total
    (2, 4.0, 4.0)
    """

    budget: RecordBudget
    columns: tuple[PrivateColumn, ...]
    lines: tuple[PlannedColumn, ...]

    @classmethod
    def of(
        cls,
        budget: RecordBudget,
        *,
        bounds: Mapping[Any, Any] | None = None,
        categories: Mapping[Any, Any] | None = None,
    ) -> RecordPlan:
        """Plan columns with these bounds and categories, as an estimator would."""
        declared = [DeclaredColumn.numeric(n, pair) for n, pair in (bounds or {}).items()]
        declared += [DeclaredColumn.of_categories(n, c) for n, c in (categories or {}).items()]
        return cls.made(budget, declared)

    @classmethod
    def made(cls, budget: RecordBudget, declared: Sequence[DeclaredColumn]) -> RecordPlan:
        """Plan declared columns from public facts; refuse bad settings."""
        if not declared:
            raise ParameterError(
                "No column is private: there is nothing to plan. Declare bounds={'age': (17, 90)}."
            )
        names = [c.name for c in declared]
        budget.check_names(names)
        sent = budget.columns_per_row or columns_per_row(budget.total, len(declared), budget.task)
        if sent > len(declared):
            raise ParameterError(
                f"columns_per_row is {sent}, but there are {len(declared)} private columns."
            )
        level = level_of(budget.total, sent)
        if level < MIN_LEVEL:
            raise ParameterError(
                f"A record total of {budget.total!r} leaves {level:.2g} for each of {sent} columns "
                "sent about a person, too little for a table of any size. Totals of 1 to 8 are "
                "usual."
            )
        share = None if isinstance(budget.radius, Mapping) else budget.radius
        chosen = [
            c.with_settings(_of(budget.cells, c.name), _by_name(budget.radius, c.name), share)
            for c in declared
        ]
        columns = tuple(c.column(level) for c in chosen)
        per_thousand = sending_people(replace(budget, columns_per_row=sent), names)
        lines = tuple(
            PlannedColumn(
                c.name,
                _title(column),
                _cells(column),
                _radius(column, c.raw_radius),
                level,
                per_thousand[c.name],
                _radius(column, c.scale_radius),
            )
            for c, column in zip(chosen, columns, strict=True)
        )
        return cls(replace(budget, columns_per_row=sent), columns, lines)

    @property
    def total(self) -> float:
        """The most that is revealed about one person."""
        return self.budget.total

    @property
    def columns_per_row(self) -> int:
        """The number of columns that are sent for each person."""
        assert self.budget.columns_per_row is not None
        return self.budget.columns_per_row

    def guarantee(self) -> Joint:
        """Return the promise about one person's record."""
        return Joint({c.name: c.guarantee() for c in self.columns}, self.columns_per_row)

    def meaning(self) -> str:
        """Return what the total means, in words."""
        return meaning_of(self.total)

    def choice(self) -> str:
        """Return how many columns are sent for each person, in words."""
        count, sent = len(self.columns), self.columns_per_row
        if sent == count:
            chosen = "all columns are sent." if count > 1 else "the column is sent."
        else:
            are = "is" if sent == 1 else "are"
            chosen = f"{sent} of {count} columns {are} sent. The choice is random and made once."
        sentence = f"For each person, {chosen} Missing values cost nothing extra."
        if not self.budget.awaits_weights:
            return sentence
        return (
            f"{sentence} The columns of a random {100 * self.budget.pilot:g} % of the people are "
            "released first; the label party answers with a weight for each column, from "
            f"1/{MAX_WEIGHT_RATIO} to 1, and the choice for everybody else follows these weights."
        )

    def table(self) -> list[dict[str, str]]:
        """Return each line as a dict of texts by column title."""
        return [
            {
                "column": visible(line.name),
                "mechanism": line.mechanism,
                "cells": str(line.cells),
                "radius": line.within,
                "level if sent": f"{line.level:.4g}",
                "sent for": line.sent_for,
            }
            for line in self.lines
        ]

    def __str__(self) -> str:
        rows = self.table()
        titles = list(rows[0])
        widths = {t: max(len(t), *(len(row[t]) for row in rows)) for t in titles}
        lines = ["  ".join(t.ljust(widths[t]) for t in titles).rstrip()]
        lines += ["  ".join(row[t].ljust(widths[t]) for t in titles).rstrip() for row in rows]
        return "\n".join([self.meaning(), self.choice(), *lines])

    def _repr_html_(self) -> str:
        rows = self.table()
        head = "".join(f"<th>{html.escape(t)}</th>" for t in rows[0])
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(v)}</td>" for v in row.values()) + "</tr>"
            for row in rows
        )
        said = f"<p><b>{html.escape(self.meaning())}</b><br>{html.escape(self.choice())}</p>"
        return f"{said}<table><tr>{head}</tr>{body}</table>"


def stated_budget(budget: Budget | RecordPlan | None) -> Budget | None:
    """Return the budget itself, or the one that a plan was made for."""
    return budget.budget if isinstance(budget, RecordPlan) else budget


def meaning_of(total: float) -> str:
    """Return what a record total means, in words.

    >>> meaning_of(4.0)[:31]
    "One person's record: at most 4."
    """
    odds = math.exp(min(total, 700))
    shown = f"{odds:,.0f}" if odds >= 10 else f"{odds:.2g}"
    shown = shown if odds < 1e15 else f"{odds:.0e}"
    return (
        f"One person's record: at most {total:g}. Replacing a person's record with any "
        "other changes the probability of any output of these columns by a factor of at most "
        f"e^{total:g} ≈ {shown}."
    )


def level_of(total: float, sent: int) -> float:
    """Return the level of each of ``sent`` columns; together they do not exceed the total.

    This also holds in the ledger, which rounds each level up to a billionth.

    >>> 3 * level_of(4.0, 3) <= 4.0, level_of(4.0, 2)
    (True, 2.0)
    """
    exact = float_below(Fraction(total) / sent)
    billionths = math.floor(Fraction(repr(total)) * 10**9 / sent)
    return min(exact, billionths / 10**9) if billionths else exact


def _radius(column: PrivateColumn, kept: Callable[[Domain], float | None]) -> float | None:
    """Return the radius as rounded to the column's grid; None if its values have no order."""
    return kept(column.mapping.domain) if column.has_order and column.mapping else None


def _title(column: PrivateColumn) -> str:
    return registry.title_of(column.mechanism)


def _cells(column: PrivateColumn) -> int:
    if isinstance(column.mechanism, Mechanism):
        return column.mechanism.domain.size
    return len(column.mechanism.categories)


def _of(value: Any, name: Hashable) -> Any:
    return value.get(name) if isinstance(value, Mapping) else value


def _by_name(value: Any, name: Hashable) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None
