"""Key rotation: re-encrypt all stored names, with one entry of the chain."""

from __future__ import annotations

from opboost._typing import Words
from opboost.ledger.rewriting import Rewriting
from opboost.ledger.store import Ledger


def rotate(ledger: Ledger) -> None:
    """Encrypt stored names with the newest key unless they already are; the caller holds the lock.

    People keep their identity, because the oldest key names them.
    """
    old, new = ledger.storage_key, ledger.key
    if old.name == new.name:
        return

    def renamed(handles: Words) -> Words:
        return new.handles(old.people_behind(handles))

    change = Rewriting(ledger, renamed=renamed)
    for run in ledger.runs():
        change.write([run])
    change.commit("rotate", renamed(ledger.tombstones()), new.name)
