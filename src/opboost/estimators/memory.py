"""What a transformer released, so that the same table is not released twice."""

from __future__ import annotations

import hashlib
import secrets
import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np

from opboost.columns import Prepared, PrivateColumn
from opboost.frames import OutColumn

Release = dict[Hashable, list[OutColumn]]
Columns = list[tuple[PrivateColumn, Prepared]]


class ReleaseMemory:
    """Releases by table **object**, for as long as the object lives and its content stays.

    Never by content alone: two people with equal records would then get equal noise, and whoever
    knows one record could test whether another equals it.
    """

    def __init__(self) -> None:
        self.made = 0
        self._key = secrets.token_bytes(32)
        self._kept: dict[int, tuple[weakref.ref[Any], bytes, Release]] = {}

    def find(self, table: object, columns: Columns) -> Release | None:
        """The release of this object, if its private columns have not changed since."""
        entry = self._kept.get(id(table))
        if entry is None or entry[0]() is not table or entry[1] != self._digest(columns):
            return None
        return entry[2]

    def keep(self, table: object, columns: Columns, release: Release) -> None:
        """Remember a release; an object that cannot be watched is not remembered."""
        self.made += 1
        number = id(table)
        try:
            watch = weakref.ref(table, lambda _: self._kept.pop(number, None))
        except TypeError:
            return
        self._kept[number] = (watch, self._digest(columns), release)

    def _digest(self, columns: Columns) -> bytes:
        digest = hashlib.blake2b(key=self._key)
        for private, cells in columns:
            digest.update(repr(private.name).encode())
            digest.update(np.ascontiguousarray(cells.raw).tobytes())
            digest.update(np.packbits(cells.missing).tobytes())
        return digest.digest()
