"""``opboost plan``: what a record budget sends about one person, as a table for signing."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from rich.table import Table

from opboost.cli.common import (
    ConfigOption,
    Format,
    FormatOption,
    check_release,
    echo,
    print_json,
    stdout,
    warn_of_total,
)

if TYPE_CHECKING:
    from opboost.budgets.record_plan import RecordPlan
    from opboost.config import Plan

SCOPE = (
    "This total covers these columns of this party, for one row per person and one period of the "
    "ledger. It does not cover what other parties send, nor which people are in the table."
)
"""What the printed total covers; the plan's own sentence does not say it."""


def plan(config: ConfigOption, format: FormatOption = Format.text) -> None:
    """Show what is sent about one person: columns, cells, levels, and the total.

    For a party's file, it also runs the checks of a release (caps, columns, IDs, values,
    certificates) and exits with the same status.

    For a label party's file, it shows how useful each received column is, with error bars, once a
    pilot or the complete release has arrived.

    \b
    Examples:
      opboost plan -c b.toml
      opboost plan -c b.toml --format json
      opboost plan -c bank.toml
    """
    from opboost.config import load
    from opboost.errors import ConfigError

    if _is_label_file(config):
        _print_usefulness(config, format)
        return
    plan = load(config)
    if plan.record is None:
        raise ConfigError(
            f"{config.name} states no record total. Add [budget] record = 4.0, and leave "
            "[mechanism] out; opboost certify shows what mechanisms that you choose reveal."
        )
    warn_of_total(plan.total)
    _print(plan, plan.record, config, format)
    check_release(config)


def _is_label_file(config: Path) -> bool:
    from opboost.config.columns_file import validated
    from opboost.config.toml_files import read

    found = validated(read(config), config.name)
    return found.label is not None and found.party is not None and not found.columns


def _print_usefulness(config: Path, format: Format) -> None:
    """Print how useful each column of each party is, by the released rows."""
    from opboost.config.job_file import load_label
    from opboost.transport.label.pilot_figures import parties_usefulness

    job, found = parties_usefulness(load_label(config), config.name)
    if format is Format.json:
        print_json({"job": job, "parties": [asdict(party) for party in found]})
        return
    for party in found:
        people = "everybody" if party.rows == "release" else "its pilot"
        table = Table(title=f"{party.party}: usefulness of each column, from {people}")
        for title in ("column", "rows", "explained", "± error", "chance of use", "weight"):
            table.add_column(title, justify="left" if title == "column" else "right")
        for line in party.columns:
            error = "?" if math.isnan(line.error) else f"{line.error:.2%}"
            weight = "1" if line.weight == 1 else f"1/{1 / line.weight:.0f}"
            table.add_row(
                str(line.name),
                f"{line.rows:,}",
                f"{line.explained:.2%}",
                error,
                f"{line.chance:.0%}",
                weight,
            )
        stdout().print(table)
    echo(
        f"Job {job}. Explained: the share of the label's variance that the noisy column explains, "
        "minus what it would explain by chance. Computed from released rows, so it reveals nothing "
        "more about anybody."
    )


def _print(plan: Plan, made: RecordPlan, config: Path, format: Format) -> None:
    from opboost.promises import large_total_warning

    score = plan.score
    if format is Format.json:
        print_json(
            {
                "total": made.total,
                "columns_per_row": made.columns_per_row,
                "rows": made.budget.rows,
                "columns": [asdict(line) for line in made.lines],
                "meaning": made.meaning(),
                "scope": SCOPE,
                "warning": large_total_warning(plan.total),
                **({} if score is None else {"scores": score.total, "in_all": plan.total}),
            }
        )
        return
    shown = Table(title=f"What {config.name} sends about one person")
    rows = made.table()
    for title in rows[0]:
        justify: Literal["left", "right"] = "left" if title in ("column", "mechanism") else "right"
        shown.add_column(title, justify=justify, no_wrap=title == "sent for")
    for row in rows:
        shown.add_row(*row.values())
    stdout().print(shown)
    echo(made.choice())
    echo(made.meaning())
    echo(SCOPE)
    if score is not None:
        echo(
            f"Predictions may also release scores of {score.models} "
            f"model{'s' if score.models > 1 else ''} per period, each at level {score.level:g}: "
            f"in all, at most {plan.total:g} about a person in the training data."
        )
