"""The ID columns of a table in files or a database, read when needed and never stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from opboost._typing import IntArray
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.errors import DataError
from opboost.files.read_tables import (
    PIECE_CELLS,
    Fingerprint,
    fingerprint,
    pieces,
    table_files,
)
from opboost.psi.row_keys import Normalisation, table_keys
from opboost.psi.table_keys import PIECE_ROWS, Keys
from opboost.sources.table_address import TableAddress


@dataclass(frozen=True, slots=True)
class IdColumns:
    """The IDs of the people in a table's rows; a table that has changed is refused."""

    table: TableAddress
    names: tuple[str, ...]
    form: CsvFormat
    seen: Fingerprint

    @classmethod
    def of(cls, table: TableAddress, names: list[str], form: CsvFormat = PLAIN_CSV) -> IdColumns:
        """Return the ID columns of a table in its current state."""
        return cls(table, tuple(names), form, fingerprint(table_files(table)))

    def keys(self, rule: Normalisation, aside: Path | None) -> Keys:
        """Return every row's key, and refuse duplicates; the check's files go to ``aside``."""
        return Keys.counted(lambda: self._keys(rule), aside)

    def _keys(self, rule: Normalisation) -> Iterator[list[bytes]]:
        first = 0
        for piece in self._pieces():
            yield table_keys(piece, self.names, rule, first)
            first += piece.num_rows

    def rows(self, wanted: IntArray) -> pa.Table:
        """Return the IDs of some rows, as written in the files."""
        return pa.concat_tables(self._pieces()).take(pa.array(wanted))

    def _pieces(self) -> Iterator[pa.Table]:
        files = table_files(self.table)
        if fingerprint(files) != self.seen:
            raise DataError(
                "The table changed while the job used it",
                hint="Restore it and start again, or start a new job with --again.",
            )
        for file in files:
            width = PIECE_CELLS // PIECE_ROWS
            yield from pieces(file, columns=self.names, width=width, form=self.form)
