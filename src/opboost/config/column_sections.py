"""The sections of a file about columns: grids, mechanisms, columns, the budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, create_model, model_validator

from opboost.budgets.budget import Budget
from opboost.columns.private_column import Flag
from opboost.config.sections import Section
from opboost.errors import ConfigError, ParameterError
from opboost.grid import Dates, Domain
from opboost.grid.dates import Unit, dates_of
from opboost.mechanisms import Mechanism, NominalMechanism, registry
from opboost.scores.score_budget import ScoreBudget


class GridSection(Section):
    """``[grid]``: the cells of a column."""

    lower: int = 1
    upper: int = 10

    def domain(self) -> Domain:
        """Return the grid."""
        return Domain(self.lower, self.upper)


_MechanismFields: Any = create_model(  # type: ignore[call-overload]
    "_MechanismFields",
    __base__=Section,
    kind=(Literal[tuple(registry.BY_KIND)], registry.DEFAULT_KIND),
    **{
        parameter.name: (parameter.toml_type | None, None)
        for entry in registry.ENTRIES
        for parameter in entry.toml_parameters()
    },
)


class MechanismSection(_MechanismFields):  # type: ignore[misc]
    """``[mechanism]``: a column's mechanism; its fields are the parameters of all kinds."""

    @property
    def entry(self) -> registry.MechanismEntry:
        """The registry's entry for its kind."""
        return registry.BY_KIND[self.kind]

    @model_validator(mode="after")
    def _only_what_has_a_meaning(self) -> MechanismSection:
        known = {"kind", *(p.name for p in self.entry.toml_parameters())}
        for name in sorted(self.model_fields_set - known):
            raise ValueError(f"{name} has no meaning for {self.kind}")
        return self

    def on(self, domain: Domain) -> Mechanism:
        """Return the mechanism on a grid."""
        return registry.build(self.kind, domain, **self._given(self.entry))

    def over(self, categories: Sequence[Any]) -> NominalMechanism:
        """Return the mechanism over unordered categories; the default if this one needs a grid."""
        entry = self.entry
        if entry.takes == "grid":
            entry = registry.BY_KIND[registry.DEFAULT_NOMINAL_KIND]
        return registry.build_nominal(entry.kind, categories, **self._given(entry))

    def _given(self, entry: registry.MechanismEntry) -> dict[str, Any]:
        return {p.name: getattr(self, p.name) for p in entry.toml_parameters()}


def _limits(bounds: Any) -> Any:
    """Return dates unchanged: pydantic would read a pair of them as numbers."""
    try:
        found = dates_of(bounds)
        quoted = isinstance(bounds, list) and any(isinstance(b, str) for b in bounds)
    except ParameterError:
        quoted = True
    if quoted:
        raise ValueError(
            "bounds are two numbers or two dates, without quotes: [1990-01-01, 2025-12-31]"
        )
    return found or bounds


