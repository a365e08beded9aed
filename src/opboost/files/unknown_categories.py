"""Treat undeclared categories of private columns as missing."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost.columns.dataframes import categories
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError
from opboost.grid import NumericMapping


def unknown_as_missing(
    table: pa.Table, private: Iterable[PrivateColumn]
) -> tuple[pa.Table, dict[str, int]]:
    """Return the table with undeclared categories missing, and their number per column.

    A column that cannot have missing values is refused; the error shows no value.
    """
    counts: dict[str, int] = {}
    for column in private:
        if isinstance(column.mapping, NumericMapping):
            continue
        name, declared = str(column.name), column.categories
        found = categories(table, name)
        strange = np.array([not isinstance(v, Hashable) or v not in declared for v in found.values])
        unknown = np.append(strange, False)[found.codes]  # code −1, a missing value, picks the last
        count = int(unknown.sum())
        if not count:
            continue
        if not column.takes_gaps:
            raise ColumnError(
                name,
                "holds undeclared categories, and cannot have missing values",
                detail=f"{count} of {len(unknown)} rows",
                hint="Before training, list them under categories of "
                f'[columns.{name}], or write missing = "symbol" there (without a record budget: '
                'nan as one more category, or missing = "flag" if they are ordered).',
            )
        values = table.column(name)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        gaps = pc.if_else(pa.array(unknown), pa.scalar(None, values.type), values)
        table = table.set_column(table.column_names.index(name), name, gaps)
        counts[name] = count
    return table, counts
