"""Migrate a ledger of version 0.1 to the current format.

Entries keep their numbers, times and contents, under new hashes; the entry ``migrate`` after them
lists the old hashes, for receipts.  The blocks of each release become runs that state the number of
its commit entry:

* A draw of version 0.1 stays a draw.  If one cell has several (its value had changed), the one that
  was committed first counts.
* All draws are ``sent``, so every charge to a person stays.  If one release has two records of a
  person (two spellings of an ID), the second goes into a separate run.
* Columns that were not chosen for a person are decided and not sent.
* A release in parts has its draws in the stored release; its run has only charges.
* The draws of an unfinished release counted as spent, and another job may have sent them.  They
  follow all committed draws, and the reservation is closed.

Version 0.1 kept no IDs, so a migration needs the tables with the people of the ledger.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opboost.columns.row_ids import Spelling
from opboost.errors import ConfigError, PrivacyError
from opboost.ledger import chain_witness
from opboost.ledger.chain import Chain, Entry
from opboost.ledger.format1 import Format1, said
from opboost.ledger.key_file import KeyFile
from opboost.ledger.migrated_runs import Choices, Ids, People, Runs, survey
from opboost.ledger.store import CHAIN_FILE, FORMAT_VERSION, RUNS_FOLDER, Changed
from opboost.storage import atomic_files

KEPT_FILE = "ledger-0.1.0.sqlite"
"""The name of the old file after the migration."""

_BUILD_FOLDER = ".migration.part"
"""Where the new ledger is built; :func:`atomic_files.alone` removes it after a kill."""

_UNFINISHED = "not finished in version 0.1: what it drew counts as spent"
_REASONS = {
    "PrivacyError": "refused: a cap or another privacy rule",
    "DataError": "refused: the table does not fit",
    "ColumnError": "refused: the table does not fit",
}


@dataclass(frozen=True, slots=True)
class Migrated:
    """The result of a migration.

    ``people`` is how many people the new ledger remembers, ``left_out`` how many it dropped, and
    ``kept`` the old file.
    """

    people: int
    left_out: int
    entries: int
    kept: Path


def migrate(
    folder: Path,
    key: Path,
    ids: Iterable[Ids],
    *,
    spelling: Spelling = "canonical",
    changed: Changed = "keep",
    leave_out_unknown: bool = False,
) -> Migrated:
    """Replace a ledger of version 0.1 with one of the new format, and keep the old file.

    ``ids`` are the IDs of all people in the ledger, and possibly of others.  If people of the
    ledger are not among them, the migration is refused, or leaves them out with
    ``leave_out_unknown``.  If the migration is killed, either the old ledger or the new
    one is left.

    Cost: memory of a few hundred bytes per person; disk for two copies of the new ledger.
    """
    KeyFile.check_place(key, folder)
    if not (folder / CHAIN_FILE).exists():
        raise ConfigError(f"There is no ledger in {folder} yet.")
    keys = KeyFile.read(key, folder, new=False)
    built = folder / _BUILD_FOLDER
    with atomic_files.alone(folder), ExitStack() as stack:
        with Format1(folder, keys) as old:
            _check_first(old, key)
            old.check()
            people = People.of(ids, keys)
            choices = Choices(people)
            unknown = survey(old, people, choices)
            if unknown and not leave_out_unknown:
                raise _unknown(unknown)
            stack.callback(shutil.rmtree, built, ignore_errors=True)
            built.mkdir(mode=0o700)
            runs = Runs(old, people, choices, built / RUNS_FOLDER)
            about: dict[str, Any] = {
                "runs": [run.as_json() for run in runs.written()],
                "from": 1,
                "people": runs.people(),
                "left_out": unknown,
                "kept": KEPT_FILE,
            }
            begun = {"identity": keys.oldest.name, "ids": spelling, "changed": changed}
            head = _rechained(old, built / CHAIN_FILE, keys, begun, about)
        with atomic_files.waiting(folder / "creating"):
            _one_file(folder)
            _swap(folder, key, head)
    return Migrated(about["people"], unknown, head.number + 1, folder / KEPT_FILE)


def _check_first(old: Format1, key: Path) -> None:
    if not old.is_format_1():
        raise ConfigError(
            f"The ledger in {old.folder} has format {FORMAT_VERSION} already: there is nothing to "
            "migrate."
        )
    witness = chain_witness.beside(key)
    if chain_witness.noted(witness) is not None:
        raise PrivacyError(
            f"The ledger in {old.folder} was migrated before, as {witness} says: this is an older "
            "copy, and what was released since would be drawn again. Restore the latest copy of "
            "the folder."
        )
    kept = old.folder / KEPT_FILE
    if kept.exists() and not kept.samefile(old.folder / CHAIN_FILE):
        raise ConfigError(
            f"{kept} exists, but the old file will be kept under this name. Move it elsewhere."
        )


def _unknown(count: int) -> PrivacyError:
    return PrivacyError(
        f"{count:,} people of the ledger are in none of the tables. Version 0.1 kept no IDs, so "
        "their noise would be drawn and charged again. Add the tables of earlier releases, with "
        "IDs spelt as they were then (--table, once for each), or leave these people out with "
        "--leave-out-unknown. Nothing was changed."
    )


def _rechained(
    old: Format1, file: Path, keys: KeyFile, begun: dict[str, Any], last: dict[str, Any]
) -> Entry:
    """Write the old entries to a new chain, followed by an entry about the migration."""
    chain, key = Chain(file), keys.newest
    try:
        with chain.writing():
            history = []
            for entry in old.entries():
                chain.append(key, entry.kind, _carried(entry, begun), entry.at)
                history.append({"number": entry.number, "hash": entry.hash.hex()})
            for entry in old.open_reservations():
                about = {name: said(entry)[name] for name in ("job", "recipient")}
                body = {"reservation": entry.number, **about, "reason": _UNFINISHED}
                chain.append(key, "abort", body)
            head = chain.append(key, "migrate", {**last, "history": history})
    finally:
        chain.close()
    atomic_files.flush(file)
    return head


def _carried(entry: Entry, begun: dict[str, Any]) -> dict[str, Any]:
    """Return the content of an old entry, with the fields that its kind has now."""
    body = said(entry)
    if entry.kind == "open":
        return {"format": FORMAT_VERSION, **begun}
    if entry.kind == "commit":
        return {**body, "runs": [], "members": []}
    if entry.kind == "abort":
        return {**body, "reason": _REASONS.get(body["reason"], "it failed")}
    return body


def _one_file(folder: Path) -> None:
    """Merge SQLite's journal into the old file; refuse while another process reads.

    Otherwise SQLite would apply the old file's journal to the new file.
    """
    db = sqlite3.connect(folder / CHAIN_FILE, timeout=5)
    try:
        ((mode,),) = db.execute("PRAGMA journal_mode = DELETE")
    except sqlite3.OperationalError:
        mode = "locked"
    finally:
        db.close()
    if mode != "delete":
        raise ConfigError(
            f"Another process has the ledger in {folder} open. Wait until it has finished."
        )


def _swap(folder: Path, key: Path, head: Entry) -> None:
    """Replace the old ledger with the new one, by a single rename."""
    built, file, kept = folder / _BUILD_FOLDER, folder / CHAIN_FILE, folder / KEPT_FILE
    if (folder / RUNS_FOLDER).exists():  # from a migration that was killed: the old format has none
        shutil.rmtree(folder / RUNS_FOLDER)
    atomic_files.move([(built / RUNS_FOLDER, folder / RUNS_FOLDER)])
    folder.chmod(0o700)
    file.chmod(0o600)
    if not kept.exists():
        os.link(file, kept)
    (folder / chain_witness.FOLDER_NOTE).unlink(missing_ok=True)  # it is about the old chain
    atomic_files.flush(folder)
    atomic_files.move([(built / CHAIN_FILE, file)])
    last = chain_witness.ChainHead(head.number, head.hash)
    chain_witness.note(folder / chain_witness.FOLDER_NOTE, last)
    chain_witness.note_beside(key, last)
