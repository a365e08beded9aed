"""Check a ledger: every link, every block of data, every receipt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opboost.errors import DataError
from opboost.ledger.store import Entry, Ledger, entry_hash


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong, in words."""

    entry: int | None
    words: str


def verify(ledger: Ledger, receipts: Sequence[tuple[int, bytes]] = ()) -> list[Finding]:
    """Everything that is wrong; an empty list is a ledger that is whole.

    ``receipts`` are numbers and hashes of entries that recipients hold.
    """
    findings = [Finding(None, f"the file is damaged: {words}") for words in ledger.sound()]
    previous = bytes(32)
    listed: dict[tuple[str, int], str] = {}
    count = 0
    for count, entry in enumerate(ledger.entries(), 1):
        key = ledger.key_of(entry.key)
        if entry.number != count - 1:
            findings.append(Finding(entry.number, "an entry is missing before this one"))
        if key is None:
            findings.append(Finding(entry.number, f"was written under an unknown key {entry.key}"))
        elif (
            entry_hash(key, previous, entry.number, entry.at, entry.kind, entry.text) != entry.hash
        ):
            findings.append(Finding(entry.number, "was changed, or the one before it was"))
        previous = entry.hash
        listed |= _blocks(entry)
    for table, number, digest in ledger.blocks():
        stated = listed.pop((table, number), None)
        if stated is None:
            findings.append(Finding(None, f"block {number} of {table} belongs to no entry"))
        elif stated != digest:
            findings.append(Finding(None, f"block {number} of {table} was changed"))
    findings += [Finding(None, f"block {n} of {table} is missing") for table, n in listed]
    findings += [f for f in (_lost(ledger, *r) for r in receipts) if f is not None]
    return findings


def _blocks(entry: Entry) -> dict[tuple[str, int], str]:
    """The blocks that an entry vouches for; a damaged one vouches for none."""
    if entry.kind != "draw":
        return {}
    try:
        return {
            ("charges" if "charge" in b else "noise", b.get("charge", b.get("noise"))): b["sha256"]
            for b in entry.body["blocks"]
        }
    except (DataError, KeyError, TypeError, AttributeError):
        return {}


def _lost(ledger: Ledger, number: int, head: bytes) -> Finding | None:
    entry = ledger.entry(number)
    if entry is not None and entry.hash == head:
        return None
    words = "is not the one that a receipt names" if entry else "is named by a receipt but missing"
    return Finding(number, f"{words}: this ledger was rolled back or replaced")
