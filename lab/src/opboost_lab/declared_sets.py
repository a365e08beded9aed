"""What the parties of an experiment declare about a data set, and the plan of a feature party."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from opboost.budgets.budget import Budget
from opboost.budgets.record_plan import RecordPlan
from opboost.config import Plan
from opboost.config.sections import BoosterSection
from opboost.grid import Integers
from opboost_lab.accuracy import PARAMS
from opboost_lab.data.datasets import DataSet

WHOLE_NUMBERS = {
    "Adult": ("education-num",),
    "Industrial": ("plane_engines",),
    "Census": ("NOEMP",),
}
"""Columns that are declared as whole numbers."""


def all_private(data: DataSet) -> DataSet:
    """Return the set with every column private; text becomes categories."""
    X, _, X_test, _ = data.split()
    categories = dict(data.categories or {})
    for name in X.column_names:
        if name not in data.bounds and name not in categories:
            found = {*X.column(name).to_pylist(), *X_test.column(name).to_pylist()}
            categories[name] = sorted(found, key=str)
    return replace(data, categories=categories)


def declared_bounds(data: DataSet) -> dict[str, Any]:
    """Return the bounds of a set's columns, as ``Integers`` for columns of whole numbers."""
    bounds: dict[str, Any] = dict(data.bounds)
    for column in WHOLE_NUMBERS.get(data.name, ()):
        bounds[column] = Integers(*(int(b) for b in bounds[column]))
    return bounds


def training_task(data: DataSet) -> Any:
    """Return the task of a set as the library names it."""
    return "regress" if data.task == "regression" else "classify"


def label_settings(data: DataSet, seed: int) -> dict[str, Any]:
    """Return an experiment's settings for the label party, which holds out no rows."""
    shared = {"booster_params": PARAMS["xgboost"], "random_state": seed, "held_out": 0}
    return {"task": training_task(data), **shared}


def record_budget(data: DataSet, total: float, pilot: float = 0.0) -> Any:
    """Return a record budget for the task of a set."""
    return Budget.record(total, task=training_task(data), pilot=pilot)


def feature_plan(
    data: DataSet, names: Sequence[str], total: float, party: str, pilot: float = 0.0
) -> Plan:
    """Return the plan of a feature party that holds these columns under a record budget."""
    plan = RecordPlan.of(
        record_budget(data, total, pilot),
        bounds={n: b for n, b in declared_bounds(data).items() if n in names},
        categories={n: c for n, c in (data.categories or {}).items() if n in names},
    )
    return party_plan(plan, party)


def party_plan(plan: RecordPlan, party: str) -> Plan:
    """Return the declarations of a feature party that follows a record budget's plan."""
    names = tuple(str(c.name) for c in plan.columns)
    return Plan(party, plan.columns, (), (), plan.budget, BoosterSection(), names, plan)
