"""The chain of entries: an append-only SQLite file; each entry authenticates those before it.

An entry's hash is ``HMAC(key, previous hash, number, time, kind, body)``; a body names the
SHA-256 of each file that was written with it.  So a single changed bit anywhere fails
verification, and nobody without the key can make a chain that verifies.  Cutting off the end
leaves a valid, shorter chain; chain_witness.py and receipts.py detect that.
"""

from __future__ import annotations

import hmac
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opboost.errors import DataError, in_words
from opboost.ledger.database import (
    UNREADABLE,
    connected,
    damaged,
    is_disk_error,
    opened,
    unwritable,
)
from opboost.ledger.key_file import Key


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the chain."""

    number: int
    at: str
    kind: str
    text: str
    key: str
    hash: bytes

    @property
    def body(self) -> dict[str, Any]:
        """The content of the entry; reading a damaged entry raises an error."""
        try:
            found: dict[str, Any] = json.loads(self.text)
        except (ValueError, RecursionError):
            raise self.damaged() from None
        if not isinstance(found, dict) or not _has_fields(found, _FIELDS.get(self.kind, {})):
            raise self.damaged()
        return found

    def damaged(self) -> DataError:
        """Return the error for an entry whose content does not fit its kind."""
        return damaged(f"Entry {self.number} of the ledger is damaged")


_JOB = {"job": str, "recipient": str}
_REWRITTEN: dict[str, type] = {
    "runs": list,
    "gone": list,
    "members": list,
    "tombstones": list,
    "to": str,
}
_FIELDS: dict[str, dict[str, type]] = {
    "open": {"format": int},
    "align": {**_JOB, "rows": int, "theirs": int, "points": str, "tag": str},
    "aligned": {**_JOB, "common": int, "bitmap": str},
    "reserve": {**_JOB, "people": str, "columns": list},
    "commit": {**_JOB, "reservation": int, "runs": list, "members": list},
    "abort": {**_JOB, "reservation": int, "reason": str},
    "answer": {**_JOB, "cuts": dict, "query": str},
    "renew": {"attribute": str, "changed": str},
    "rotate": _REWRITTEN,
    "merge": _REWRITTEN,
    "forget": {**_REWRITTEN, "outputs": dict},
    "migrate": {"runs": list, "history": list},
}
"""The fields that the body of each kind must have, with their types."""


def _has_fields(body: dict[str, Any], needed: dict[str, type]) -> bool:
    if any(type(body.get(name)) is not kind for name, kind in needed.items()):
        return False
    columns, cuts = body.get("columns", []), body.get("cuts", {})
    return all(isinstance(c, dict) and type(c.get("attribute")) is str for c in columns) and all(
        type(count) is int for count in cuts.values()
    )


class Chain:
    """The entries of a ledger, in their file."""

    def __init__(self, file: Path) -> None:
        self._file, self._folder = file, file.parent
        self._db = opened(file)
        self.added: Entry | None = None

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write everything inside the block in one transaction; there is one writer at a time."""
        self._run("BEGIN IMMEDIATE")
        self.added = None
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # on a full disk, SQLite has rolled back already
                with suppress(sqlite3.DatabaseError):
                    self._db.execute("ROLLBACK")
            raise
        self._run("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one snapshot inside the block, whatever others write in the meantime."""
        self._run("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._run("ROLLBACK")  # nothing was written

    @property
    def is_busy(self) -> bool:
        """Whether a transaction is open."""
        return self._db.in_transaction

    def last_of(self, *kinds: str) -> int:
        """Return the number of the newest entry of these kinds.

        This includes entries that were added after :meth:`reading` took its snapshot.
        """
        marks = ", ".join("?" * len(kinds))
        wanted = f"SELECT coalesce(max(number), -1) FROM entries WHERE kind IN ({marks})"
        try:
            with closing(connected(self._file)) as db:
                return int(db.execute(wanted, kinds).fetchone()[0])
        except UNREADABLE as error:
            raise damaged(
                f"The ledger in {self._folder} cannot be read: {in_words(error)}"
            ) from None

    def append(self, key: Key, kind: str, body: dict[str, Any], at: str | None = None) -> Entry:
        """Append a new entry, dated now or ``at``; call this only within :meth:`writing`."""
        last = self.head()
        number, previous = (last.number + 1, last.hash) if last else (0, bytes(32))
        at = at or datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        digest = entry_hash(key, previous, number, at, kind, text)
        row = (number, at, kind, text, key.name, digest)
        self._run("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
        self.added = Entry(number, at, kind, text, key.name, digest)
        return self.added

    def head(self) -> Entry | None:
        """Return the last entry."""
        return next(self._entries("ORDER BY number DESC LIMIT 1"), None)

    def entry(self, number: int) -> Entry | None:
        """Return the entry with a number; None if the chain is shorter."""
        return next(self._entries("WHERE number = ?", number), None)

    def entries(self, *kinds: str) -> Iterator[Entry]:
        """Return all entries, or those of some kinds, from the first on."""
        return (e for e in self._entries("ORDER BY number") if not kinds or e.kind in kinds)

    def key_names(self) -> list[str]:
        """Return the names of all keys under which entries were written."""
        return [name for (name,) in self.read("SELECT DISTINCT key FROM entries")]

    def has_table(self, name: str) -> bool:
        """Return whether the file has a table."""
        found = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return next(self.read(found, name), None) is not None

    def sound(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file."""
        return [line for (line,) in self.read("PRAGMA integrity_check") if line != "ok"]

    def _entries(self, rest: str, *values: Any) -> Iterator[Entry]:
        for row in self.read(
            f"SELECT number, at, kind, body, key, hash FROM entries {rest}", *values
        ):
            if [type(v) for v in row] != [int, str, str, str, str, bytes] or len(row[5]) != 32:
                raise damaged(f"Entry {row[0]} of the ledger is damaged")
            yield Entry(*row)

    def read(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the rows that a query finds."""
        try:
            # Do not "yield from" the cursor: that would close it after the file was closed.
            yield from iter(self._db.execute(statement, values).fetchone, None)
        except UNREADABLE as error:
            raise damaged(
                f"The ledger in {self._folder} cannot be read: {in_words(error)}"
            ) from None

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except UNREADABLE as error:
            if is_disk_error(error):
                raise unwritable(self._folder, error) from None
            raise damaged(
                f"The ledger in {self._folder} cannot be written: {in_words(error)}"
            ) from None


def entry_hash(key: Key, previous: bytes, number: int, at: str, kind: str, text: str) -> bytes:
    """Return the hash that links an entry to the previous one."""
    words = json.dumps([previous.hex(), number, at, kind, text]).encode()
    return hmac.digest(key.derived("chain"), words, "sha256")
