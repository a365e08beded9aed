"""The rows that a feature party releases: raw or stored, all of them or only the common ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from opboost._typing import BoolArray, IntArray
from opboost.columns.dataframes import OutColumn, hidden
from opboost.columns.private_column import Prepared
from opboost.errors import DataError
from opboost.ledger import Drawing, Ledger
from opboost.ledger.forget_person import forgotten
from opboost.psi.row_keys import Digests
from opboost.psi.table_keys import Keys


@dataclass(frozen=True, slots=True)
class RawRows:
    """Some rows on the grid, before any noise is added."""

    prepared: tuple[Prepared, ...]

    def where(self, here: BoolArray) -> RawRows:
        """Return some of these rows."""
        return RawRows(tuple(p.where(here) for p in self.prepared))

    def released(self, drawing: Drawing, people: pa.LargeBinaryArray) -> list[OutColumn]:
        """Desensitise the rows through the ledger."""
        return [c for columns in drawing.draw(people, self.prepared) for c in columns]


@dataclass(frozen=True, slots=True)
class StoredRows:
    """Some rows of an earlier release, whose name is ``release``."""

    columns: tuple[OutColumn, ...]
    release: str

    def where(self, here: BoolArray) -> StoredRows:
        """Return some of these rows."""
        return StoredRows(tuple(c.where(here) for c in self.columns), self.release)

    def released(self, drawing: Drawing, people: pa.LargeBinaryArray) -> list[OutColumn]:
        """Return the rows, with gaps for forgotten people; the ledger records the release."""
        drawing.repeat(people, self.release)
        gone = drawing.forgotten(people)
        return [hidden(c, gone) for c in self.columns] if gone.any() else list(self.columns)


def released_of(
    first: BoolArray, rows: RawRows | StoredRows, drawing: Drawing, people: pa.LargeBinaryArray
) -> list[OutColumn]:
    """Release only the rows in ``first``; all others are gaps, for which nothing is drawn."""
    out = []
    for column in rows.where(first).released(drawing, people.filter(pa.array(first))):
        missing, values = ~first, np.zeros(len(first), dtype=column.values.dtype)
        values[first] = column.values
        if column.missing is not None:
            missing[first] = column.missing
        out.append(OutColumn(column.name, values, missing))
    return out


def without_forgotten(digests: Digests, ledger: Ledger, people: pa.LargeBinaryArray) -> Digests:
    """Return row digests in which forgotten people have digests that match nobody's.

    A private alignment then does not reveal them to the label party.
    """
    gone = forgotten(ledger)(people)
    if not gone.any():
        return digests
    names = ledger.people(people)[gone]
    other = [hashlib.sha256(b"opboost forgotten\0" + name.tobytes()).digest() for name in names]
    digests = digests.copy()
    digests[gone] = np.frombuffer(b"".join(other), dtype=np.uint8).reshape(-1, 32)
    return digests


@dataclass(frozen=True)
class ChosenRows:
    """The common rows of a table, in the order that all parties share."""

    digests: Digests
    rows: IntArray

    def ids(self, nonce: bytes) -> bytes:
        """Return the keyed digest of the rows' keys."""
        return Keys.of_digests(self.digests, self.rows).digest(nonce)

    def among(self, first: int, digests: Digests) -> BoolArray:
        """Return which rows of the piece beginning at ``first`` are common; refuse changed keys."""
        whole = slice(first, first + len(digests))
        if not np.array_equal(digests, self.digests[whole]):
            raise DataError("The table's IDs changed while it was read", hint="Join again.")
        return self._mask[whole]

    @cached_property
    def _mask(self) -> BoolArray:
        mask = np.zeros(len(self.digests), dtype=np.bool_)
        mask[self.rows] = True
        return mask

    def order(self) -> IntArray:
        """Return, for each common row in the shared order, its place among them in table order."""
        return np.searchsorted(np.sort(self.rows), self.rows)
