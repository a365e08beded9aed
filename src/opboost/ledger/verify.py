"""Check a ledger: every link, every block of data, every receipt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from opboost.ledger.store import Ledger, entry_hash


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
    previous, listed = bytes(32), {}
    count = 0
    for count, entry in enumerate(ledger.entries(), 1):
        key = ledger.key_of(entry.key)
        text = json.dumps(entry.body, sort_keys=True, ensure_ascii=False)
        if entry.number != count - 1:
            findings.append(Finding(entry.number, "an entry is missing before this one"))
        if key is None:
            findings.append(Finding(entry.number, f"was written under an unknown key {entry.key}"))
        elif entry_hash(key, previous, entry.number, entry.at, entry.kind, text) != entry.hash:
            findings.append(Finding(entry.number, "was changed, or the one before it was"))
        previous = entry.hash
        for block in entry.body.get("blocks", ()):
            table = "charges" if "charge" in block else "noise"
            listed[table, block.get("charge", block.get("noise"))] = block["sha256"]
    for table, number, digest in ledger.blocks():
        stated = listed.pop((table, number), None)
        if stated is None:
            findings.append(Finding(None, f"block {number} of {table} belongs to no entry"))
        elif stated != digest:
            findings.append(Finding(None, f"block {number} of {table} was changed"))
    findings += [Finding(None, f"block {n} of {table} is missing") for table, n in listed]
    findings += [f for f in (_lost(ledger, *r) for r in receipts) if f is not None]
    return findings


def _lost(ledger: Ledger, number: int, head: bytes) -> Finding | None:
    entry = ledger.entry(number)
    if entry is not None and entry.hash == head:
        return None
    words = "is not the one that a receipt names" if entry else "is named by a receipt but missing"
    return Finding(number, f"{words}: this ledger was rolled back or replaced")
