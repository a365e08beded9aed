"""A party's file with the choices made on a page; everything else in it stays unchanged."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from typing import Any

from opboost.config.columns_file import DeclaredTable, parse
from opboost.config.table_plan import Plan
from opboost.config.toml_edit import KeyPath, changed
from opboost.errors import OpBoostError
from opboost.explorer.choice import Choice
from opboost.explorer.choice_as_toml import parameters_of
from opboost.explorer.record_form import PlannedRecord

RECORD_ONLY = ("radius", "integers")
"""Column keys that are allowed with a record total, but not with a mechanism of a given level."""


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """The text of the file, and its plan; if the file would be refused, ``problem`` says why."""

    source: str
    text: str
    plan: Plan | None
    problem: str = ""


def with_record(declared: DeclaredTable, planned: PlannedRecord) -> ChangedFile:
    """Put a record total into the file; mechanisms of the file are commented out."""
    budget = planned.budget
    values: dict[KeyPath, Any] = {
        ("budget", "split"): None,
        ("budget", "record"): budget.total,
        ("budget", "radius"): budget.radius,
        ("budget", "task"): budget.task,
        ("mechanism",): None,
    }
    if declared.budget is None:  # a split by levels gives these keys another meaning
        values |= {("budget", "weights"): None, ("budget", "columns_per_row"): None}
    for column in declared.columns:
        values["columns", str(column.name), "mechanism"] = None
    return _checked(declared, values)


def with_mechanism(declared: DeclaredTable, choice: Choice) -> ChangedFile:
    """Put a mechanism and bounds into the file; a record total is commented out.

    Columns that the page does not draw, such as categories, stay as the file declares them.
    """
    declared_sections, grid = tomllib.loads(declared.text), choice.mechanism.domain
    values: dict[KeyPath, Any] = {
        ("mechanism", name): None for name in declared_sections.get("mechanism", {})
    }
    values |= {("grid", "lower"): grid.L, ("grid", "upper"): grid.R}
    values["mechanism", "kind"] = choice.kind
    values |= {("mechanism", name): value for name, value in parameters_of(choice).items()}
    if "record" in declared_sections.get("budget", {}):
        values[("budget",)] = None
    for name, mapping in choice.mappings.items():
        values["columns", name, "bounds"] = list(mapping.bounds)
    drawn = drawn_bounds(declared)
    for name, section in declared_sections["columns"].items():
        if name in drawn and name not in choice.mappings:
            values["columns", name] = None
            continue
        values |= {("columns", name, key): None for key in RECORD_ONLY if key in section}
    return _checked(declared, values)


def drawn_bounds(declared: DeclaredTable) -> dict[str, tuple[float, float]]:
    """Return the bounds of the columns of numbers: those that the page can draw."""
    return {
        str(c.name): (float(c.bounds[0]), float(c.bounds[1]))
        for c in declared.columns
        if c.bounds is not None and c.unit is None  # the page has no field for dates
    }


def _checked(declared: DeclaredTable, values: dict[KeyPath, Any]) -> ChangedFile:
    text = declared.text
    try:
        text = changed(text, values, declared.source)
        return ChangedFile(declared.source, text, parse(text, declared.source))
    except OpBoostError as error:
        return ChangedFile(declared.source, text, None, str(error))
