"""How long the chain was at last: a small file beside the ledger's.

SQLite takes a journal that was cut short for one whose last transactions never ended, and leaves
them out without a word: released cells would be drawn anew.  The file names the last entry that
was written, so a ledger that has become shorter is noticed.  It is on the same disk, so it does
not help when the whole folder is rolled back: receipts.py is about that.

The file has two places that are written in turn, so one of them is whole at any moment, and no
kill leaves anything half-written.  A place that is damaged is passed over: it is only a witness.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from opboost import durable
from opboost.errors import DataError

FILE = "length"
_PLACE = 256


class Length(NamedTuple):
    """The last entry: its number, and its hash."""

    number: int
    hash: bytes


def note(folder: Path, number: int, digest: bytes) -> None:
    """Remember that the chain has come to an entry."""
    text = durable.sealed(f"{number} {digest.hex()}".encode()).ljust(_PLACE, b"\n")
    file = folder / FILE
    handle = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        with durable.naming(file):
            os.lseek(handle, number % 2 * _PLACE, os.SEEK_SET)
            os.write(handle, text)
            os.fsync(handle)
    finally:
        os.close(handle)


def noted(folder: Path) -> Length | None:
    """How far the chain had come, if that was noted."""
    file = folder / FILE
    data = file.read_bytes() if file.exists() else b""
    places = (_read(data[start : start + _PLACE]) for start in (0, _PLACE))
    return max((place for place in places if place is not None), default=None)


def _read(place: bytes) -> Length | None:
    end = place.rfind(b"\n#sha256 ")
    if end < 0 or durable.sealed(place[:end]).ljust(_PLACE, b"\n") != place:
        return None
    number, digest = place[:end].split()
    return Length(int(number), bytes.fromhex(digest.decode()))


def shorter(folder: Path, length: Length) -> DataError:
    """The refusal of a ledger that lacks what it once held."""
    return DataError(
        f"The ledger in {folder} has lost entries: it does not hold entry {length.number} as it "
        "was written. What they released would be drawn anew",
        hint="Bring back a copy of the whole folder, ledger.sqlite-wal included.",
    )
