"""How far the chain has come, noted in two places: in the ledger's folder and beside its key.

SQLite takes a journal that was cut short for one whose last transactions never ended, and leaves
them out without a word: released cells would be drawn anew.  The note in the folder catches that.
The note beside the key catches a folder that is gone, or was put back from an old copy.

A note has two slots that are written in turn, so one of them is whole at any moment, and no kill
leaves anything half-written.  A slot that is damaged is passed over: it is only a witness.
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
    """The note that is kept beside a key."""
    return key.with_name(f"{key.name}.witness")


def note(file: Path, head: ChainHead) -> None:
    """Remember that the chain has come to an entry."""
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
    """Like :func:`note`, beside a key; a key on a read-only volume has no witness."""
    try:
        note(beside(key), head)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise


def noted(file: Path) -> ChainHead | None:
    """How far the chain had come, if that was noted."""
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
    """The refusal of a folder without a ledger whose key says that there was one."""
    return PrivacyError(
        f"There is no ledger in {folder}, but its key {key} exists: a ledger was kept here, and "
        "without it everybody would be drawn and charged anew. Bring the folder back (is its "
        "volume mounted?), or begin an empty ledger with --new-ledger."
    )


def shorter(folder: Path, head: ChainHead) -> PrivacyError:
    """The refusal of a ledger that lacks what it once held."""
    return PrivacyError(
        f"The ledger in {folder} has lost entries: it does not hold entry {head.number} as it "
        "was written. What they released would be drawn anew. Bring back a copy of the whole "
        "folder, ledger.sqlite-wal included."
    )
