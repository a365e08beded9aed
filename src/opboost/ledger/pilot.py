"""The pilot: a random share of people, fixed per period, whose columns are released first."""

from __future__ import annotations

from opboost._typing import BoolArray, Words
from opboost.budgets.budget import below_share
from opboost.ledger.store import Ledger

PILOT = "\0pilot"
"""Stands in for an attribute in sampling words; no real attribute contains a NUL character."""


def in_pilot(ledger: Ledger, people: Words, share: float) -> BoolArray:
    """Return who is in the pilot: people whose word is in the lowest ``share`` of all words."""
    return below_share(ledger.sampling_words(people, [PILOT])[:, 0], share)
