"""The configuration of a party's columns: TOML, keyed by column name.

```toml
[budget]
record = 4.0           # the most that is revealed about one person; chooses mechanisms and grids

[columns.age]
bounds = [17, 90]      # declared, public; never computed from the data

[columns.city]
categories = ["north", "south", "east"]

[table]                # columns that are not private
public = ["region"]    # released without noise
drop = ["name"]        # never released
```

Instead of a record budget, ``[mechanism]`` (and ``[columns.NAME.mechanism]``) can name a mechanism
with its level, and ``[grid]`` its cells.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from opboost.budgets.budget import Budget, RecordBudget
from opboost.budgets.declared_column import DeclaredColumn
from opboost.budgets.record_plan import RecordPlan
from opboost.columns.private_column import PrivateColumn, check_release_names
from opboost.config.column_sections import (
    BudgetSection,
    ColumnSection,
    GridSection,
    MechanismSection,
)
from opboost.config.plan_limits import check_caps_of_plan
from opboost.config.sections import (
    AlignSection,
    BoosterSection,
    CardSection,
    DataSection,
    LabelSection,
    LedgerSection,
    LimitsSection,
    PartySection,
    PeerSection,
    Section,
    TableSection,
    TlsSection,
    TrainSection,
)
from opboost.config.table_plan import Plan
from opboost.config.todo_marks import refuse_todo
from opboost.config.toml_files import first_problem, read, toml
from opboost.errors import ColumnError, ConfigError, OpBoostError
from opboost.grid import Domain, NumericMapping, Ordered, OrdinalMapping


class ColumnsConfig(Section):
    """A whole file: the columns, and what a party needs to take part in a job."""

    grid: GridSection = GridSection()
    mechanism: MechanismSection = MechanismSection()
    columns: dict[str, ColumnSection] = Field(default_factory=dict)
    budget: BudgetSection = BudgetSection()
    table: TableSection = TableSection()
    data: DataSection = DataSection()
    booster: BoosterSection = BoosterSection()
    train: TrainSection = TrainSection()
    card: CardSection = CardSection()
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
    """Return the plan that a configuration's text describes; ``source`` is its name in messages."""
    config = validated(text, source)
    plan = planned(config, source)
    if config.ledger is not None:
        check_caps_of_plan(plan, config.ledger)
    return plan


def validated(text: str, source: str) -> ColumnsConfig:
    """Return the file's sections, each checked on its own."""
    plain = toml(text, source)
    refuse_todo(plain, source)
    try:
        return ColumnsConfig.model_validate(plain)
    except ValidationError as error:
        raise ConfigError(first_problem(error, source, ColumnsConfig, _SECTIONS)) from None


@dataclass(frozen=True, slots=True)
class DeclaredTable:
    """What a file declares, for a record budget to plan; ``budget`` is None if it states none."""

    source: str
    columns: tuple[DeclaredColumn, ...]
    budget: RecordBudget | None
    text: str = ""
    """The text of the file, so that a key can be changed in it."""
    has_ledger: bool = False


def load_declared(path: Path) -> DeclaredTable:
    """Read what a file declares about its columns, whatever mechanisms it names."""
    text = read(path)
    config = validated(text, path.name)
    if not config.columns:
        raise _no_column(path.name)
    columns = [_declared(name, s, config, path.name) for name, s in config.columns.items()]
    budget = _budget(config, path.name)
    return DeclaredTable(
        path.name,
        tuple(columns),
        budget if isinstance(budget, RecordBudget) else None,
        text,
        config.ledger is not None,
    )


def planned(config: ColumnsConfig, source: str) -> Plan:
    """Return the plan that the sections describe, without checking the caps of ``[ledger]``."""
    if not config.columns and config.label is not None:
        raise ConfigError(
            f"{source} is the file of a label party, which sends none of its columns, so there is "
            "nothing to plan. Give the file of a feature party."
        )
    if not config.columns:
        raise _no_column(source)
    columns, budget, record = _columns(config, source)
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
        record,
        config.train,
        config.data.form(),
        config.budget.score_budget(),
    )


def _no_column(source: str) -> ConfigError:
    return ConfigError(f"{source} declares no column. Add [columns.age] with bounds = [17, 90].")


def _budget(config: ColumnsConfig, source: str) -> Budget | None:
    """Return the record budget or the split that ``[budget]`` states."""
    try:
        budget = config.budget.budget()
        for name in config.budget.weights or {}:
            if name not in config.columns:
                raise ConfigError(f"{name!r} has a weight but is not a column.")
    except OpBoostError as error:
        raise ConfigError(f"{source}, [budget]: {error}") from None
    return budget


def _columns(
    config: ColumnsConfig, source: str
) -> tuple[Sequence[PrivateColumn], Budget | None, RecordPlan | None]:
    """Return the private columns, the split of their level, and the plan of a record budget."""
    budget = _budget(config, source)
    if isinstance(budget, RecordBudget):
        plan = _record_plan(budget, config, source)
        return plan.columns, plan.budget, plan
    columns = [_column(name, section, config, source) for name, section in config.columns.items()]
    try:
        if budget is not None:
            shares = budget.shares([c.name for c in columns])
            columns = [c.scaled(shares[c.name]) for c in columns]
    except OpBoostError as error:
        raise ConfigError(f"{source}, [budget]: {error}") from None
    return columns, budget, None


