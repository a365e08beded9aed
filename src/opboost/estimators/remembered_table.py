"""What a transformer released, so that the same table is not released twice."""

from __future__ import annotations

import hashlib
import secrets
import weakref
from collections.abc import Hashable
from typing import Any

import numpy as np

from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import Prepared, PrivateColumn

Release = dict[Hashable, list[OutColumn]]


class TableContent:
    """A keyed digest of private columns, computed column by column."""

    def __init__(self, key: bytes) -> None:
        self._digest = hashlib.blake2b(key=key)

    def add(self, private: PrivateColumn, cells: Prepared) -> None:
        """Add one private column."""
        self._digest.update(repr(private.name).encode())
        self._digest.update(np.ascontiguousarray(cells.raw).tobytes())
        self._digest.update(np.packbits(cells.missing).tobytes())

    def digest(self) -> bytes:
        """Return the digest of all columns added so far."""
        return self._digest.digest()


class ReleaseMemory:
    """Releases by table **object**, for as long as the object lives and its content is unchanged.

    Releases are never looked up only by content: two people with equal records would then get
    equal noise, and anyone who knows one record could test whether another equals it.
    """

    def __init__(self) -> None:
        self.made = 0
        self._key = secrets.token_bytes(32)
        self._kept: dict[int, tuple[weakref.ref[Any], bytes, Release]] = {}

    def content(self) -> TableContent:
        """Return an empty digest under this memory's key."""
        return TableContent(self._key)

    def find(self, table: object, content: TableContent) -> Release | None:
        """Return the release of this object, or None if its private columns have changed since."""
        entry = self._kept.get(id(table))
        if entry is None or entry[0]() is not table or entry[1] != content.digest():
            return None
        return entry[2]

    def keep(self, table: object, content: TableContent, release: Release) -> None:
        """Remember a release if the table supports weak references."""
        self.made += 1
        number, memory = id(table), weakref.ref(self)

        def forget(_: object) -> None:
            if (known := memory()) is not None:  # a strong reference would keep both in a cycle
                known._kept.pop(number, None)

        try:
            watch = weakref.ref(table, forget)
        except TypeError:
            return
        self._kept[number] = (watch, content.digest(), release)
