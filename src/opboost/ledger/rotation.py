"""A new key: all stored names are encrypted anew, in one step of the chain."""

from __future__ import annotations

from opboost._typing import Words
from opboost.ledger.rewriting import Rewriting
from opboost.ledger.store import Ledger


def rotate(ledger: Ledger) -> None:
    """Encrypt stored names under the key file's newest key, unless they are; only under the lock.

    People stay who they are: the oldest key names them.
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
