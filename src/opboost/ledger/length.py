"""How long the chain was at last: a small file beside the ledger's.

SQLite takes a journal that was cut short for one whose last transactions never ended, and leaves
them out without a word: released cells would be drawn anew.  The file names the last entry that
was written, so a ledger that has become shorter is noticed.  It is on the same disk, so it does
not help when the whole folder is rolled back: receipts.py is about that.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from opboost import durable
from opboost.errors import DataError

FILE = "length"


class Length(NamedTuple):
    """The last entry: its number, and its hash."""

    number: int
    hash: bytes


def note(folder: Path, number: int, digest: bytes) -> None:
    """Remember that the chain has come to an entry."""
    durable.write(folder / FILE, durable.sealed(f"{number} {digest.hex()}".encode()), mode=0o600)


def noted(folder: Path) -> Length | None:
    """How far the chain had come, if that was noted."""
    file = folder / FILE
    if not file.exists():
        return None
    try:
        number, digest = durable.unsealed(file).split()
        return Length(int(number), bytes.fromhex(digest.decode()))
    except (DataError, ValueError):
        raise DataError(
            f"{file} is damaged",
            hint="Bring back a copy of it; remove it if nothing else in the folder was damaged.",
        ) from None


def shorter(folder: Path, length: Length) -> DataError:
    """The refusal of a ledger that lacks what it once held."""
    return DataError(
        f"The ledger in {folder} has lost entries: it does not hold entry {length.number} as it "
        "was written. What they released would be drawn anew",
        hint="Bring back a copy of the whole folder, ledger.sqlite-wal included.",
    )
