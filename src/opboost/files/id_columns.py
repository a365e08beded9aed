"""The ID columns of a table in files or a database: read whenever they are needed, never kept."""

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
    """Who the rows of a table are about; files that changed since are refused."""

    table: TableAddress
    names: tuple[str, ...]
    form: CsvFormat
    seen: Fingerprint

    @classmethod
    def of(cls, table: TableAddress, names: list[str], form: CsvFormat = PLAIN_CSV) -> IdColumns:
        """Those of a table as it is now."""
        return cls(table, tuple(names), form, fingerprint(table_files(table)))

    def keys(self, rule: Normalisation, aside: Path | None) -> Keys:
        """Every row's key, none of which may stand twice; ``aside`` is a folder for the check."""
        return Keys.counted(lambda: self._keys(rule), aside)

    def _keys(self, rule: Normalisation) -> Iterator[list[bytes]]:
        first = 0
        for piece in self._pieces():
            yield table_keys(piece, self.names, rule, first)
            first += piece.num_rows

    def rows(self, wanted: IntArray) -> pa.Table:
        """The IDs of some rows, as they stand in the files."""
        return pa.concat_tables(self._pieces()).take(pa.array(wanted))

    def _pieces(self) -> Iterator[pa.Table]:
        files = table_files(self.table)
        if fingerprint(files) != self.seen:
            raise DataError(
                "The table changed while the job used it",
                hint="Bring it back as it was and start again, or begin a new job with --again.",
            )
        for file in files:
            width = PIECE_CELLS // PIECE_ROWS
            yield from pieces(file, columns=self.names, width=width, form=self.form)
