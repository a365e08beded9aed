"""A feature party's table: checks its column names, and reads raw or stored rows in pieces."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from opboost._typing import BoolArray
from opboost.columns.dataframes import column_names, rows_of
from opboost.config import Plan
from opboost.config.csv_format import PLAIN_CSV
from opboost.errors import ColumnError
from opboost.files.read_tables import column_names as file_columns
from opboost.files.read_tables import csv_types, pieces, size_of, table_files
from opboost.files.stored_release import StoredRelease
from opboost.parties.feature.outgoing_rows import RawRows, StoredRows
from opboost.parties.feature.unknown_people import known_people, nobody
from opboost.sources.table_address import TableAddress

JobProgress = Callable[[str, int, int], None]
"""A callback that receives the name of a step, the amount done so far, and the total."""


class PartyTable:
    """The table whose columns a feature party releases: in memory, in files or in a database.

    For a table that is a stored release, ``stored`` holds the columns and what was drawn.  With
    ``has_unknown``, rows without any value are people whom the party does not know.
    """

    def __init__(
        self,
        table: Any,
        plan: Plan,
        ids: Sequence[str],
        stored: StoredRelease | None,
        *,
        has_unknown: bool = False,
    ) -> None:
        self._table, self._plan, self._ids, self.stored = table, plan, list(ids), stored
        self._has_unknown = has_unknown
        self._check_names()

    def pieces(self) -> Iterator[tuple[Any, int, int]]:
        """Yield the table in pieces, each with the amount read so far and the total."""
        if not isinstance(self._table, TableAddress):
            rows = len(self._table)
            yield self._table, rows, rows
            return
        if self.stored is not None:
            self.stored.check_parts()
        files = table_files(self._table)
        total, before = sum(map(size_of, files)), 0
        width = sum(len(c.release_names()) for c in self._plan.private) + len(self._ids)
        form = self._plan.data if self.stored is None else PLAIN_CSV
        for file in files:
            used = 0

            def note(count: int) -> None:
                nonlocal used
                used = count

            for piece in pieces(file, csv_types(self._plan.private), note, width, form=form):
                yield piece, before + used, total
            before += size_of(file)

    def rows(self, piece: Any, first: int) -> RawRows | StoredRows:
        """Return the rows of a piece: raw rows, or rows of a stored release."""
        if self.stored is not None:
            return StoredRows(tuple(self.stored.columns(piece)), self.stored.manifest.release)
        known = self.known(piece)
        if known is not None and not known.any():
            return RawRows(tuple(nobody(c, len(piece)) for c in self._plan.private))
        if known is not None:  # replace unknown rows, which messages must not count, by a known one
            place = np.arange(len(piece))
            piece = rows_of(piece, np.where(known, place, int(np.argmax(known))))
        return RawRows(tuple(c.prepare(piece, first) for c in self._plan.private))

    def known(self, piece: Any) -> BoolArray | None:
        """Return which rows of a piece are people whom the party knows; None if all are."""
        if not self._has_unknown:
            return None
        known = known_people(piece, self._plan.private)
        return None if known.all() else known

    def people(self) -> int:
        """Return how many rows are people whom the party knows."""
        found = 0
        for piece, _, _ in self.pieces():
            known = self.known(piece)
            found += len(piece) if known is None else int(known.sum())
        return found

    def _check_names(self) -> None:
        files = isinstance(self._table, TableAddress)
        form = self._plan.data if self.stored is None else PLAIN_CSV
        tables: list[list[Hashable]] = (
            [list(file_columns(f, form)) for f in table_files(self._table)]
            if files
            else [column_names(self._table)]
        )
        for names in tables:
            for name in [*self._declared(), *self._ids]:
                if name not in names:
                    raise ColumnError(
                        name, "is declared but not in the table", hint=f"It has {names}."
                    )
            if files and self.stored is None:
                kept = [str(n) for n in names if n not in self._ids]
                named = [*self._plan.drop, *self._plan.public]
                self._plan.check_names([*kept, *(i for i in named if i in self._ids)])

    def _declared(self) -> list[Hashable]:
        """Return the columns that a table must have; for a stored release, the released ones."""
        if self.stored is not None:
            return [name for c in self._plan.private for name in c.release_names()]
        return [c.name for c in self._plan.private]
