"""A ledger's files: damaged byte by byte, and entry by entry, as anybody with SQLite could."""

import shutil
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

import pyarrow as pa

import opboost as op
from opboost.errors import ConfigError, DataError, PrivacyError
from opboost.ledger import Drawing, Ledger, chain_witness
from opboost.ledger.ledger_summary import summary
from opboost.ledger.person_totals import totals
from opboost.ledger.receipts import read_receipts
from opboost.ledger.verify_ledger import verify
from opboost.protocol.messages import encode
from robustness.fuzz.mutate import plain, spoilt, spoilt_json
from robustness.fuzz.target import FuzzDrill, Target, of_files
from robustness.fuzz.targets.messages import columns, respoilt, samples

FIELDS = ("number", "at", "kind", "body", "key", "hash")
RAW = pa.table({"age": [1.0, 50.0, 99.0], "city": ["x", "y", "x"]})
ABORTED = "aborted"
"""The job whose release fails."""


def _drawn(ledger: Ledger, job: str, people: Sequence[bytes] = (b"ann", b"bob", b"cid")) -> None:
    chosen = [c for c in columns() if c.name in RAW.column_names]
    names = [str(c.name) for c in chosen]
    with Drawing(ledger, chosen, names, job=job, recipient="bank", people="id") as drawing:
        drawing.draw(people, [c.prepare(RAW) for c in chosen])
        if job == ABORTED:
            raise DataError("on purpose")


def _made(home: Path) -> bytes:
    """Make a ledger with releases, an abort, an alignment and an answer, in one file."""
    with Ledger(home / "ledger", home / "ledger.key") as ledger:
        _drawn(ledger, "one")
        with suppress(DataError):
            _drawn(ledger, ABORTED, [b"new", b"new2", b"new3"])
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


def _used(home: Path) -> None:
    """Use a ledger in every way: show, verify and export it, and draw with it."""
    caps = op.ledger.Caps(100.0, 100.0)
    with Ledger(home / "ledger", home / "ledger.key", caps) as ledger:
        verify(ledger, [(1, bytes(32))])
        summary(ledger)
        [entry.body for entry in ledger.entries()]
        totals(ledger)
        _drawn(ledger, "three")


def _prepare(part: str, home: Path) -> FuzzDrill:
    """Damage the ledger's database, as bytes or row by row, or its runs."""
    good = _made(home)
    folder, kept, scratch = home / "ledger", home / "kept", home / "scratch.sqlite"
    shutil.copytree(folder, kept)
    runs = sorted(file.relative_to(kept) for file in (kept / "runs").iterdir())
    files = [(folder / run, (kept / run).read_bytes()) for run in runs]
    if part != "runs":
        files = [(folder / "ledger.sqlite", good)]

    def change(rng: Random, data: bytes) -> bytes:
        return _spoilt_entries(rng, data, scratch) if part == "rows" else spoilt(rng, data)

    def put(file: Path, data: bytes) -> None:
        _restore(home, kept)
        file.write_bytes(data)

    return of_files(files, lambda: _used(home), change, put)


def _restore(home: Path, kept: Path) -> None:
    """Restore the ledger without both notes of its chain's last entry."""
    shutil.rmtree(home / "ledger")
    shutil.copytree(kept, home / "ledger")
    (home / "ledger" / chain_witness.FOLDER_NOTE).unlink()
    chain_witness.beside(home / "ledger.key").unlink(missing_ok=True)


def _spoilt_entries(rng: Random, good: bytes, scratch: Path) -> bytes:
    scratch.write_bytes(good)
    db = sqlite3.connect(scratch, isolation_level=None)
    db.execute("PRAGMA journal_mode = OFF")
    for verb in ("UPDATE", "DELETE"):
        if rng.random() < 0.98:
            db.execute(f"DROP TRIGGER entries_{verb}")
    for _ in range(rng.choice((1, 1, 2))):
        try:
            rows = db.execute("SELECT rowid, * FROM entries").fetchall()
            _spoilt_row(rng, db, rng.choice(rows))
        except (sqlite3.Error, IndexError, OverflowError, UnicodeEncodeError):
            continue
    db.close()
    return scratch.read_bytes()


def _spoilt_row(rng: Random, db: sqlite3.Connection, row: tuple) -> None:
    way = rng.random()
    if way < 0.1:
        db.execute("DELETE FROM entries WHERE rowid = ?", row[:1])
        return
    if way < 0.13:
        db.execute(rng.choice(("DROP TABLE entries", "DELETE FROM entries")))
        return
    place = rng.randrange(len(FIELDS))
    value = row[1 + place]
    if isinstance(value, str) and value[:1] == "{" and way < 0.9:
        value = spoilt_json(rng, value.encode()).decode(errors="replace")
    elif isinstance(value, bytes) and way < 0.7:
        value = spoilt(rng, value)
    else:
        odd = plain(rng)
        value = odd if isinstance(odd, int | float | str | bytes | None) else str(odd)
    db.execute(f"UPDATE entries SET {FIELDS[place]} = ? WHERE rowid = ?", (value, row[0]))


def _prepare_receipts(home: Path) -> FuzzDrill:
    good = encode(samples()["receipt"][0])
    folder = home / "receipts"
    folder.mkdir()

    def change(rng: Random, data: bytes) -> bytes:
        return (spoilt if rng.random() < 0.3 else respoilt)(rng, data)

    return of_files([(folder / "receipt", good)], lambda: read_receipts(folder, "shop"), change)


ERRORS = (DataError, PrivacyError, ConfigError)
TARGETS = [
    Target("ledger: its bytes", ERRORS, partial(_prepare, "bytes"), most=2_000),
    Target("ledger: its rows", ERRORS, partial(_prepare, "rows"), most=2_000),
    Target("ledger: its runs", ERRORS, partial(_prepare, "runs"), most=2_000),
    Target("receipts in a folder", (op.errors.WireError, ConfigError), _prepare_receipts),
]
