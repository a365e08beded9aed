"""The record plan of a period, which its first release fixes.

A record budget promises a total per person.  If the plan could change within a period, each plan
would keep its own promise, but all of them together would keep none.  So a release writes its plan
into its reservation, and the first committed release of a period decides: a later release under
a different record plan is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opboost.budgets.budget import Budget, RecordBudget
from opboost.columns.private_column import PrivateColumn
from opboost.errors import PrivacyError
from opboost.ledger.chain import Entry
from opboost.ledger.store import Ledger

MAX_LISTED_CHANGES = 3
"""A refusal lists this many differences between two plans, and counts the others."""


@dataclass(frozen=True, slots=True)
class FrozenPlan:
    """What a reservation says about its record plan.

    ``columns`` holds, by attribute, what the reservation states about a column: the identity of its
    mechanism, its declaration and its amount.  ``weights`` are by attribute as well.  The weights
    of a pilot are not part of the plan.
    """

    total: float
    columns_per_row: int
    pilot: float
    weights: dict[str, float] | None
    columns: dict[str, dict[str, Any]]
    entry: int = -1
    """The number of the reservation's entry; -1 before there is one."""

    @classmethod
    def of_entry(cls, entry: Entry) -> FrozenPlan | None:
        """Return the plan of a reservation; None if it was made without a record budget."""
        plan = entry.body.get("plan")
        if plan is None:
            return None
        try:
            columns = _by_attribute(entry.body["columns"])
            facts = {name: plan[name] for name in _FACTS}
            return cls(**facts, columns=columns, entry=entry.number)
        except (KeyError, TypeError):
            raise entry.damaged() from None

    def as_json(self) -> dict[str, Any]:
        """Return what a reservation states in addition to its columns."""
        return {**{name: getattr(self, name) for name in _FACTS}, "digest": self.digest}

    @property
    def digest(self) -> str:
        """The SHA-256 of everything that distinguishes plans; the order of columns does not."""
        mechanisms = {name: c["mechanism"] for name, c in self.columns.items()}
        facts = [getattr(self, name) for name in _FACTS]
        return hashlib.sha256(json.dumps([facts, mechanisms], sort_keys=True).encode()).hexdigest()

    def leaves_out_columns_of(self, other: FrozenPlan) -> bool:
        """Return whether this plan differs from the other only by leaving out columns."""
        return set(self.columns) < set(other.columns) and not other.changes(self, left_out=False)

    def changes(self, new: FrozenPlan, *, left_out: bool = True) -> list[str]:
        """Return the differences from another plan, in words, with the old value first."""
        found = [
            f"{words} {_shown(before)} → {_shown(after)}"
            for words, before, after in (
                ("total", self.total, new.total),
                ("columns per person", self.columns_per_row, new.columns_per_row),
                ("pilot", self.pilot, new.pilot),
            )
            if before != after
        ]
        levels = not found  # they follow from total and columns per person
        found += [f"column {name!r} is new" for name in new.columns if name not in self.columns]
        for name, column in self.columns.items():
            if name not in new.columns:
                found += [f"column {name!r} is left out"] if left_out else []
            elif column["mechanism"] != new.columns[name]["mechanism"]:
                found += _column_changes(name, column, new.columns[name], levels=levels)
        shared = [name for name in self.columns if name in new.columns]
        if _of(self.weights, shared) != _of(new.weights, shared):
            found.append("different column weights")
        return found


_FACTS = ("total", "columns_per_row", "pilot", "weights")


def plan_to_freeze(
    budget: Budget | None,
    columns: Sequence[PrivateColumn],
    described: Sequence[dict[str, Any]],
) -> FrozenPlan | None:
    """Return the record plan of a release; ``described`` is its reservation's list of columns."""
    if not isinstance(budget, RecordBudget):
        return None
    by_name = {c.name: d["attribute"] for c, d in zip(columns, described, strict=True)}
    weights = None if budget.pilot else budget.weights
    return FrozenPlan(
        budget.total,
        budget.columns_per_row or len(columns),
        budget.pilot,
        None if weights is None else {by_name[n]: float(w) for n, w in weights.items()},
        _by_attribute(described),
    )


