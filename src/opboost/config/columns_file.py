"""The configuration of a party's columns: TOML, keyed by column name.

```toml
[grid]                 # default 1..10; [columns.NAME.grid] overrides
lower = 1
upper = 10

[mechanism]            # default for all columns; [columns.NAME.mechanism] overrides
kind = "clamp-map"
epsilon = 0.64

[columns.age]
bounds = [17, 90]      # declared, public; never computed from the data

[columns.city]
categories = ["north", "south", "east"]

[table]                # what is no private column
public = ["region"]    # leaves as it is
drop = ["name"]        # does not leave
```
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, create_model, model_validator

from opboost.budgets.budget import Budget
from opboost.columns.private_column import Flag, PrivateColumn, check_release_names
from opboost.config.sections import (
    AlignSection,
    BoosterSection,
    LabelSection,
    LedgerSection,
    LimitsSection,
    PartySection,
    PeerSection,
    Section,
    TableSection,
    TlsSection,
)
from opboost.config.table_plan import Plan
from opboost.config.toml_files import first_problem, read, toml
from opboost.errors import ColumnError, ConfigError, OpBoostError
from opboost.grid import Domain, NumericMapping, Ordered, OrdinalMapping
from opboost.mechanisms import Mechanism, UnaryEncoding, registry


class GridSection(Section):
    """``[grid]``: the cells of a column."""

    lower: int = 1
    upper: int = 10

    def domain(self) -> Domain:
        """The grid."""
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
    """``[mechanism]``: how a column is desensitised; its fields are those of all kinds."""

    @property
    def entry(self) -> registry.MechanismEntry:
        """What is known about its kind."""
        return registry.BY_KIND[self.kind]

    @model_validator(mode="after")
    def _only_what_has_a_meaning(self) -> MechanismSection:
        known = {"kind", *(p.name for p in self.entry.toml_parameters())}
        for name in sorted(self.model_fields_set - known):
            raise ValueError(f"{name} has no meaning for {self.kind}")
        return self

    def on(self, domain: Domain) -> Mechanism:
        """The mechanism on a grid."""
        return registry.build(self.kind, domain, **self._given(self.entry))

    def over(self, categories: Sequence[Any]) -> UnaryEncoding:
        """The mechanism over categories without an order; the default where its kind has a grid."""
        entry = self.entry
        if entry.takes == "grid":
            entry = registry.BY_KIND[registry.DEFAULT_NOMINAL_KIND]
        return registry.build_nominal(entry.kind, categories, **self._given(entry))

    def _given(self, entry: registry.MechanismEntry) -> dict[str, Any]:
        return {p.name: getattr(self, p.name) for p in entry.toml_parameters()}


class ColumnSection(Section):
    """``[columns.NAME]``: what is declared about one private column."""

    bounds: tuple[float, float] | None = None
    categories: list[str | int | float | bool] | None = None
    ordered: bool = False
    scale: Literal["linear", "log"] | list[float] = "linear"
    mapping: Literal["cells", "paper"] = "cells"
    outside: Literal["clamp", "raise"] = "clamp"
    missing: Any = "raise"
    eps_missing: float | None = None
    missing_constant: Any = None
    attribute: str | None = None
    grid: GridSection | None = None
    mechanism: MechanismSection | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> ColumnSection:
        if (self.bounds is None) == (self.categories is None):
            raise ValueError("give bounds = [lower, upper] or categories = [...], one of them")
        other = ("ordered",) if self.bounds is not None else ("scale", "mapping", "outside", "grid")
        kind = "bounds" if self.bounds is not None else "categories"
        for name in other:
            if name in self.model_fields_set:
                raise ValueError(f"{name} has no meaning for a column with {kind}")
        if self.missing != "flag" and self.model_fields_set & {"eps_missing", "missing_constant"}:
            raise ValueError('eps_missing and missing_constant go with missing = "flag"')
        return self

    def policy(self) -> Any:
        """What to do with missing values."""
        if self.missing != "flag":
            return self.missing
        if self.eps_missing is None or self.missing_constant is None:
            raise ConfigError(
                'missing = "flag" needs eps_missing = 1.0 and missing_constant = <public value>.'
            )
        return Flag(self.eps_missing, self.missing_constant)


class BudgetSection(Section):
    """``[budget]``: split the level over the columns."""

    split: Literal["none", "even", "weighted", "sampled"] = "none"
    weights: dict[str, float] | None = None
    columns_per_row: int | None = None

    @model_validator(mode="after")
    def _only_what_has_a_meaning(self) -> BudgetSection:
        if self.weights is not None and self.split != "weighted":
            raise ValueError('weights go with split = "weighted"')
        if self.columns_per_row is not None and self.split != "sampled":
            raise ValueError('columns_per_row goes with split = "sampled"')
        return self

    def budget(self) -> Budget | None:
        """The split, if there is one."""
        if self.split == "none":
            return None
        if self.split == "even":
            return Budget.even()
        if self.split == "weighted":
            if self.weights is None:
                raise ConfigError('split = "weighted" needs [budget.weights], a weight a column.')
            return Budget.weighted(self.weights)
        if self.columns_per_row is None:
            raise ConfigError('split = "sampled" needs columns_per_row = 3.')
        return Budget.sampled(self.columns_per_row)


class ColumnsConfig(Section):
    """A whole file: the columns, and what a party needs to take part in a job."""

    grid: GridSection = GridSection()
    mechanism: MechanismSection = MechanismSection()
    columns: dict[str, ColumnSection] = Field(default_factory=dict)
    budget: BudgetSection = BudgetSection()
    table: TableSection = TableSection()
    booster: BoosterSection = BoosterSection()
    party: PartySection | None = None
    label: LabelSection | None = None
    tls: TlsSection | None = None
    align: AlignSection = AlignSection()
    ledger: LedgerSection | None = None
    limits: LimitsSection = LimitsSection()
    peers: dict[str, PeerSection] = Field(default_factory=dict)


def load(path: Path) -> Plan:
    """Read and check a configuration file."""
    return parse(read(path), path.name)


def parse(text: str, source: str) -> Plan:
    """The plan that a configuration's text describes; ``source`` is its name in messages."""
    return planned(validated(text, source), source)


