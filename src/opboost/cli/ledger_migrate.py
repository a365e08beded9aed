"""``opboost ledger migrate``: convert a ledger of version 0.1 to the current format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from opboost.cli.common import ConfigOption, Format, FormatOption, print_json
from opboost.errors import ColumnError, ConfigError

if TYPE_CHECKING:
    from opboost.columns.row_ids import Spelling
    from opboost.config.csv_format import CsvFormat
    from opboost.ledger.migrated_runs import Ids
    from opboost.sources.table_address import TableAddress


def migrate(
    config: ConfigOption,
    table: Annotated[
        list[str] | None,
        typer.Option(
            help="A table with IDs of people in the ledger; may be repeated; default: the party's "
            "table.",
        ),
    ] = None,
    leave_out_unknown: Annotated[
        bool,
        typer.Option(
            "--leave-out-unknown",
            help="Leave out people who are in no table; they will be drawn and charged again.",
        ),
    ] = False,
    format: FormatOption = Format.text,
) -> None:
    """Convert a ledger of version 0.1 to the current format, and keep the old file.

    Version 0.1 kept no IDs, so the tables with the people of earlier releases are needed.

    \b
    Examples:
      opboost ledger migrate -c shop.toml
      opboost ledger migrate -c shop.toml --table 2024.csv --table 2025.csv
    """
    from opboost.config.columns_file import validated
    from opboost.config.toml_files import read
    from opboost.ledger.migration import migrate as run
    from opboost.ledger.open_ledger import declared_section
    from opboost.sources.table_address import table_address

    section = declared_section(config)
    sections = validated(read(config), config.name)
    names, tables = sections.align.ids(), [table_address(t) for t in table or []]
    if not tables and sections.party is not None:
        tables = [table_address(sections.party.table, config.parent)]
    if not tables:
        raise ConfigError(
            f"{config.name} names no table. Give those that were released: --table people.csv"
        )
    if not names:
        raise ConfigError(f'{config.name} names no ID column. Add [align] with id = "customer_id".')
    spelling = section.ids or "canonical"
    done = run(
        Path(section.folder),
        Path(section.key),
        _ids(tables, names, spelling, sections.data.form()),
        spelling=spelling,
        changed=section.changed or "keep",
        leave_out_unknown=leave_out_unknown,
    )
    if format is Format.json:
        print_json(
            {
                "people": done.people,
                "left_out": done.left_out,
                "entries": done.entries,
                "kept": str(done.kept),
            }
        )
        return
    typer.echo(
        f"migrated: {done.people:,} people, {done.left_out:,} left out, {done.entries} entries; "
        f"the old file is {done.kept}"
    )


def _ids(
    tables: Sequence[TableAddress], names: Sequence[str], spelling: Spelling, form: CsvFormat
) -> Iterator[Ids]:
    """Yield the IDs of some tables, as version 0.1 spelt them and as the new ledger does."""
    import pyarrow as pa

    from opboost.columns.row_ids import id_array, id_bytes
    from opboost.files.read_tables import column_names, pieces, table_files
    from opboost.psi.row_keys import Normalisation

    trimmed = Normalisation(trim=True, case="keep", unicode="none")
    for file in [file for table in tables for file in table_files(table)]:
        there = column_names(file, form)
        for name in names:
            if name not in there:
                raise ColumnError(name, f"is not in {file.name}", hint=f"It has {there}.")
        seen = 0
        for piece in pieces(file, columns=names, form=form):
            then = id_bytes(
                [trimmed.column(piece.column(name).to_pylist()) for name in names], names, seen
            )
            yield pa.array(then, pa.large_binary()), id_array(piece, names, seen, spelling)
            seen += piece.num_rows
