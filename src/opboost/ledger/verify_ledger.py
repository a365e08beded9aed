"""Check a ledger: every entry, every file that entries name, every receipt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from opboost.errors import DataError, PrivacyError
from opboost.ledger import release_members
from opboost.ledger.chain import Entry, entry_hash
from opboost.ledger.key_file import Key
from opboost.ledger.run_files import RunFile
from opboost.ledger.store import Ledger


class Chained(Protocol):
    """A ledger of either format: its folder, its entries, and the keys that they name."""

    folder: Path

    def entries(self) -> Iterator[Entry]:
        """Return all entries from the first on."""
        ...

    def key_of(self, name: str) -> Key | None:
        """Return the key with a name, or None."""
        ...

    def sound(self) -> list[str]:
        """Return what SQLite itself finds wrong with the file."""
        ...


@dataclass(frozen=True, slots=True)
class LedgerFinding:
    """One fault, in words."""

    entry: int | None
    words: str


def verify(ledger: Ledger, receipts: Sequence[tuple[int, bytes]] = ()) -> list[LedgerFinding]:
    """Return all faults; an empty list means that the ledger is intact.

    ``receipts`` are the numbers and hashes of entries that recipients hold.
    """
    return ledger.consistently(lambda: _verify(ledger, receipts))


def _verify(ledger: Ledger, receipts: Sequence[tuple[int, bytes]]) -> list[LedgerFinding]:
    findings = _chain(ledger)
    try:
        findings += _files(ledger)
    except DataError as error:  # an entry that does not say which files exist
        findings.append(LedgerFinding(None, error.rule))
    return findings + [f for f in (_lost(ledger, *r) for r in receipts) if f is not None]


def check_chain(ledger: Chained) -> None:
    """Refuse a ledger whose chain is damaged, since noise would be drawn and charged again.

    Runs are checked when they are read.
    """
    for finding in _chain(ledger):
        raise not_whole(ledger.folder, finding)


def not_whole(folder: Path, finding: LedgerFinding) -> PrivacyError:
    """Return the error for a damaged ledger."""
    place = "" if finding.entry is None else f"entry {finding.entry} "
    return PrivacyError(
        f"The ledger in {folder} is damaged: {place}{finding.words}. "
        "Noise would be drawn again. Restore it from a backup."
    )


def _chain(ledger: Chained) -> list[LedgerFinding]:
    findings = [LedgerFinding(None, f"the file is damaged: {words}") for words in ledger.sound()]
    previous = bytes(32)
    for count, entry in enumerate(ledger.entries()):
        key = ledger.key_of(entry.key)
        if entry.number != count:
            findings.append(LedgerFinding(entry.number, "an entry is missing before this one"))
        if key is None:
            findings.append(
                LedgerFinding(entry.number, f"was written under an unknown key {entry.key}")
            )
        elif (
            entry_hash(key, previous, entry.number, entry.at, entry.kind, entry.text) != entry.hash
        ):
            findings.append(LedgerFinding(entry.number, "was changed, or the one before it was"))
        previous = entry.hash
    return findings


def _files(ledger: Ledger) -> list[LedgerFinding]:
    findings = []
    for run in ledger.runs():
        try:
            RunFile(run, ledger.runs_folder / run.file).check()
        except DataError as error:
            findings.append(LedgerFinding(run.committed, error.rule))
    for number, members in ledger.members().items():
        try:
            release_members.read(ledger.runs_folder, members)
        except DataError as error:
            findings.append(LedgerFinding(number, error.rule))
    return findings


def holds(ledger: Ledger, number: int, head: bytes) -> bool:
    """Return whether a ledger has the entry of a receipt, or had it before its migration."""
    entry = ledger.entry(number)
    if entry is not None and entry.hash == head:
        return True
    named = {"number": number, "hash": head.hex()}
    return any(named in migrated.body["history"] for migrated in ledger.entries("migrate"))


def _lost(ledger: Ledger, number: int, head: bytes) -> LedgerFinding | None:
    if holds(ledger, number, head):
        return None
    there = ledger.entry(number) is not None
    words = "is not the one that a receipt names" if there else "is named by a receipt but missing"
    return LedgerFinding(number, f"{words}: this ledger was rolled back or replaced")
