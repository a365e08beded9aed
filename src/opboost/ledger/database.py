"""The SQLite file of the ledger's chain: opening it, and the meaning of its errors."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from opboost.errors import DataError, in_words

UNREADABLE = (sqlite3.DatabaseError, UnicodeDecodeError, OverflowError)
"""The errors that a damaged file causes; SQLite's own message may contain invalid text."""

_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    key TEXT NOT NULL, hash BLOB NOT NULL
);
"""
_APPEND_ONLY = "".join(
    f"CREATE TRIGGER IF NOT EXISTS entries_{verb} BEFORE {verb} ON entries "
    f"BEGIN SELECT RAISE(ABORT, 'the ledger only grows'); END;\n"
    for verb in ("UPDATE", "DELETE")
)

_DISK_ERRORS = (
    *(sqlite3.SQLITE_PERM, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_READONLY),
    *(sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN),
)
"""SQLite's errors about the disk or the folder; all others are about the file's content."""


def is_disk_error(error: Exception) -> bool:
    """Return whether an error is about the disk or the folder."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_ERRORS


def unwritable(folder: Path, error: Exception) -> OSError:
    """Return the error for a disk or folder that cannot be written to."""
    return OSError(
        f"The ledger in {folder} cannot be written: {error}. Free some space, or give this user "
        "permission to write there, and run the same command again."
    )


def damaged(what: str) -> DataError:
    """Return the error for a file with content that no ledger writes."""
    return DataError(what, hint="Restore it from a backup.")


def is_read_only(file: Path) -> bool:
    """Return whether a complete ledger is on a read-only volume.

    A ledger that is being written has a journal next to it, and is incomplete without it.
    """
    journal = file.with_name(f"{file.name}-wal")
    whole = file.exists() and not (journal.exists() and journal.stat().st_size)
    return whole and not os.access(file.parent, os.W_OK)


def connected(file: Path) -> sqlite3.Connection:
    """Open the file as it is; on a read-only volume, open it read-only without a journal."""
    if is_read_only(file):
        place = f"{file.resolve().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(place, isolation_level=None, check_same_thread=False, uri=True)
    return sqlite3.connect(file, isolation_level=None, timeout=30, check_same_thread=False)


def opened(file: Path) -> sqlite3.Connection:
    """Open the file with its append-only table; a new file is readable by its owner only.

    On a read-only volume, it is opened read-only without a journal.
    """
    try:
        if is_read_only(file):
            return connected(file)
        os.close(os.open(file, os.O_RDWR | os.O_CREAT, 0o600))
        db = connected(file)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.executescript(f"BEGIN IMMEDIATE; {_TABLES} {_APPEND_ONLY} COMMIT;")
    except UNREADABLE as error:
        if is_disk_error(error):
            raise unwritable(file.parent, error) from None
        raise DataError(
            f"{file} is not a readable ledger: {in_words(error)}",
            hint="Restore it from a backup.",
        ) from None
    return db
