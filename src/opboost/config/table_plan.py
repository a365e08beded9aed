"""A party's declarations about a table: its private columns, and the use of the others."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from opboost.budgets.budget import Budget, RecordBudget
from opboost.budgets.column_chances import checked_weights
from opboost.budgets.record_plan import RecordPlan
from opboost.columns.private_column import PrivateColumn
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.config.sections import BoosterSection, TrainSection
from opboost.errors import ColumnError, ConfigError
from opboost.promises import LDP, Choice, Joint
from opboost.scores.score_budget import ScoreBudget


@dataclass(frozen=True, slots=True)
class Plan:
    """A configuration's declarations about a table: its private columns and all others."""

    source: str
    private: tuple[PrivateColumn, ...]
    public: tuple[str, ...]
    drop: tuple[str, ...]
    budget: Budget | None
    booster: BoosterSection
    attributes: tuple[str, ...] = ()
    record: RecordPlan | None = None
    """The plan of a record budget."""
    train: TrainSection = field(default_factory=TrainSection)
    data: CsvFormat = PLAIN_CSV
    """The format of the table's CSV files."""
    score: ScoreBudget | None = None
    """The additional budget for scores; None if no scores are released."""

    def guarantee(self) -> Joint:
        """Return the promise about one person's record, scores included."""
        columns = self.columns_guarantee()
        if self.score is None:
            return columns
        sent, names = columns.columns_per_row, tuple(columns.parts)
        choices = () if sent is None else (Choice(sent, names),)
        parts = {**columns.parts, "scores in predictions": LDP(self.score.total)}
        return Joint(parts, None, columns.caveats, choices)

    def columns_guarantee(self) -> Joint:
        """Return the promise about the columns of one person's record."""
        public = ", ".join(self.public)
        return Joint(
            {c.name: c.guarantee() for c in self.private},
            None if self.budget is None else self.budget.columns_per_row,
            (f"columns released without noise ({public})",) if self.public else (),
        )

    @property
    def record_total(self) -> float | None:
        """The record total that the columns of one person share; None if none is stated."""
        return self.budget.total if isinstance(self.budget, RecordBudget) else None

    @property
    def total(self) -> float:
        """The most that is revealed about one person: columns (the record total), and scores."""
        stated = self.record_total
        columns = self.columns_guarantee().total if stated is None else stated
        return columns + (0.0 if self.score is None else self.score.total)

    def weighted(self, weights: Mapping[Any, float], source: str) -> Plan:
        """Return the same plan with columns chosen by the weights from a pilot."""
        if not isinstance(self.budget, RecordBudget):
            raise ConfigError(
                f"{source} has weights of columns, but {self.source} states no record total, which "
                "weights need. Add [budget] record = 4.0."
            )
        found = checked_weights(weights, [c.name for c in self.private], source)
        return replace(self, budget=replace(self.budget, weights=found))

    def check_names(self, names: Sequence[str], *, own: bool = False) -> None:
        """Refuse a table whose columns are not the declared ones.

        With ``own``, undeclared columns are the label party's own.
        """
        declared = [*(str(c.name) for c in self.private), *self.public, *self.drop]
        for name in declared:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(names)}."
                raise ColumnError(name, f"of {self.source} is not in the table", hint=hint)
        for name in names:
            if name not in declared and not own:
                raise undeclared(name, self.source)


def undeclared(name: str, source: str) -> ColumnError:
    """Return the error for a column that the configuration does not mention."""
    key = name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'
    return ColumnError(
        name,
        "has no bounds: taking them from the data would reveal its extremes",
        hint=f"Add [columns.{key}] bounds = [lower, upper] to {source}, "
        "name it under [table] public or drop, or, if it identifies people, as id under [align].",
    )
