"""A table cut into tasks of bounded size, each of which any worker can read by itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from opboost.config import Plan
from opboost.config.csv_format import PLAIN_CSV
from opboost.files.read_tables import (
    column_names,
    csv_types,
    fingerprint,
    groups,
    kind_of,
    pieces,
    table_files,
)
from opboost.scale.part_writer import check_ids
from opboost.sources.database_table import DatabaseTable
from opboost.sources.table_address import TableAddress, TableFile

TASK_ROWS = 1_000_000
"""A task takes row groups of a Parquet file until it has this many rows; CSV files and databases
are not cut."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Some row groups of a Parquet file, or a whole CSV file or table of a database."""

    path: TableFile
    groups: tuple[int, ...] | None

    def tables(self, plan: Plan) -> Iterator[pa.Table]:
        """Yield its rows, piece by piece."""
        width = sum(len(c.release_names()) for c in plan.private) + len(plan.public)
        types = csv_types(plan.private)
        return pieces(self.path, types, None, width, groups=self.groups, form=plan.data)


def slices(files: Sequence[TableFile], rows: int = TASK_ROWS) -> list[Slice]:
    """Return the tasks of a table, in the order of its rows."""
    found: list[Slice] = []
    for file in files:
        if isinstance(file, DatabaseTable) or kind_of(file) == "csv":
            found.append(Slice(file, None))
            continue
        taken: list[int] = []
        held = 0
        for number, size in enumerate(groups(file)):
            taken.append(number)
            held += size
            if held >= rows:
                found.append(Slice(file, tuple(taken)))
                taken, held = [], 0
        if taken:
            found.append(Slice(file, tuple(taken)))
    return found


class Files:
    """A table in files that every worker can read, cut into slices."""

    def __init__(self, table: TableAddress) -> None:
        self._files = [f.absolute() if isinstance(f, Path) else f for f in table_files(table)]
        self.slices = slices(self._files)
        self.form = PLAIN_CSV
        """The format of CSV files."""

    @property
    def parts(self) -> int:
        """The number of slices."""
        return len(self.slices)

    def ids(self, names: Sequence[str]) -> Iterator[pa.Table]:
        """Yield the ID columns of all rows, piece by piece."""
        for file in self._files:
            check_ids(names, column_names(file, self.form))
            yield from pieces(file, columns=list(names), form=self.form)

    @property
    def source(self) -> object:
        """The fingerprint of the files in their current state."""
        return fingerprint(self._files)
