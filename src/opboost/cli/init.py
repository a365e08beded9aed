"""``opboost init``: write a first TOML file for a table, to fill in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from opboost.cli.common import (
    DecimalOption,
    EncodingOption,
    Format,
    FormatOption,
    SeparatorOption,
    TableArgument,
    csv_format,
    echo,
    print_json,
    stderr,
)
from opboost.errors import ConfigError


def init(
    table: TableArgument,
    role: Annotated[
        Literal["feature", "label"],
        typer.Option(help="feature: releases its columns.  label: holds the column to predict."),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write.  [default: the table's name with .toml]"),
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column to predict.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    separator: SeparatorOption = None,
    encoding: EncodingOption = None,
    decimal: DecimalOption = None,
    format: FormatOption = Format.text,
) -> None:
    """Write a commented TOML file: columns, kinds and IDs, with TODO for bounds and categories.

    Bounds and categories are public, so none is taken from the table.

    \b
    Examples:
      opboost init people.csv --role feature -o shop.toml
      opboost init people.csv --role feature --label paid_back -o b.toml
      opboost init people.parquet --role label --label paid_back -o bank.toml
      opboost init 'postgresql://host/shop?table=people' --role feature -o shop.toml
    """
    from opboost.files.describe_table import describe
    from opboost.files.first_toml import first_toml
    from opboost.sources.table_address import table_address
    from opboost.storage import atomic_files

    source = table_address(table)
    stem = source.name.split(".")[0] if isinstance(source, Path) else source.stem
    target = out or Path(f"{stem or 'table'}.toml")
    if target.exists() and not force:
        raise ConfigError(f"{target} exists already. Give another name, or --force to replace it.")
    if not target.parent.is_dir():
        raise ConfigError(f"The folder {target.parent} does not exist. Make it first.")
    form = csv_format(separator, encoding, decimal)
    found = first_toml(
        describe(source, form=form),
        role,
        name=target.name,
        table=os.path.relpath(source, target.parent)
        if isinstance(source, Path)
        else source.stated_from(target.parent),
        label=label,
        data=form.settings(),
    )
    atomic_files.write(target, found.text.encode())
    if format is Format.json:
        print_json({"file": str(target), "todo": list(found.todo)})
        return
    stderr().print(f"-> {target}")
    if found.todo:
        echo(f"Left to fill in: {', '.join(found.todo)}.")
    verb = "plan" if role == "feature" else "doctor"
    echo(f"Then: opboost {verb} -c {target}")
