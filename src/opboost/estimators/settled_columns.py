"""The private columns that a transformer settles on in ``fit``, from what was declared."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from opboost.budgets.budget import Budget, RecordBudget
from opboost.budgets.record_plan import RecordPlan
from opboost.columns.dataframes import column_names
from opboost.columns.private_column import PrivateColumn, check_release_names
from opboost.errors import ColumnError, ParameterError
from opboost.estimators.declarations import Declarations, no_bounds

KEPT = ("passthrough", "own")
"""The values of ``remainder`` that keep undeclared columns next to the released ones."""


@dataclass(frozen=True, slots=True)
class SettledColumns:
    """The private columns of a table, and the facts behind warnings and caveats about it."""

    columns: tuple[PrivateColumn, ...]
    names: tuple[Hashable, ...]
    """All columns of the table, in its order."""
    inferred: tuple[Hashable, ...]
    """The private columns whose bounds were taken from the data."""
    remainder: str
    budget: Budget | None = None
    """How the level is split, with the number of columns per row that a plan chose."""
    plan: RecordPlan | None = None
    """The plan of a record budget."""

    @classmethod
    def of(
        cls, declared: Declarations, table: Any, remainder: str, budget: Budget | RecordPlan | None
    ) -> SettledColumns:
        """Check a table against what was declared, and split the budget over its columns."""
        if isinstance(budget, RecordBudget | RecordPlan):
            return cls._planned(declared, table, remainder, budget)
        names = column_names(table)
        made = _declared_in_full(declared, names, remainder)
        if made is None:
            made = _made(declared, names, remainder, table)
        columns = [c for c, _ in made]
        if budget is not None and not isinstance(declared.mechanism, tuple):
            shares = _checked_budget(budget).shares([c.name for c in columns])
            columns = [c.scaled(shares[c.name]) for c in columns]
        inferred = tuple(c.name for c, from_data in made if from_data)
        return cls(tuple(columns), tuple(names), inferred, remainder, budget)

    @classmethod
    def _planned(
        cls, declared: Declarations, table: Any, remainder: str, budget: RecordBudget | RecordPlan
    ) -> SettledColumns:
        """Return the columns with the mechanisms that a record budget, or its plan, chooses."""
        if declared.mechanism is not None:
            raise ParameterError(
                "A mechanism and a record budget are given, and the budget chooses mechanisms "
                "itself. Leave the mechanism out, or split its level with op.Budget.even()."
            )
        names = column_names(table)
        if isinstance(budget, RecordPlan):
            if declared.bounds is not None or declared.categories is not None:
                raise ParameterError(
                    "The plan says which columns are private. Leave bounds and categories out."
                )
            _check_columns(budget.columns, names, remainder)
            return cls(budget.columns, tuple(names), (), remainder, budget.budget, budget)
        private = _private_names(declared, names, remainder)
        wanted = [declared.declared_column(name, table) for name in private]
        plan = RecordPlan.made(budget, [column for column, _ in wanted])
        inferred = tuple(c.name for c, from_data in wanted if from_data)
        return cls(plan.columns, tuple(names), inferred, remainder, plan.budget, plan)

    @property
    def others(self) -> list[Hashable]:
        """The columns that are not private."""
        private = {c.name for c in self.columns}
        return [name for name in self.names if name not in private]

    @property
    def keeps_others(self) -> bool:
        """Whether columns that are not private stay next to the released ones."""
        return self.remainder in KEPT

    def check_release_names(self) -> None:
        """Refuse columns whose released names would be the same."""
        check_release_names(self.columns, self.others if self.keeps_others else [])

    def caveats(self) -> tuple[str, ...]:
        """Return what no guarantee covers: bounds from the data, and columns without noise."""
        caveats = [f"bounds of {name!r} were taken from the data" for name in self.inferred]
        if self.others and self.remainder == "passthrough":
            caveats.append(f"columns released without noise ({', '.join(map(str, self.others))})")
        return tuple(caveats)


def _declared_in_full(
    declared: Declarations, names: list[Hashable], remainder: str
) -> list[tuple[PrivateColumn, bool]] | None:
    """Return the columns of a tuple of ``PrivateColumn``; None if a mechanism was declared."""
    if not isinstance(declared.mechanism, tuple):
        return None
    _check_columns(declared.mechanism, names, remainder)
    return [(c, False) for c in declared.mechanism]


def _check_columns(columns: Sequence[PrivateColumn], names: list[Hashable], remainder: str) -> None:
    """Refuse a table that lacks a declared column, or has an undeclared one that must not stay."""
    for c in columns:
        if c.name not in names:
            raise ColumnError(c.name, "is declared but not in the table")
    taken = {c.name for c in columns}
    _check_remainder(remainder, [name for name in names if name not in taken])


def _made(
    declared: Declarations, names: list[Hashable], remainder: str, table: Any
) -> list[tuple[PrivateColumn, bool]]:
    """Return the private columns, and whether their bounds were taken from the data."""
    private = _private_names(declared, names, remainder)
    return [declared.column(name, table) for name in private]


def _private_names(declared: Declarations, names: list[Hashable], remainder: str) -> list[Hashable]:
    """Return the names of the private columns; refuse other columns if they must not stay."""
    private = declared.private_names(names)
    _check_remainder(remainder, [name for name in names if name not in private])
    if not private:
        raise ParameterError(
            "No column is private: nothing would be desensitised. Declare bounds={'age': (17, 90)}."
        )
    return private


def _check_remainder(remainder: str, others: list[Hashable]) -> None:
    if remainder not in ("raise", "drop", *KEPT):
        raise ParameterError(
            f"remainder must be 'raise', 'passthrough', 'drop' or 'own'; got {remainder!r}."
        )
    if others and remainder == "raise":
        raise no_bounds(others[0])


def _checked_budget(budget: object) -> Budget:
    if not isinstance(budget, Budget):
        raise ParameterError(
            f"budget must be an op.Budget; got {budget!r}. Write Budget.record(4)."
        )
    return budget
