"""The identities of rows: keys to match them in a job, and keys that the ledger remembers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.columns.dataframes import column, is_frame
from opboost.columns.row_ids import id_array, id_bytes
from opboost.ledger import Ledger
from opboost.parties.feature.outgoing_rows import without_forgotten
from opboost.parties.feature.party_table import JobProgress, PartyTable
from opboost.psi.row_keys import Digests, Normalisation, key_array, key_digests, row_keys


class RowIdentities:
    """The ID columns of a table, as the job spells them and as the ledger spells them."""

    def __init__(self, ids: Sequence[str], spelling: Normalisation, ledger: Ledger) -> None:
        self._ids, self._spelling, self._ledger = list(ids), spelling, ledger

    @cached_property
    def has_tombstones(self) -> bool:
        """Return whether the ledger has forgotten anybody."""
        return len(self._ledger.tombstones()) > 0

    def keys(self, piece: Any, first: int) -> pa.LargeBinaryArray:
        """Return the keys by which rows are matched: their IDs as the job spells them."""
        if isinstance(piece, pa.Table) and self._ids:
            return key_array(piece, self._ids, self._spelling, first)
        listed = [_listed(piece, n) for n in self._ids]
        keys = row_keys(listed, self._ids, self._spelling) if self._ids else []
        return pa.array(keys, pa.large_binary())

    def people(self, piece: Any, first: int, keys: pa.LargeBinaryArray) -> pa.LargeBinaryArray:
        """Return the ledger's keys of people: their IDs in its spelling, the same in every job."""
        if not self._ids:
            return pa.array(_row_numbers(first, len(piece)), pa.large_binary())
        spelling = self._ledger.ids
        if self._spelling.spelling == spelling and not self._spelling.parts:
            return keys
        if isinstance(piece, pa.Table):
            return id_array(piece, self._ids, first, spelling)
        listed = [_listed(piece, n) for n in self._ids]
        return pa.array(id_bytes(listed, self._ids, first, spelling), pa.large_binary())

    def matched(self, piece: Any, first: int, keys: pa.LargeBinaryArray) -> Digests:
        """Return the digests by which rows are matched; those of forgotten people match nobody."""
        found = key_digests(keys)
        if not self.has_tombstones:
            return found
        return without_forgotten(found, self._ledger, self.people(piece, first, keys))

    def digests(
        self,
        table: PartyTable,
        progress: JobProgress,
        look: Callable[[Any, int], object] = lambda piece, first: None,
    ) -> Digests:
        """Return the digests by which a table's rows are matched; call ``look`` with each piece."""
        found, seen = bytearray(), 0  # grows in place, so memory holds the digests once
        for piece, done, total in table.pieces():
            look(piece, seen)
            found += self.matched(piece, seen, self.keys(piece, seen)).data
            seen += len(piece)
            progress("IDs read", done, total)
        return np.frombuffer(found, np.uint8).reshape(-1, 32)


def _row_numbers(first: int, count: int) -> list[bytes]:
    """Return row numbers, which replace IDs in a table without any."""
    return [str(row).encode() for row in range(first, first + count)]


def _listed(table: Any, name: str) -> list[Any]:
    if is_frame(table) and hasattr(table, "column"):
        found: list[Any] = table.column(name).to_pylist()
        return found
    values: list[Any] = np.asarray(column(table, name)).tolist()
    return values
