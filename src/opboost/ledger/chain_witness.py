"""Notes of the chain's last entry in two places: in the ledger's folder and next to its key.

SQLite treats a truncated journal like one whose last transactions never committed, and drops them
silently: released cells would be drawn again.  The note in the folder catches that.  The note
next to the key catches a folder that is gone or was restored from an old copy.

A note has two slots that are written in turn, so one of them is valid at any moment, even after a
kill.  A damaged slot is ignored, because a note is only additional evidence.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

from opboost.errors import PrivacyError
from opboost.storage import atomic_files

FOLDER_NOTE = "length"
_SLOT_BYTES = 256
_READ_ONLY = (errno.EROFS, errno.EACCES, errno.EPERM)


class ChainHead(NamedTuple):
    """The last entry of a chain: its number, and its hash."""

    number: int
    hash: bytes


def beside(key: Path) -> Path:
    """Return the path of the note next to a key."""
    return key.with_name(f"{key.name}.witness")


def note(file: Path, head: ChainHead) -> None:
    """Write down the last entry of the chain."""
    text = atomic_files.with_checksum(f"{head.number} {head.hash.hex()}".encode()).ljust(
        _SLOT_BYTES, b"\n"
    )
    handle = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        with atomic_files.naming(file):
            os.lseek(handle, head.number % 2 * _SLOT_BYTES, os.SEEK_SET)
            os.write(handle, text)
            os.fsync(handle)
    finally:
        os.close(handle)


def note_beside(key: Path, head: ChainHead) -> None:
    """Write the note next to a key, as :func:`note` does, unless the key's volume is read-only."""
    try:
        note(beside(key), head)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise


def noted(file: Path) -> ChainHead | None:
    """Return the last entry that was noted, or None."""
    data = file.read_bytes() if file.exists() else b""
    slots = (_read(data[start : start + _SLOT_BYTES]) for start in (0, _SLOT_BYTES))
    return max((slot for slot in slots if slot is not None), default=None)


def _read(slot: bytes) -> ChainHead | None:
    end = slot.rfind(b"\n#sha256 ")
    if end < 0 or atomic_files.with_checksum(slot[:end]).ljust(_SLOT_BYTES, b"\n") != slot:
        return None
    number, digest = slot[:end].split()
    return ChainHead(int(number), bytes.fromhex(digest.decode()))


def missing(folder: Path, key: Path) -> PrivacyError:
    """Return the error for a folder without a ledger although its key exists."""
    return PrivacyError(
        f"There is no ledger in {folder}, but its key {key} exists: a ledger was kept here, and "
        "without it everybody's noise would be drawn and charged again. Restore the folder (is its "
        "volume mounted?), or start an empty ledger with --new-ledger."
    )


def shorter(folder: Path, head: ChainHead) -> PrivacyError:
    """Return the error for a ledger that has lost entries."""
    return PrivacyError(
        f"The ledger in {folder} has lost entries: it does not hold entry {head.number} as it "
        "was written. What they released would be drawn again. Restore the whole folder from a "
        "backup, with ledger.sqlite-wal."
    )