def _record_plan(budget: RecordBudget, config: ColumnsConfig, source: str) -> RecordPlan:
    """Return the plan of a record budget; refuse a mechanism next to it."""
    named = [name for name, section in config.columns.items() if section.mechanism is not None]
    if "mechanism" in config.model_fields_set or named:
        where = f"[columns.{named[0]}.mechanism]" if named else "[mechanism]"
        raise ConfigError(
            f"{source}: {where} and [budget] record are both given, but a record budget chooses "
            "mechanisms itself. Leave one of them out."
        )
    declared = [_declared(name, s, config, source) for name, s in config.columns.items()]
    try:
        return RecordPlan.made(budget, declared)
    except OpBoostError as error:
        raise ConfigError(f"{source}, [budget]: {error}") from None


def _declared(
    name: str, section: ColumnSection, config: ColumnsConfig, source: str
) -> DeclaredColumn:
    """Return the declaration of a column whose mechanism a record budget chooses."""
    missing = section.missing
    nominal = section.categories is not None and not section.ordered
    if missing == "flag" and nominal and section.eps_missing is None:
        missing = "symbol"  # either way, missing is one more category
    if missing == "flag":
        raise ConfigError(
            f'{source}, [columns.{name}]: missing = "flag" costs a separate level, which a record '
            'budget does not have. Write missing = "symbol": missing is then one more value, at no '
            "extra cost."
        )
    try:
        if section.categories is not None:
            categories: Any = section.categories
            return DeclaredColumn.of_categories(
                name,
                Ordered(categories) if section.ordered else categories,
                missing=missing,
                radius=section.radius,
            )
        everywhere = config.grid.domain() if "grid" in config.model_fields_set else None
        return DeclaredColumn.numeric(
            name,
            section.limits(),
            integers=section.integers,
            scale=section.scale if isinstance(section.scale, str) else tuple(section.scale),
            mapping=section.mapping,
            outside=section.outside,
            missing=missing,
            grid=section.domain() or everywhere,
            radius=section.radius,
        )
    except OpBoostError as error:
        raise ConfigError(f"{source}, [columns.{name}]: {error}") from None


def _column(name: str, section: ColumnSection, config: ColumnsConfig, source: str) -> PrivateColumn:
    mechanism = section.mechanism or config.mechanism
    try:
        for setting in ("radius", "integers"):
            if setting in section.model_fields_set:
                raise ConfigError(f"{setting} goes with a record budget, [budget] record = 4.0.")
        if section.categories is not None:
            return _of_categories(name, section, mechanism)
        missing = section.policy()
        if mechanism.entry.takes == "categories":
            raise ConfigError(
                f"{mechanism.kind} needs categories, not bounds. Use clamp-map for numbers."
            )
        made = mechanism.on(section.domain() or config.grid.domain())
        scale: Any = section.scale if isinstance(section.scale, str) else tuple(section.scale)
        limits: Any = section.limits()
        mapping = NumericMapping(made.domain, limits, scale, section.mapping)
        return PrivateColumn(name, mapping, made, section.outside, missing)
    except OpBoostError as error:
        raise ConfigError(f"{source}, [columns.{name}]: {error}") from None


def _of_categories(name: str, section: ColumnSection, mechanism: MechanismSection) -> PrivateColumn:
    assert section.categories is not None
    order = Ordered(section.categories)
    own = section.mechanism is not None and "kind" in section.mechanism.model_fields_set
    if section.ordered and mechanism.entry.takes == "categories":
        raise ConfigError(
            f"ordered = true needs a mechanism that uses distances; {mechanism.kind} ignores the "
            "order. "
            'Drop one of them, or add mechanism = { kind = "clamp-map", epsilon = 0.64 }.'
        )
    by_distance = mechanism.entry.by_distance
    if not section.ordered and by_distance and (own or mechanism.epsilon is None):
        raise ConfigError(
            f"its categories have no order, but {mechanism.kind} protects by distance. Add "
            'ordered = true, or mechanism = { kind = "unary-encoding", epsilon = 1.0 }.'
        )
    if section.ordered or (mechanism.entry.takes == "grid" and not by_distance):
        grid = Domain(1, len(order.categories))
        return PrivateColumn(
            name, OrdinalMapping(grid, order), mechanism.on(grid), section.outside, section.policy()
        )
    # Without an order, distance means nothing, so every pair is protected alike.
    listed, missing = order.categories, section.missing
    if missing in ("flag", "symbol"):
        if section.eps_missing is not None or section.missing_constant is not None:
            raise ConfigError(
                "its categories have no order, so missing is one more category at no extra cost. "
                "Leave eps_missing and missing_constant out."
            )
        missing = "raise"
        listed = listed if None in listed else (*listed, None)
    return PrivateColumn(name, None, mechanism.over(listed), section.outside, missing)


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
    """Return the IDs that are never released: those that are not also named as public."""
    return [name for name in config.align.ids() if name not in config.table.public]


_SECTIONS: dict[str, type[Section]] = {
    "grid": GridSection,
    "mechanism": MechanismSection,
    "columns": ColumnSection,
    "budget": BudgetSection,
    "table": TableSection,
    "data": DataSection,
    "booster": BoosterSection,
    "train": TrainSection,
    "card": CardSection,
    "party": PartySection,
    "label": LabelSection,
    "tls": TlsSection,
    "align": AlignSection,
    "ledger": LedgerSection,
    "limits": LimitsSection,
    "peers": PeerSection,
}
