"""Write a ledger in the format of version 0.1.0: chain, charges and noise in one SQLite file."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opboost.storage import atomic_files

TABLES = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL,
    key TEXT NOT NULL, hash BLOB NOT NULL
);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY, reservation INTEGER NOT NULL, key TEXT NOT NULL,
    attribute TEXT NOT NULL, amount INTEGER NOT NULL, persons BLOB NOT NULL
);
CREATE TABLE noise (
    id INTEGER PRIMARY KEY, reservation INTEGER NOT NULL, key TEXT NOT NULL,
    attribute TEXT NOT NULL, mechanism TEXT NOT NULL, width INTEGER NOT NULL,
    cells BLOB NOT NULL, drawn BLOB NOT NULL
);
"""
UNBOUNDED = 2**62


@dataclass(frozen=True)
class Column:
    """A column of a release: its charge in billionths, and the width of its draws.

    ``declared`` is its declaration in the file; answers about a person need it.
    """

    attribute: str
    mechanism: str
    amount: int
    width: int = 1
    declared: dict = field(default_factory=dict)


@dataclass
class OldLedger:
    """A ledger of version 0.1.0 with the entries and blocks that a test gives it."""

    home: object
    secrets: list[bytes] = field(default_factory=lambda: [secrets.token_bytes(32)])

    def __post_init__(self):
        (self.home / "ledger").mkdir()
        (self.home / "keys").mkdir()
        self.file, self.key = self.home / "ledger" / "ledger.sqlite", self.home / "keys" / "k"
        self._write_key()
        with closing(sqlite3.connect(self.file)) as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(TABLES)
        self.append("open", {"format": 1})

    def rotate(self):
        """Add a new key as the current one."""
        self.secrets.insert(0, secrets.token_bytes(32))
        self._write_key()

    def _write_key(self):
        atomic_files.write(
            self.key, "".join(s.hex() + "\n" for s in self.secrets).encode(), mode=0o600
        )

    def derived(self, *purpose):
        words = b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in purpose)
        return hmac.digest(self.secrets[0], words, "sha256")

    @property
    def key_name(self):
        return hashlib.sha256(b"opboost key name\n" + self.secrets[0]).hexdigest()[:16]

    def append(self, kind, body, blocks=()):
        """Write an entry with its blocks; return its number and hash."""
        with closing(sqlite3.connect(self.file, isolation_level=None)) as db:
            db.execute("BEGIN")
            listed = [self._add(db, table, row) for table, row in blocks]
            body = {**body, "blocks": listed} if blocks else body
            last = db.execute("SELECT number, hash FROM entries ORDER BY number DESC").fetchone()
            number, previous = (last[0] + 1, last[1]) if last else (0, bytes(32))
            at = f"2026-01-{number + 1:02d}T00:00:00+00:00"
            text = json.dumps(body, sort_keys=True, ensure_ascii=False)
            words = json.dumps([previous.hex(), number, at, kind, text]).encode()
            digest = hmac.digest(self.derived("chain"), words, "sha256")
            row = (number, at, kind, text, self.key_name, digest)
            db.execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?)", row)
            db.execute("COMMIT")
        sealed = atomic_files.with_checksum(f"{number} {digest.hex()}".encode()).ljust(256, b"\n")
        note = self.home / "ledger" / "length"
        data = bytearray(note.read_bytes() if note.exists() else b"").ljust(512, b"\0")
        data = data[: number % 2 * 256] + sealed + data[number % 2 * 256 + 256 :]
        note.write_bytes(data)
        return number, digest

    @staticmethod
    def _add(db, table, row):
        marks = ", ".join("?" * len(row))
        names = {
            "charges": "reservation, key, attribute, amount, persons",
            "noise": "reservation, key, attribute, mechanism, width, cells, drawn",
        }[table]
        number = db.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", row).lastrowid
        whole = hashlib.sha256()
        for value in row:
            data = value if isinstance(value, bytes) else repr(value).encode()
            whole.update(len(data).to_bytes(8, "big") + data)
        return {{"charges": "charge"}.get(table, table): number, "sha256": whole.hexdigest()}

    def reserve(self, columns, job="1", to="bank"):
        """Begin a release; return its number."""
        listed = [
            {
                "attribute": c.attribute,
                "mechanism": c.mechanism,
                "amount": "unbounded" if c.amount == UNBOUNDED else str(Fraction(c.amount, 10**9)),
                "declared": c.declared,
            }
            for c in columns
        ]
        body = {"job": job, "recipient": to, "people": "id", "columns": listed, "caps": {}}
        return self.append("reserve", body)[0]

    def draw(self, reservation, columns, cells, chosen=None, part=None):
        """Draw for some rows.

        ``cells`` maps, for each column, the IDs to draw to a value and a draw; ``chosen`` maps each
        ID to the columns that its row sends.  With ``part``, the draws are stored elsewhere.
        """
        blocks, about = [], (reservation, self.key_name)
        if chosen:
            names = sorted(c.attribute for c in columns)
            per_row = len(next(iter(chosen.values())))
            plan = hashlib.sha256(json.dumps([per_row, *names]).encode()).hexdigest()
            bits = [[name in row for name in names] for row in chosen.values()]
            packed = np.packbits(np.array(bits, dtype=np.bool_), axis=1)
            blocks.append(
                self._noise(about, "", plan, [(i, 0) for i in chosen], [bytes(p) for p in packed])
            )
        for column, drawn in zip(columns, cells, strict=True):
            if not drawn:
                continue
            words = np.sort(np.array([self._words(i)[2] for i in drawn], dtype="<u8"))
            row = (*about, column.attribute, column.amount, words.tobytes())
            blocks.append(("charges", row))
            if part is None:
                named = [(i, value) for i, (value, _) in drawn.items()]
                values = [value for _, value in drawn.values()]
                blocks.append(self._noise(about, column.attribute, column.mechanism, named, values))
        body = {"reservation": reservation} | ({} if part is None else {"part": part})
        self.append("draw", body, blocks)

    def _words(self, name):
        digest = hmac.digest(self.derived("row id"), name.encode(), "sha256")
        return np.frombuffer(digest, dtype="<u8")

    def _noise(self, about, attribute, mechanism, named, drawn):
        blocks = np.array([self._words(i)[:2] for i, _ in named], dtype="<u8")
        blocks[:, 0] ^= np.array([value for _, value in named], dtype=np.uint64)
        secret = self.derived("cell", attribute, mechanism)
        cipher = Cipher(algorithms.AES256(secret), modes.ECB()).encryptor()
        cells = np.frombuffer(cipher.update(blocks.tobytes()), dtype="<u8").reshape(-1, 2)
        order = np.argsort(cells[:, 0])
        values = b"".join(drawn[k] for k in order)
        row = (*about, attribute, mechanism, len(drawn[0]), cells[order].tobytes(), values)
        return "noise", row

    def commit(self, reservation, job="1", to="bank", **more):
        """End a release; return the entry's number and hash, as a receipt would state them."""
        figures = {"rows": 0, "new_cells": 0, "old_cells": 0}
        body = {"reservation": reservation, "job": job, "recipient": to, **figures, **more}
        return self.append("commit", body)

    def marks(self):
        """Return the number of the last row of charges, and of noise."""
        with closing(sqlite3.connect(self.file)) as db:
            return [
                db.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()[0]
                for table in ("charges", "noise")
            ]

    def abort(self, reservation, since, job="1", to="bank"):
        """Cancel what was drawn since some marks."""
        charges, noise = map(list, zip(since, self.marks(), strict=True))
        body = {"reservation": reservation, "job": job, "recipient": to, "reason": "DataError"}
        self.append("abort", {**body, "charges": charges, "noise": noise})
