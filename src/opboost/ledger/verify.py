"""Check a ledger: every entry, every file that entries name, every receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opboost.errors import DataError, PrivacyError
from opboost.ledger import members
from opboost.ledger.chain import entry_hash
from opboost.ledger.runs import RunFile
from opboost.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, in words."""

    entry: int | None
    words: str


def verify(ledger: Ledger, receipts: Sequence[tuple[int, bytes]] = ()) -> list[Finding]:
    """Everything that is wrong; an empty list is a ledger that is whole.

    ``receipts`` are numbers and hashes of entries that recipients hold.
    """
    findings = _chain(ledger)
    try:
        findings += _files(ledger)
    except DataError as error:  # an entry that does not say which files there are
        findings.append(Finding(None, error.rule))
    return findings + [f for f in (_lost(ledger, *r) for r in receipts) if f is not None]


def check_chain(ledger: Ledger) -> None:
    """Refuse a ledger whose chain is damaged: what it says wrongly would be noised anew.

    Runs are checked when they are read.
    """
    for finding in _chain(ledger):
        place = "" if finding.entry is None else f"entry {finding.entry} "
        raise PrivacyError(
            f"The ledger in {ledger.folder} is not whole: {place}{finding.words}. "
            "People would be noised anew. Bring back a copy of it."
        )


def _chain(ledger: Ledger) -> list[Finding]:
    findings = [Finding(None, f"the file is damaged: {words}") for words in ledger.sound()]
    previous = bytes(32)
    for count, entry in enumerate(ledger.entries()):
        key = ledger.key_of(entry.key)
        if entry.number != count:
            findings.append(Finding(entry.number, "an entry is missing before this one"))
        if key is None:
            findings.append(Finding(entry.number, f"was written under an unknown key {entry.key}"))
        elif (
            entry_hash(key, previous, entry.number, entry.at, entry.kind, entry.text) != entry.hash
        ):
            findings.append(Finding(entry.number, "was changed, or the one before it was"))
        previous = entry.hash
    return findings


def _files(ledger: Ledger) -> list[Finding]:
    findings = []
    for run in ledger.runs():
        try:
            RunFile(run, ledger.runs_folder / run.file).check()
        except DataError as error:
            findings.append(Finding(run.committed, error.rule))
    for number, told in ledger.members().items():
        try:
            members.read(ledger.runs_folder, told)
        except DataError as error:
            findings.append(Finding(number, error.rule))
    return findings


def _lost(ledger: Ledger, number: int, head: bytes) -> Finding | None:
    entry = ledger.entry(number)
    if entry is not None and entry.hash == head:
        return None
    words = "is not the one that a receipt names" if entry else "is named by a receipt but missing"
    return Finding(number, f"{words}: this ledger was rolled back or replaced")
