"""``opboost describe``: the columns of a table, and what is still to be declared."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from opboost.cli.common import Format, FormatOption, print_json, stdout


def describe(
    table: Annotated[Path, typer.Argument(help="CSV or Parquet file, or a folder of them.")],
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="TOML file, to see what it leaves open.")
    ] = None,
    format: FormatOption = Format.text,
) -> None:
    """List columns, kinds, and which bounds are missing.  Shows no smallest or largest value.

    \b
    Examples:
      opboost describe people.csv
      opboost describe people.csv -c b.toml --format json
    """
    from opboost.config import load
    from opboost.files.describe_table import describe as look

    columns = look(table, load(config) if config else None)
    if format is Format.json:
        print_json([{**asdict(c), "next_step": c.next_step} for c in columns])
        return
    rows = columns[0].rows if columns else 0
    shown = Table(title=f"{table.name}: {rows:,} rows, {len(columns)} columns")
    for title in ("column", "kind", "missing", "distinct", "declared", "to declare"):
        shown.add_column(title, justify="right" if title in ("missing", "distinct") else "left")
    for c in columns:
        distinct = "many" if c.distinct is None else str(c.distinct)
        shown.add_row(c.name, c.kind, f"{c.missing:,}", distinct, c.declared, c.next_step)
    stdout().print(shown)
