"""``opboost describe``: the columns of a table, and what is left to declare."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.table import Table

from opboost.cli.common import (
    DecimalOption,
    EncodingOption,
    Format,
    FormatOption,
    SeparatorOption,
    TableArgument,
    check_release,
    csv_format,
    echo,
    print_json,
    record_line,
    stdout,
)

if TYPE_CHECKING:
    from opboost.config import Plan
    from opboost.files.describe_table import ColumnLook
    from opboost.sources.table_address import TableAddress


def describe(
    table: TableArgument,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="TOML file: show what it leaves undeclared."),
    ] = None,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    decimal: DecimalOption = None,
    format: FormatOption = Format.text,
) -> None:
    """List columns, kinds, and missing bounds.  It never shows a smallest or largest value.

    With -c, the exit status is the one that a release of the table would have.

    \b
    Examples:
      opboost describe people.csv
      opboost describe people.csv -c b.toml --format json
      opboost describe 'duckdb:shop.duckdb?table=people'
      opboost describe personen.csv --separator ';' --encoding cp1252 --decimal ,
    """
    from opboost.config.columns_file import planned, validated
    from opboost.config.toml_files import read
    from opboost.files.describe_table import describe as look
    from opboost.files.describe_table import label_roles, roles
    from opboost.files.read_tables import column_names, table_files
    from opboost.sources.table_address import table_address

    source = table_address(table)
    plan, form = None, csv_format(separator, encoding, decimal)
    known: dict[str, str] = {}
    has_id = False
    if config is not None:
        sections = validated(read(config), config.name)
        has_id = bool(sections.align.ids())
        form = csv_format(separator, encoding, decimal, sections.data.form())
        if sections.label is not None and not sections.columns:
            known = label_roles(sections, column_names(table_files(source)[0], form))
        else:
            plan = planned(sections, config.name)
            known = roles(plan)
    columns = look(source, known, form)
    _print(columns, plan, source, config, has_id, format)
    if config is not None and plan is not None:
        check_release(config, source)


def _print(
    columns: list[ColumnLook],
    plan: Plan | None,
    table: TableAddress,
    config: Path | None,
    has_id: bool,
    format: Format,
) -> None:
    if format is Format.json:
        print_json([{**asdict(c), "next_step": c.next_step} for c in columns])
        return
    _print_table(table, columns)
    left = [c for c in columns if not c.declared]
    if left:
        by_record = plan is None or plan.record is not None
        _print_toml(left, table, config, by_record, has_id)
    if plan is None:
        return
    if plan.record is not None:
        echo(plan.record.choice())
    echo(record_line(plan.guarantee().total))


def _print_table(table: TableAddress, columns: Sequence[ColumnLook]) -> None:
    rows = columns[0].rows if columns else 0
    shown = Table(title=f"{table.name}: {rows:,} rows, {len(columns)} columns")
    for title in ("column", "kind", "missing", "distinct", "declared"):
        justify: Literal["left", "right"] = "right" if title in ("missing", "distinct") else "left"
        shown.add_column(title, justify=justify, overflow="fold")  # never cut a name off
    for c in columns:
        distinct = "many" if c.distinct is None else str(c.distinct)
        shown.add_row(c.name, c.kind, f"{c.missing:,}", distinct, c.declared)
    stdout().print(shown)


def _print_toml(
    left: Sequence[ColumnLook],
    table: TableAddress,
    config: Path | None,
    by_record: bool,
    has_id: bool,
) -> None:
    """Print what is left to declare as TOML, to copy and fill in."""
    from opboost.files.first_toml import first_toml, left_to_declare

    if config is None:
        stated = str(table) if isinstance(table, Path) else shlex.quote(table.stated_from(Path()))
        echo(f"To begin with (opboost init {stated} --role feature writes it to a file):\n")
        echo(first_toml(left, "feature", name="b.toml", table=table.name).short)
        return
    echo(f"Left to declare in {config.name}:\n")
    echo(left_to_declare(left, record=by_record, has_id=has_id) + "\n")
