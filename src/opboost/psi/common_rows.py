"""The common rows and their order."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from opboost._typing import BoolArray, IntArray
from opboost.errors import DataError, WireError
from opboost.psi.point_matching import order_by_first, order_of
from opboost.psi.row_keys import Digests
from opboost.psi.table_keys import PIECE_ROWS


def marked(places: IntArray, count: int) -> BoolArray:
    """Return a set of places below ``count`` as booleans."""
    bits = np.zeros(count, dtype=np.bool_)
    bits[places] = True
    return bits


def packed(places: IntArray, count: int) -> bytes:
    """Return a set of places below ``count`` as a bitmap."""
    return np.packbits(marked(places, count)).tobytes()


def unpacked(bitmap: bytes, count: int) -> BoolArray:
    """Return a bitmap as booleans; refuse one of another length, or with a bit beyond ``count``."""
    whole = np.unpackbits(np.frombuffer(bitmap, dtype=np.uint8)).astype(np.bool_)
    if len(bitmap) != -(-count // 8) or whole[count:].any():
        raise WireError(f"A bitmap of {len(bitmap):,} bytes does not fit {count:,} points.")
    return whole[:count]


@dataclass(frozen=True, slots=True)
class Common:
    """Which rows of a table are common, as a bitmap that holds no key.

    The bits are in the order of the keys' digests, which is also the order of the common rows at
    every party.  ``table`` is a digest of all keys, which detects a table that has changed since.
    """

    table: bytes
    bits: bytes
    size: int

    @classmethod
    def of(cls, digests: Digests, rows: IntArray) -> Common:
        """Return the common rows, given by number, of the table with these keys."""
        order = _by_digest(digests)
        places = np.flatnonzero(marked(rows, len(digests))[order])
        return cls(_table(digests, order), packed(places, len(digests)), len(places))

    def rows(self, digests: Digests) -> IntArray:
        """Return the numbers of the common rows, in the order that all parties share."""
        order = _by_digest(digests)
        if self.table != _table(digests, order):
            raise DataError(
                "The table's IDs are not those that were aligned",
                hint="Restore the table, or ask the label party to begin a new job (--again).",
            )
        return order[unpacked(self.bits, len(digests))]

    def to_bytes(self) -> bytes:
        """Return the content of a file."""
        return self.table + self.size.to_bytes(8, "big") + self.bits

    @classmethod
    def from_bytes(cls, data: bytes) -> Common:
        """Read the content of a file; refuse a damaged one."""
        found = cls(data[:32], data[40:], int.from_bytes(data[32:40], "big"))
        if len(data) <= 40 or int.from_bytes(found.bits, "big").bit_count() != found.size:
            raise DataError(
                "The file with the common rows is damaged",
                hint="Restore a copy of it, or begin a new job (--again).",
            )
        return found


def in_shared_order(digests: Digests, rows: IntArray) -> IntArray:
    """Return these rows in the order that all parties share: by the digests of their keys.

    >>> digests = np.zeros((3, 32), np.uint8)
    >>> digests[:, 0] = 7, 9, 8
    >>> in_shared_order(digests, np.array([1, 0])).tolist()
    [0, 1]
    """
    words = digests.view(">u8")
    first = words[rows, 0].astype(np.uint64)
    return rows[order_by_first(first, lambda places: words[rows[places]])]


def _by_digest(digests: Digests) -> IntArray:
    return order_of(np.ascontiguousarray(digests).view(">u8"))


def _table(digests: Digests, order: IntArray) -> bytes:
    whole = hashlib.sha256()
    for start in range(0, len(order), PIECE_ROWS):
        whole.update(digests[order[start : start + PIECE_ROWS]].tobytes())
    return whole.digest()
