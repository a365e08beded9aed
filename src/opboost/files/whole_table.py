"""A whole table in memory, for the party that trains on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.columns.date_columns import as_days
from opboost.columns.private_column import PrivateColumn
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.errors import ColumnError, DataError
from opboost.files.describe_table import parsed
from opboost.files.read_tables import column_names, csv_types, kind_of, pieces, table_files
from opboost.sources.table_address import TableAddress, TableFile


def read_table(
    source: TableAddress,
    private: Sequence[PrivateColumn],
    text: Sequence[str] = (),
    most: int | None = None,
    skip: Sequence[str] = (),
    form: CsvFormat = PLAIN_CSV,
) -> pa.Table:
    """Return a whole table in memory; CSV columns get the types that they seem to have.

    Columns of ``text`` stay text, and those of ``skip`` are not read.  With ``most``, reading stops
    after the piece that reaches this many rows.
    """
    tables: list[pa.Table] = []
    for file in table_files(source):
        found = []
        wanted = [n for n in column_names(file, form) if n not in skip] if skip else None
        for piece in pieces(file, csv_types(private), columns=wanted, form=form):
            found.append(piece)
            if most is not None and sum(map(len, [*tables, *found])) >= most:
                break
        if not found:
            raise no_rows(file)
        tables.append(pa.concat_tables(found))
        if most is not None and sum(map(len, tables)) >= most:
            break
    table = pa.concat_tables(tables)
    if kind_of(table_files(source)[0]) == "csv":
        declared = {*(str(c.name) for c in private), *text}
        for i, name in enumerate(table.column_names):
            if name not in declared:
                table = table.set_column(i, name, parsed(table.column(i), form)[0])
    return table


def no_rows(file: TableFile) -> DataError:
    """Return the error for a file with a header and no rows."""
    return DataError(f"{file.name} has no rows", hint="Give a file with rows below its header.")


def label_of(table: pa.Table, label: str) -> np.ndarray[Any, Any]:
    """Return the label's column; refuse missing values."""
    column = table.column(label)
    if column.null_count:
        raise ColumnError(
            label,
            "is the label and has missing values",
            detail=f"{column.null_count} of {len(column)} rows",
            hint="Drop those rows.",
        )
    if pa.types.is_temporal(column.type):
        return as_days(table, label)
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        numbers = np.asarray(column.to_numpy())
        if not np.isfinite(numbers).all():
            count = int(np.count_nonzero(~np.isfinite(numbers)))
            raise ColumnError(
                label,
                "is the label and holds NaN or infinity",
                detail=f"{count} of {len(column)} rows",
                hint="Drop those rows.",
            )
        return numbers
    return np.array(column.to_pylist())
