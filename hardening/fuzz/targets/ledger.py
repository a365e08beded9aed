"""A ledger's file: damaged as bytes, and row by row as somebody with SQLite could."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa

import opboost as op
from hardening.fuzz.mutate import plain, spoilt, spoilt_json
from hardening.fuzz.target import Drill, Target
from hardening.fuzz.targets.messages import columns
from opboost.errors import ConfigError, DataError, PrivacyError
from opboost.ledger import Drawing, Ledger
from opboost.ledger.receipts import read_receipts
from opboost.ledger.summary import summary
from opboost.ledger.verify import verify

TABLES = {
    "entries": ("number", "at", "kind", "body", "key", "hash"),
    "charges": ("id", "reservation", "key", "attribute", "amount", "persons"),
    "noise": ("id", "reservation", "key", "attribute", "mechanism", "width", "cells", "drawn"),
}
RAW = pa.table({"age": [1.0, 50.0, 99.0], "city": ["x", "y", "x"]})
PEOPLE = [b"ann", b"bob", b"cid"]


def _drawn(ledger: Ledger, job: str) -> None:
    chosen = [c for c in columns() if c.name in RAW.column_names]
    drawing = Drawing(
        ledger, chosen, [str(c.name) for c in chosen], job=job, recipient="bank", people="id"
    )
    with drawing:
        drawing.draw(PEOPLE, [c.prepare(RAW) for c in chosen])


def _made(home: Path) -> bytes:
    """A ledger with a release, an abort, an alignment and an answer; one file, no journal."""
    with Ledger(home / "ledger", home / "ledger.key") as ledger:
        _drawn(ledger, "one")
        with suppress(DataError):
            _drawn_and_failed(ledger)
        with ledger.writing():
            body = {"job": "one", "recipient": "bank"}
            ledger.append("align", {**body, "rows": 3, "theirs": 4, "points": "", "tag": ""})
            ledger.append("aligned", {**body, "common": 3, "bitmap": ""})
            ledger.append("answer", {**body, "cuts": {"0": 2}, "query": ""})
        _drawn(ledger, "two")
    file = home / "ledger" / "ledger.sqlite"
    with sqlite3.connect(file) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    db.close()
    return file.read_bytes()


def _drawn_and_failed(ledger: Ledger) -> None:
    chosen = columns()[:1]
    with Drawing(ledger, chosen, ["age"], job="x", recipient="bank", people="id") as drawing:
        drawing.draw([b"new", b"new2", b"new3"], [chosen[0].prepare(RAW)])
        raise DataError("on purpose")


def _used(home: Path) -> None:
    """All that is done with a ledger: looked at, verified, exported, drawn with."""
    caps = op.ledger.Caps(100.0, 100.0)
    with Ledger(home / "ledger", home / "ledger.key", caps) as ledger:
        verify(ledger, [(1, bytes(32))])
        summary(ledger)
        [entry.body for entry in ledger.entries()]
        ledger.most_spent()
        _drawn(ledger, "three")


def _prepare(by_row: bool, home: Path) -> Drill:
    good = _made(home)
    file = home / "ledger" / "ledger.sqlite"
    scratch = home / "scratch.sqlite"

    def make(rng: Random) -> bytes:
        return _spoilt_rows(rng, good, scratch) if by_row else spoilt(rng, good)

    def feed(data: bytes) -> None:
        for left in file.parent.iterdir():
            left.unlink()
        file.write_bytes(data)
        _used(home)

    return Drill(make, feed)


def _spoilt_rows(rng: Random, good: bytes, scratch: Path) -> bytes:
    scratch.write_bytes(good)
    db = sqlite3.connect(scratch, isolation_level=None)
    db.execute("PRAGMA journal_mode = OFF")
    for table in TABLES:
        for verb in ("UPDATE", "DELETE"):
            if rng.random() < 0.98:
                db.execute(f"DROP TRIGGER {table}_{verb}")
    for _ in range(rng.choice((1, 1, 2))):
        table = rng.choice(list(TABLES))
        try:
            rows = db.execute(f"SELECT rowid, * FROM {table}").fetchall()
            _spoilt_row(rng, db, table, rng.choice(rows))
        except (sqlite3.Error, IndexError, OverflowError, UnicodeEncodeError):
            continue
    db.close()
    return scratch.read_bytes()


def _spoilt_row(rng: Random, db: sqlite3.Connection, table: str, row: tuple) -> None:
    way = rng.random()
    if way < 0.1:
        db.execute(f"DELETE FROM {table} WHERE rowid = ?", row[:1])
        return
    if way < 0.13:
        db.execute(rng.choice((f"DROP TABLE {table}", f"DELETE FROM {table}")))
        return
    place = rng.randrange(len(TABLES[table]))
    value = row[1 + place]
    if isinstance(value, str) and value[:1] == "{" and way < 0.9:
        value = spoilt_json(rng, value.encode()).decode(errors="replace")
    elif isinstance(value, bytes) and way < 0.7:
        value = spoilt(rng, value)
    else:
        odd = plain(rng)
        value = odd if isinstance(odd, int | float | str | bytes | None) else str(odd)
    name = TABLES[table][place]
    db.execute(f"UPDATE {table} SET {name} = ? WHERE rowid = ?", (value, row[0]))


def _prepare_receipts(home: Path) -> Drill:
    from hardening.fuzz.targets.messages import resealed, samples
    from opboost.wire.envelope import MARK
    from opboost.wire.messages import encode

    good = encode(samples()["receipt"][0])
    folder = home / "receipts"
    folder.mkdir()

    def make(rng: Random) -> bytes:
        if rng.random() < 0.3:
            return spoilt(rng, good)
        return resealed(spoilt(rng, good[len(MARK) + 32 :]))

    def feed(data: bytes) -> None:
        (folder / "receipt").write_bytes(data)
        read_receipts(folder, "shop")

    return Drill(make, feed)


ERRORS = (DataError, PrivacyError, ConfigError)
TARGETS = [
    Target("ledger: its bytes", "user", ERRORS, partial(_prepare, False), most=2_000),
    Target("ledger: its rows", "user", ERRORS, partial(_prepare, True), most=2_000),
    Target("receipts in a folder", "user", (op.errors.WireError, ConfigError), _prepare_receipts),
]
