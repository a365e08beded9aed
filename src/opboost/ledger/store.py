"""The ledger's file: SQLite, append-only, every entry chained to the one before.

An entry's hash is ``HMAC(key, previous hash, number, time, kind, body)``; a body names the
SHA-256 of each block of data that was written with it.  So one changed bit anywhere does not
verify, and without the key nobody can make a chain that does.  Cutting off the end leaves a valid,
shorter chain: length.py and receipts.py are about that.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.errors import DataError, ParameterError, PrivacyError, in_words
from opboost.ledger import length
from opboost.ledger.database import UNREADABLE, damaged, is_place, opened, unwritable
from opboost.ledger.keys import Key, Persons, check_place, read_keys

UNIT = 10**9
"""Levels are counted in billionths, rounded up, so that sums are exact."""

UNBOUNDED = 2**62
"""What counts as spent once something was released without a bound (Local-map shows the run)."""

Draws = np.ndarray[Any, np.dtype[np.uint8]]
"""One row of bytes a draw."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that may ever be spent on one person: on one attribute, and on all together."""

    attribute: float | None = None
    person: float | None = None

    def __post_init__(self) -> None:
        for name, cap in (("attribute", self.attribute), ("person", self.person)):
            if cap is not None and not 0 < cap < float("inf"):
                raise ParameterError(f"The cap per {name} must be above zero; got {cap!r}.")


class Mark(NamedTuple):
    """A point in the growth of the ledger: the last charge and the last noise."""

    charges: int
    noise: int


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
        """What the entry says."""
        try:
            found: dict[str, Any] = json.loads(self.text)
        except (ValueError, RecursionError):
            raise self.damaged() from None
        if not isinstance(found, dict) or not _says_all(found, _SAYS.get(self.kind, {})):
            raise self.damaged()
        return found

    def damaged(self) -> DataError:
        """The refusal of an entry that says what no entry of its kind does."""
        return damaged(f"Entry {self.number} of the ledger is damaged")


_MARKS = (list, "two numbers")
_SAYS: dict[str, dict[str, Any]] = {
    "align": {"job": str, "recipient": str, "rows": int, "theirs": int, "points": str, "tag": str},
    "aligned": {"job": str, "recipient": str, "common": int, "bitmap": str},
    "reserve": {"job": str, "recipient": str, "people": str, "columns": list},
    "commit": {"job": str, "recipient": str, "reservation": int},
    "abort": {"job": str, "recipient": str, "reservation": int, "reason": str}
    | {"charges": _MARKS, "noise": _MARKS},
    "answer": {"job": str, "recipient": str, "cuts": dict, "query": str},
}
"""What the bodies of each kind say at least."""


def _says_all(body: dict[str, Any], needed: dict[str, Any]) -> bool:
    for name, kind in needed.items():
        value = body.get(name)
        if kind is _MARKS:
            if not isinstance(value, list) or [type(v) for v in value] != [int, int]:
                return False
        elif type(value) is not kind:
            return False
    columns, cuts = body.get("columns", []), body.get("cuts", {})
    return all(isinstance(c, dict) and type(c.get("attribute")) is str for c in columns) and all(
        type(count) is int for count in cuts.values()
    )


