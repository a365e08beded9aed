"""What a party declares about a table: its private columns, and what becomes of the others."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from opboost.budgets.budget import Budget
from opboost.columns.private_column import PrivateColumn
from opboost.config.sections import BoosterSection
from opboost.errors import ColumnError
from opboost.promises import Joint


@dataclass(frozen=True, slots=True)
class Plan:
    """What a configuration says about a table: private columns, and the others."""

    source: str
    private: tuple[PrivateColumn, ...]
    public: tuple[str, ...]
    drop: tuple[str, ...]
    budget: Budget | None
    booster: BoosterSection
    attributes: tuple[str, ...] = ()

    def guarantee(self) -> Joint:
        """The promise about one person's record."""
        caveats = [f"released as they are: {', '.join(self.public)}"] if self.public else []
        return Joint(
            {c.name: c.guarantee() for c in self.private},
            None if self.budget is None else self.budget.columns_per_row,
            tuple(caveats),
        )

    def check_names(self, names: Sequence[str], *, own: bool = False) -> None:
        """Refuse a table whose columns are not those that were declared.

        With ``own`` undeclared columns are the label party's own.
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
    """The refusal of a column about which a configuration says nothing."""
    key = name if name.replace("-", "").replace("_", "").isalnum() else f'"{name}"'
    return ColumnError(
        name,
        "has no bounds: taking them from the data would reveal its extremes",
        hint=f"Add [columns.{key}] bounds = [lower, upper] to {source}, "
        "name it under [table] public or drop, or, if it tells people apart, as id under [align].",
    )
