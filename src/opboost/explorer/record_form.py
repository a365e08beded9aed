"""The form of the first page: a record total and public facts about columns, and their plan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from opboost.budgets.budget import Budget, RecordBudget, Task
from opboost.budgets.record_plan import RecordPlan
from opboost.config.columns_file import DeclaredTable
from opboost.errors import ParameterError
from opboost.explorer.choice import Problems, number, whole

MAX_RECORD_TOTAL = 100.0
"""The highest record total that the page plans; a release beyond it hides nothing."""

MAX_COLUMNS = 200
"""The most columns that the page plans without a file."""

MAX_CATEGORIES = 200
"""The most categories per column that the page plans without a file."""

EXAMPLE_BOUNDS = (0.0, 100.0)
"""The bounds of the example columns of numbers; the page shows their radius in these units."""

RECORD_DEFAULTS = {
    "record": "4",
    "radius": "",
    "task": "",
    "columns": "8",
    "nominal": "2",
    "categories": "5",
}
"""The fields of the page at a first visit, without a file."""

TASKS: dict[str, Task | None] = {"": None, "classify": "classify", "regress": "regress"}
"""The values of the field ``task``; empty means not known yet."""

FILE_FIELDS = ("record", "radius", "task")
"""The fields that remain if a file declares the columns."""


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The fields as they were typed, and the file that declares the columns, if there is one."""

    fields: Mapping[str, str]
    declared: DeclaredTable | None = None

    @classmethod
    def of(
        cls, fields: Mapping[str, str], declared: DeclaredTable | None = None, columns: int = 0
    ) -> RecordForm:
        """Return the form that was sent; a missing field has its value at a first visit.

        ``columns`` is the number of columns of the table, if one was named.
        """
        first = dict(RECORD_DEFAULTS)
        if columns:
            first |= {"columns": str(min(columns, MAX_COLUMNS)), "nominal": "0"}
        if declared is not None:
            first = {name: first[name] for name in FILE_FIELDS}
            if declared.budget is not None:
                first |= _as_typed(declared.budget)
        known = {name: fields.get(name, value).strip() for name, value in first.items()}
        return cls(known, declared)


@dataclass(frozen=True, slots=True)
class PlannedRecord:
    """A form without errors: the budget as a file states it, and its plan."""

    budget: RecordBudget
    plan: RecordPlan
    declared: DeclaredTable | None
    bounds: Mapping[str, tuple[float, float]]
    categories: Mapping[str, tuple[str, ...]]


def planned_record(form: RecordForm) -> tuple[PlannedRecord | None, dict[str, str]]:
    """Return the plan, or the errors by the control where they can be corrected.

    >>> found, _ = planned_record(RecordForm.of({"record": "4", "columns": "3", "nominal": "1"}))
    >>> found.plan.columns_per_row, found.plan.total
    (2, 4.0)
    >>> planned_record(RecordForm.of({"record": "-1"}))[1]
    {'record': 'The record total must be above zero; got -1. Totals of 1 to 8 are usual.'}
    """
    problems, fields = Problems(), form.fields
    total, radius, task = 0.0, None, None
    with problems.at("record"):
        total = _total(fields["record"])
    with problems.at("radius"):
        radius = _radius(fields["radius"])
    with problems.at("task"):
        task = _task(fields["task"])
    bounds, categories = ({}, {}) if form.declared else _example_columns(fields, problems)
    if problems.by_control:
        return None, problems.by_control
    stated = form.declared.budget if form.declared else None
    with problems.at("record"):
        budget = replace(stated or Budget.record(total), total=total, radius=radius, task=task)
        if form.declared:
            plan = RecordPlan.made(budget, form.declared.columns)
        else:
            plan = RecordPlan.of(budget, bounds=bounds, categories=categories)
        return PlannedRecord(budget, plan, form.declared, bounds, categories), {}
    return None, problems.by_control


def _as_typed(budget: RecordBudget) -> dict[str, str]:
    """Return a file's budget as a person would type it into the form."""
    radius = "" if budget.radius is None else f"{budget.radius!r}"
    return {"record": f"{budget.total:g}", "radius": radius, "task": budget.task or ""}


def _total(text: str) -> float:
    total = number("The record total", text, "4")
    if total <= 0:
        raise ParameterError(
            f"The record total must be above zero; got {total:g}. Totals of 1 to 8 are usual."
        )
    if total > MAX_RECORD_TOTAL:
        raise ParameterError(
            f"The page plans record totals up to {MAX_RECORD_TOTAL:g}; got {total:g}. Totals of 1 "
            "to 8 are usual."
        )
    return total


def _radius(text: str) -> float | None:
    if not text:
        return None
    radius = number("The radius", text, "0.1")
    if not 0 < radius <= 1:
        raise ParameterError(
            f"The radius is a share of the range, above 0 and at most 1; got {radius:g}. Leave it "
            "empty for plain LDP."
        )
    return radius


def _task(text: str) -> Task | None:
    if text not in TASKS:
        raise ParameterError(f"The task is 'classify' or 'regress'; got {text[:40]!r}.")
    return TASKS[text]


def _example_columns(
    fields: Mapping[str, str], problems: Problems
) -> tuple[dict[str, tuple[float, float]], dict[str, tuple[str, ...]]]:
    """Return example columns of numbers and of categories, as many as the form says."""
    count = nominal = listed = 0
    with problems.at("columns"):
        count = _count("The number of columns", fields["columns"], 1, MAX_COLUMNS)
    with problems.at("nominal"):
        nominal = _count("The columns of categories", fields["nominal"], 0, count or MAX_COLUMNS)
    if nominal:
        with problems.at("categories"):
            listed = _count("The categories", fields["categories"], 2, MAX_CATEGORIES)
    names = tuple(f"c{i + 1}" for i in range(listed))
    return (
        {f"number_{i + 1}": EXAMPLE_BOUNDS for i in range(count - nominal)},
        {f"category_{i + 1}": names for i in range(nominal)},
    )


def _count(name: str, text: str, least: int, most: int) -> int:
    found = whole(name, text)
    if not least <= found <= most:
        raise ParameterError(f"{name} must be {least} to {most:,}; got {found:,}.")
    return found