class ColumnSection(Section):
    """``[columns.NAME]``: what is declared about one private column."""

    bounds: Annotated[tuple[float, float] | InstanceOf[Dates] | None, BeforeValidator(_limits)] = (
        None
    )
    unit: Unit | None = None
    categories: list[str | int | float | bool] | None = None
    ordered: bool = False
    scale: Literal["linear", "log"] | list[float | date] = "linear"
    mapping: Literal["cells", "paper"] = "cells"
    outside: Literal["clamp", "raise"] = "clamp"
    missing: Any = "raise"
    eps_missing: float | None = None
    missing_constant: Any = None
    attribute: str | None = None
    integers: bool = False
    cells: int | None = Field(default=None, ge=2)
    radius: float | None = None
    grid: GridSection | None = None
    mechanism: MechanismSection | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> ColumnSection:
        if (self.bounds is None) == (self.categories is None):
            raise ValueError("give either bounds = [lower, upper] or categories = [...]")
        numeric = ("scale", "mapping", "outside", "grid", "cells", "integers", "unit")
        other = ("ordered",) if self.bounds is not None else numeric
        kind = "bounds" if self.bounds is not None else "categories"
        for name in other:
            if name in self.model_fields_set:
                raise ValueError(f"{name} has no meaning for a column with {kind}")
        if self.cells is not None and self.grid is not None:
            raise ValueError("cells and grid both say how fine the column is: give one of them")
        if self.unit is not None and not isinstance(self.bounds, Dates):
            raise ValueError(
                "unit goes with dates as bounds, without quotes: [1990-01-01, 2025-12-31]"
            )
        if self.missing != "flag" and self.model_fields_set & {"eps_missing", "missing_constant"}:
            raise ValueError('eps_missing and missing_constant go with missing = "flag"')
        return self

    def limits(self) -> tuple[float, float] | Dates:
        """Return the bounds; dates get the unit that the section states."""
        assert self.bounds is not None
        if self.unit is None or not isinstance(self.bounds, Dates):
            return self.bounds
        return self.bounds._replace(unit=self.unit)

    def domain(self) -> Domain | None:
        """Return the grid of this column if it names one, else None."""
        if self.cells is not None:
            return Domain(1, self.cells)
        return None if self.grid is None else self.grid.domain()

    def policy(self) -> Any:
        """Return the policy for missing values."""
        if self.missing != "flag":
            return self.missing
        if self.eps_missing is None or self.missing_constant is None:
            raise ConfigError(
                'missing = "flag" needs eps_missing = 1.0 and missing_constant = <public value>.'
            )
        return Flag(self.eps_missing, self.missing_constant)


class BudgetSection(Section):
    """``[budget]``: the record total, or how a mechanism's level is split over the columns.

    ``score`` is an additional budget: the level of a score that predictions may request instead of
    columns, for ``score_models`` models per period.
    """

    record: float | None = None
    radius: float | None = None
    rows: int | None = None
    task: Literal["classify", "regress"] | None = None
    pilot: float = 0.0
    split: Literal["none", "even", "weighted", "sampled"] = "none"
    weights: dict[str, float] | None = None
    columns_per_row: int | None = None
    score: float | None = Field(default=None, gt=0, allow_inf_nan=False)
    score_models: int = Field(default=1, ge=1, strict=True)
    score_despite_radius: bool = False

    @model_validator(mode="after")
    def _only_what_has_a_meaning(self) -> BudgetSection:
        for name in ("score_models", "score_despite_radius"):
            if self.score is None and name in self.model_fields_set:
                raise ValueError(f"{name} goes with score, the level of a released score")
        if self.record is not None:
            if not 0 < self.record < math.inf:
                raise ValueError(
                    f"record must be a positive, finite number; got {self.record}. Totals of 1 to "
                    "8 are usual: write record = 4"
                )
            if self.split != "none":
                raise ValueError("record chooses the split itself: leave split out")
            return self
        for name in ("radius", "rows", "task", "pilot"):
            if name in self.model_fields_set:
                raise ValueError(f"{name} goes with record, the total of one person")
        if self.weights is not None and self.split != "weighted":
            raise ValueError('weights go with split = "weighted"')
        if self.columns_per_row is not None and self.split != "sampled":
            raise ValueError('columns_per_row goes with split = "sampled"')
        return self

    def score_budget(self) -> ScoreBudget | None:
        """Return the budget for scores if they may be released, else None."""
        if self.score is None:
            return None
        return ScoreBudget(self.score, self.score_models, self.score_despite_radius)

    def budget(self) -> Budget | None:
        """Return the record budget or the split; None if the section states neither."""
        if self.record is not None:
            return Budget.record(
                self.record,
                self.radius,
                rows=self.rows,
                columns_per_row=self.columns_per_row,
                weights=self.weights,
                task=self.task,
                pilot=self.pilot,
            )
        if self.split == "none":
            return None
        if self.split == "even":
            return Budget.even()
        if self.split == "weighted":
            if self.weights is None:
                raise ConfigError('split = "weighted" needs [budget.weights], one per column.')
            return Budget.weighted(self.weights)
        if self.columns_per_row is None:
            raise ConfigError('split = "sampled" needs columns_per_row = 3.')
        return Budget.sampled(self.columns_per_row)