def frozen_plan(ledger: Ledger) -> FrozenPlan | None:
    """Return the record plan of the current period; None before a release has fixed one.

    Sending a stored release of an earlier period again fixes no plan.
    """
    begun = ledger.renewed()[""]
    for commit in ledger.entries("commit"):
        if commit.number > begun and "sent" not in commit.body:
            reserved = ledger.entry(commit.body["reservation"])
            if reserved is None:
                raise commit.damaged()
            if (found := FrozenPlan.of_entry(reserved)) is not None:
                return found
    return None


def check_plan(frozen: FrozenPlan | None, plan: FrozenPlan | None) -> None:
    """Refuse a release whose record plan differs from that of the period.

    A plan that only leaves out columns may repeat draws; see :func:`check_left_out`.
    """
    if frozen is None or plan is None or plan.digest == frozen.digest:
        return
    if not plan.leaves_out_columns_of(frozen):
        changes = frozen.changes(plan) or ["its columns"]
        more = len(changes) - MAX_LISTED_CHANGES
        listed = ", ".join(changes[:MAX_LISTED_CHANGES]) + (f" and {more} more" if more > 0 else "")
        raise PrivacyError(
            f"The first release of this period fixed the record plan in entry {frozen.entry}, and "
            f"this one is different ({listed}); {_NEXT_STEP}"
        )


def check_left_out(frozen: FrozenPlan | None, plan: FrozenPlan | None, new_people: int) -> None:
    """Refuse to charge people under a plan that leaves out columns of the period's plan."""
    if not new_people or frozen is None or plan is None or plan.digest == frozen.digest:
        return
    listed = ", ".join(repr(name) for name in frozen.columns if name not in plan.columns)
    raise PrivacyError(
        f"The plan leaves out {listed}, which this period's record plan has. {new_people:,} people "
        "would be charged, and it would choose other columns for them than the period's plan does; "
        f"{_NEXT_STEP}"
    )


_NEXT_STEP = (
    "restore the old file, or start a new period with opboost ledger renew. Nothing was sent."
)


def _by_attribute(described: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return columns by attribute; a second column of an attribute gets a number."""
    found: dict[str, dict[str, Any]] = {}
    for column in described:
        name = column["attribute"]
        again = sum(c["attribute"] == name for c in found.values())
        found[f"{name} ({again + 1})" if again else name] = column
    return found


def _column_changes(
    name: str, before: Mapping[str, Any], after: Mapping[str, Any], *, levels: bool
) -> list[str]:
    """Return what differs about a column whose mechanism has changed."""
    old, new = _facts(before), _facts(after)
    if old["cells"] != new["cells"]:
        return [f"column {name!r} {old['cells']} → {new['cells']} cells"]
    for fact in ("bounds", "categories", "kind"):
        if old[fact] != new[fact]:
            return [f"column {name!r} {fact} {_shown(old[fact])} → {_shown(new[fact])}"]
    if before.get("guarantee") != after.get("guarantee"):
        changed = f"column {name!r} {before.get('guarantee')} → {after.get('guarantee')}"
        return [changed] if levels else []
    return [f"column {name!r} has a different mapping or different noise"]


def _facts(column: Mapping[str, Any]) -> dict[str, Any]:
    declared = column.get("declared") or {}
    mapping, mechanism = declared.get("mapping") or {}, declared.get("mechanism") or {}
    categories = mapping.get("order", mechanism.get("categories"))
    grid = mapping.get("grid")
    cells = grid[1] - grid[0] + 1 if grid else len(categories or ())
    kind = mechanism.get("kind")
    return {
        "cells": cells,
        "bounds": mapping.get("bounds"),
        "categories": categories,
        "kind": kind,
    }


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return "[" + ", ".join(_shown(v) for v in value) + "]"
    return str(value)


def _of(weights: Mapping[str, float] | None, names: Sequence[str]) -> dict[str, float] | None:
    return None if weights is None else {n: weights[n] for n in names if n in weights}
