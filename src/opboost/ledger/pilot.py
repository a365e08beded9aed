"""The pilot: a random share of the people, whose columns are released first, fixed per period."""

from __future__ import annotations

from opboost._typing import BoolArray, Words
from opboost.budgets.budget import below_share
from opboost.ledger.store import Ledger

PILOT = "\0pilot"
"""Takes the place of an attribute in sampling words; no real attribute contains this character."""


def in_pilot(ledger: Ledger, people: Words, share: float) -> BoolArray:
    """Return whether each person is in the pilot: a keyed word below ``share`` of its range."""
    return below_share(ledger.sampling_words(people, [PILOT])[:, 0], share)