class Ledger:
    """A feature party's ledger: a folder with one SQLite file, and a key elsewhere.

    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as place:
    ...     home = pathlib.Path(place)
    ...     with Ledger(home / "ledger", home / "keys" / "ledger.key") as ledger:
    ...         [entry.kind for entry in ledger.entries()]
    ['open']
    """

    def __init__(self, folder: str | Path, key: str | Path, caps: Caps | None = None) -> None:
        self.folder, self.caps = Path(folder), caps or Caps()
        check_place(Path(key), self.folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self._added: Entry | None = None
        before = length.noted(self.folder)
        self._db = opened(self.folder / "ledger.sqlite")
        try:
            if before and not self._holds(before):
                raise length.shorter(self.folder, before)
            self._keys = read_keys(Path(key), self.folder, new=self.head() is None)
            self._by_name = {k.name: k for k in self._keys}
            self._check_keys()
            with self.writing():
                if self.head() is None:
                    self.append("open", {"format": 1})
        except BaseException:
            self._db.close()
            raise

    @property
    def key(self) -> Key:
        """The key for new entries."""
        return self._keys[0]

    @property
    def keys(self) -> list[Key]:
        """All keys, newest first."""
        return self._keys

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """All that is written inside lasts together, or not at all; one writer at a time."""
        self._run("BEGIN IMMEDIATE")
        self._added = None
        try:
            yield
        except BaseException:
            if self._db.in_transaction:  # a full disk has rolled back already
                with suppress(sqlite3.DatabaseError):
                    self._db.execute("ROLLBACK")
            raise
        self._run("COMMIT")
        if self._added is not None:
            length.note(self.folder, self._added.number, self._added.hash)

    def _holds(self, before: length.Length) -> bool:
        entry = self.entry(before.number)
        return entry is not None and entry.hash == before.hash

    def append(self, kind: str, body: dict[str, Any]) -> Entry:
        """Chain a new entry; only within :meth:`writing`."""
        last = self.head()
        number, previous = (last.number + 1, last.hash) if last else (0, bytes(32))
        at = datetime.now(UTC).isoformat(timespec="seconds")
        text = json.dumps(body, sort_keys=True, ensure_ascii=False)
        digest = entry_hash(self.key, previous, number, at, kind, text)
        row = (number, at, kind, text, self.key.name, digest)
        self._run("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
        self._added = Entry(number, at, kind, text, self.key.name, digest)
        return self._added

    def head(self) -> Entry | None:
        """The last entry."""
        return next(self._entries("ORDER BY number DESC LIMIT 1"), None)

    def entry(self, number: int) -> Entry | None:
        """The entry of a number, if the chain is as long."""
        return next(self._entries("WHERE number = ?", number), None)

    def entries(self, *kinds: str) -> Iterator[Entry]:
        """Entries from the first on, all or of some kinds."""
        return (e for e in self._entries("ORDER BY number") if not kinds or e.kind in kinds)

    def _entries(self, rest: str, *values: Any) -> Iterator[Entry]:
        for row in self._read(
            f"SELECT number, at, kind, body, key, hash FROM entries {rest}", *values
        ):
            if [type(v) for v in row] != [int, str, str, str, str, bytes] or len(row[5]) != 32:
                raise damaged(f"Entry {row[0]} of the ledger is damaged")
            yield Entry(*row)

    def _read(self, statement: str, *values: Any) -> Iterator[tuple[Any, ...]]:
        try:
            # Not "yield from" the cursor: that would close it after the file was closed.
            yield from iter(self._db.execute(statement, values).fetchone, None)
        except UNREADABLE as error:
            raise damaged(
                f"The ledger in {self.folder} cannot be read: {in_words(error)}"
            ) from None

    def add_charge(
        self, reservation: int, attribute: str, amount: int, persons: Words
    ) -> dict[str, Any]:
        """Charge people; returns what an entry must say of it."""
        blob = np.sort(persons).astype("<u8").tobytes()
        row = (reservation, self.key.name, attribute, amount, blob)
        cursor = self._run(
            "INSERT INTO charges (reservation, key, attribute, amount, persons) "
            "VALUES (?, ?, ?, ?, ?)",
            row,
        )
        return {"charge": cursor.lastrowid, "sha256": row_digest(*row)}

    def add_noise(
        self, reservation: int, attribute: str, mechanism: str, cells: Words, drawn: Draws
    ) -> dict[str, Any]:
        """Remember draws (rows of bytes) by their cells; returns what an entry must say of it."""
        order = np.argsort(cells[:, 0], kind="stable")
        blobs = cells[order].astype("<u8").tobytes(), drawn[order].tobytes()
        row = (reservation, self.key.name, attribute, mechanism, drawn.shape[1], *blobs)
        cursor = self._run(
            "INSERT INTO noise (reservation, key, attribute, mechanism, width, cells, drawn) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            row,
        )
        return {"noise": cursor.lastrowid, "sha256": row_digest(*row)}

    def cells_charged(self, reservation: int) -> int:
        """How many cells a reservation was charged for, over all its runs."""
        ((size,),) = self._read(
            "SELECT coalesce(sum(length(persons)), 0) FROM charges WHERE reservation = ?",
            reservation,
        )
        return int(size) // 8

    def last_blocks(self) -> Mark:
        """How far charges and noise go now."""
        (marks,) = self._read(
            "SELECT (SELECT coalesce(max(id), 0) FROM charges), "
            "(SELECT coalesce(max(id), 0) FROM noise)"
        )
        return Mark(*marks)

    def remembered(
        self, attribute: str, mechanism: str, cells: dict[str, Words], width: int, upto: Mark
    ) -> tuple[BoolArray, Draws]:
        """Which of the rows were drawn up to a mark, and what was drawn.

        ``cells`` are the rows' handles under each key.
        """
        count = len(next(iter(cells.values())))
        found = np.zeros(count, dtype=np.bool_)
        drawn = np.zeros((count, width), dtype=np.uint8)
        dropped = self._taken_back("noise")
        rows = self._read(
            "SELECT id, key, width, cells, drawn FROM noise "
            "WHERE attribute = ? AND mechanism = ? AND id <= ? ORDER BY id",
            *(attribute, mechanism, upto.noise),
        )
        for number, key, stored, blob, values in rows:
            if _within(number, dropped) or stored != width or key not in cells:
                continue
            if type(values) is not bytes or len(values) // width * 16 != _size(blob):
                raise damaged(f"Block {number} of noise of the ledger is damaged")
            known = np.frombuffer(blob, dtype="<u8").reshape(-1, 2)
            if not len(known):
                continue
            place, hit = _find(known, cells[key])
            hit &= ~found
            stored = np.frombuffer(values, np.uint8, len(known) * width).reshape(-1, width)
            drawn[hit] = stored[place[hit]]
            found |= hit
        return found, drawn

    def spent(
        self,
        persons: dict[str, Persons],
        attribute: str | None = None,
        *,
        without: tuple[Mark, Mark] | None = None,
    ) -> IntArray:
        """What was spent on each person, in billionths: on one attribute, or on all.

        Charges between the two marks of ``without`` are known to be about other people.
        """
        total = np.zeros(len(next(iter(persons.values()))), dtype=np.int64)
        unbounded = np.zeros(len(total), dtype=np.bool_)
        dropped = self._taken_back("charges")
        first, last = (without[0].charges, without[1].charges) if without else (0, 0)
        rows = self._read(
            "SELECT id, key, amount, persons FROM charges "
            "WHERE (?1 IS NULL OR attribute = ?1) AND NOT (id > ?2 AND id <= ?3)",
            *(attribute, first, last),
        )
        for number, key, amount, blob in rows:
            if _within(number, dropped) or key not in persons:
                continue
            known = _charged(number, amount, blob)
            if not len(known):
                continue
            place = np.searchsorted(known, persons[key].charged)
            place[place == len(known)] = 0
            hit = known[place] == persons[key].charged
            if amount >= UNBOUNDED:
                unbounded |= hit
            else:
                total += amount * hit
        return np.where(unbounded, UNBOUNDED, total)

    def most_spent(self) -> list[tuple[str, int, int]]:
        """For each attribute: how many people it was charged to, and the most for one of them."""
        names = list(self._read("SELECT DISTINCT attribute FROM charges ORDER BY attribute"))
        return [(str(name), *self._most("WHERE attribute = ?", name)) for (name,) in names]

    def most_spent_in_all(self) -> tuple[int, int]:
        """How many people were charged at all, and the most for one of them."""
        return self._most("")

    def _most(self, where: str, *values: str) -> tuple[int, int]:
        """People under a new key count anew: who they are is not in the ledger."""
        people, amounts, dropped = [], [], self._taken_back("charges")
        rows = self._read(f"SELECT id, amount, persons FROM charges {where}", *values)
        for number, amount, blob in rows:
            if not _within(number, dropped):
                people.append(_charged(number, amount, blob))
                amounts.append(np.full(len(people[-1]), amount))
        if not any(map(len, people)):
            return 0, 0
        _, place = np.unique(np.concatenate(people), return_inverse=True)
        charged = np.concatenate(amounts)
        if charged.max() >= UNBOUNDED:
            return int(place.max()) + 1, UNBOUNDED
        totals = np.zeros(int(place.max()) + 1, dtype=np.int64)
        np.add.at(totals, place, charged)
        return len(totals), int(totals.max())

    def _taken_back(self, table: str) -> list[tuple[int, int]]:
        """The blocks that aborts took back, as ranges: after the first number, up to the second."""
        bodies = [e.body for e in self._entries("WHERE kind = 'abort'")]
        return [(body[table][0], body[table][1]) for body in bodies]

    def _check_keys(self) -> None:
        for (name,) in self._read("SELECT DISTINCT key FROM entries"):
            if name not in self._by_name:
                raise PrivacyError(
                    f"The ledger was written under key {name}, which the key file does not hold. "
                    "Without it people would not be recognised and released anew. Bring it back."
                )

    def key_of(self, name: str) -> Key | None:
        """The key of a name."""
        return self._by_name.get(name)

    def blocks(self) -> Iterator[tuple[str, int, str]]:
        """Every block of data: its table, number and digest."""
        for table, columns in (
            ("charges", "reservation, key, attribute, amount, persons"),
            ("noise", "reservation, key, attribute, mechanism, width, cells, drawn"),
        ):
            for row in self._read(f"SELECT id, {columns} FROM {table}"):
                yield table, row[0], row_digest(*row[1:])

    def sound(self) -> list[str]:
        """What SQLite itself finds wrong with the file."""
        return [line for (line,) in self._read("PRAGMA integrity_check") if line != "ok"]

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            return self._db.execute(statement, values)
        except UNREADABLE as error:
            if is_place(error):
                raise unwritable(self.folder, error) from None
            raise damaged(
                f"The ledger in {self.folder} cannot be written: {in_words(error)}"
            ) from None


def _within(number: int, ranges: list[tuple[int, int]]) -> bool:
    if type(number) is not int:  # the file's pages do not fit together
        raise damaged("A block of the ledger has no number")
    return any(after < number <= last for after, last in ranges)


def _size(blob: Any) -> int:
    return len(blob) if type(blob) is bytes else -1


def _charged(number: int, amount: Any, blob: Any) -> Words:
    """The people of a charge."""
    if type(amount) is not int or amount < 0 or _size(blob) % 8:
        raise damaged(f"Block {number} of charges of the ledger is damaged")
    return np.frombuffer(blob, dtype="<u8")


def _find(known: Words, wanted: Words) -> tuple[IntArray, BoolArray]:
    """Where each wanted pair of words stands among known ones, sorted by their first word."""
    place = np.searchsorted(known[:, 0], wanted[:, 0])
    place[place == len(known)] = 0
    hit = (known[place] == wanted).all(axis=1)
    # Two cells with the same first word are a chance of 2**-64: look at the neighbours then.
    for row in np.flatnonzero((known[place, 0] == wanted[:, 0]) & ~hit):
        near = np.flatnonzero((known == wanted[row]).all(axis=1))
        if len(near):
            place[row], hit[row] = near[0], True
    return place, hit


def entry_hash(key: Key, previous: bytes, number: int, at: str, kind: str, text: str) -> bytes:
    """The link of the chain."""
    words = json.dumps([previous.hex(), number, at, kind, text]).encode()
    return hmac.digest(key.derived("chain"), words, "sha256")


def row_digest(*values: Any) -> str:
    """The digest of a block of data with all that stands beside it."""
    whole = hashlib.sha256()
    for value in values:
        data = value if isinstance(value, bytes) else repr(value).encode()
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()