def validated(text: str, source: str) -> ColumnsConfig:
    """The file's sections, each checked by itself."""
    plain = toml(text, source)
    try:
        return ColumnsConfig.model_validate(plain)
    except ValidationError as error:
        raise ConfigError(first_problem(error, source, ColumnsConfig, _SECTIONS)) from None


def planned(config: ColumnsConfig, source: str) -> Plan:
    """What the sections say about a table."""
    if not config.columns:
        raise ConfigError(f"{source} declares no column. Add [columns.age] with bounds = [17, 90].")
    columns = [_column(name, section, config, source) for name, section in config.columns.items()]
    try:
        budget = config.budget.budget()
        for name in config.budget.weights or {}:
            if name not in config.columns:
                raise ConfigError(f"{name!r} has a weight but is no column.")
        if budget is not None:
            shares = budget.shares([c.name for c in columns])
            columns = [c.scaled(shares[c.name]) for c in columns]
    except OpBoostError as error:
        raise ConfigError(f"{source}, [budget]: {error}") from None
    _check_disjoint(config, source)
    try:
        check_release_names(columns, config.table.public)
    except ColumnError as error:
        raise ConfigError(f"{source}: {error}") from None
    return Plan(
        source,
        tuple(columns),
        tuple(config.table.public),
        (*config.table.drop, *_ids_that_stay(config)),
        budget,
        config.booster,
        tuple(section.attribute or name for name, section in config.columns.items()),
    )


def _column(name: str, section: ColumnSection, config: ColumnsConfig, source: str) -> PrivateColumn:
    mechanism = section.mechanism or config.mechanism
    grid = section.grid or config.grid
    try:
        missing = section.policy()
        if section.categories is not None:
            return _of_categories(name, section, mechanism, missing)
        if mechanism.entry.takes == "categories":
            raise ConfigError(
                f"{mechanism.kind} needs categories, not bounds. Use clamp-map for numbers."
            )
        made = mechanism.on(grid.domain())
        scale = section.scale if isinstance(section.scale, str) else tuple(section.scale)
        assert section.bounds is not None
        mapping = NumericMapping(made.domain, section.bounds, scale, section.mapping)
        return PrivateColumn(name, mapping, made, section.outside, missing)
    except OpBoostError as error:
        raise ConfigError(f"{source}, [columns.{name}]: {error}") from None


def _of_categories(
    name: str, section: ColumnSection, mechanism: MechanismSection, missing: Any
) -> PrivateColumn:
    assert section.categories is not None
    order = Ordered(section.categories)
    own = section.mechanism is not None and "kind" in section.mechanism.model_fields_set
    if section.ordered and mechanism.entry.takes == "categories":
        raise ConfigError(
            f"ordered = true needs a mechanism by distance; {mechanism.kind} forgets the order. "
            'Drop one of them, or add mechanism = { kind = "clamp-map", epsilon = 0.64 }.'
        )
    by_distance = mechanism.entry.by_distance
    if not section.ordered and by_distance and (own or mechanism.epsilon is None):
        raise ConfigError(
            f"its categories have no order, and {mechanism.kind} protects by distance. Add "
            'ordered = true, or mechanism = { kind = "unary-encoding", epsilon = 1.0 }.'
        )
    if section.ordered or (mechanism.entry.takes == "grid" and not by_distance):
        grid = Domain(1, len(order.categories))
        return PrivateColumn(
            name, OrdinalMapping(grid, order), mechanism.on(grid), section.outside, missing
        )
    # A column without an order: distance means nothing, so every pair is protected alike.
    nominal = mechanism.over(order.categories)
    return PrivateColumn(name, None, nominal, section.outside, missing)


def _check_disjoint(config: ColumnsConfig, source: str) -> None:
    seen: set[str] = set()
    for name in _all_names(config):
        if name in seen:
            raise ConfigError(f"{source} names column {name!r} twice. A column has one role.")
        seen.add(name)


def _all_names(config: ColumnsConfig) -> Iterable[str]:
    ids = _ids_that_stay(config)
    return [*config.columns, *config.table.public, *config.table.drop, *ids]


def _ids_that_stay(config: ColumnsConfig) -> list[str]:
    """IDs that come into no output; whoever names one as public wants it beside its rows."""
    return [name for name in config.align.ids() if name not in config.table.public]


_SECTIONS: dict[str, type[Section]] = {
    "grid": GridSection,
    "mechanism": MechanismSection,
    "columns": ColumnSection,
    "budget": BudgetSection,
    "table": TableSection,
    "booster": BoosterSection,
    "party": PartySection,
    "label": LabelSection,
    "tls": TlsSection,
    "align": AlignSection,
    "ledger": LedgerSection,
    "limits": LimitsSection,
    "peers": PeerSection,
}
