"""Who releases first: a random share of the people, fixed within a period."""

from __future__ import annotations

from opboost._typing import BoolArray, Words
from opboost.budgets.budget import below_share
from opboost.ledger.store import Ledger

PILOT = "\0pilot"
"""Stands where words of columns have an attribute; no attribute of a file has this character."""


def in_pilot(ledger: Ledger, people: Words, share: float) -> BoolArray:
    """Return whether each person is in the pilot: a keyed word below ``share`` of its range."""
    return below_share(ledger.sampling_words(people, [PILOT])[:, 0], share)
