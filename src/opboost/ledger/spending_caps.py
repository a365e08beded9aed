"""What may be spent on one person: a release that would go beyond a cap is refused."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.errors import PrivacyError
from opboost.ledger.lookup import Lookup, Wanted
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Caps
from opboost.ledger.wanted_columns import decimal


def check_caps(
    caps: Caps, wanted: Sequence[Wanted], memory: Lookup, handles: Words, new: BoolArray
) -> None:
    """Refuse a release that would spend more on someone than a cap allows.

    ``new`` says which cells of each person would be charged.
    """
    amounts = np.array([w.amount for w in wanted], dtype=np.int64)
    if caps.attribute is not None:
        for attribute in dict.fromkeys(w.attribute for w in wanted):
            of = np.array([w.attribute == attribute for w in wanted])
            before = memory.spent(handles, attribute)
            what = f"attribute {attribute!r}"
            _check_cap(caps.attribute, what, before, new & of, amounts)
    if caps.person is not None:
        before = memory.spent(handles)
        _check_cap(caps.person, "all attributes together", before, new, amounts)


def _check_cap(cap: float, what: str, before: IntArray, new: BoolArray, amounts: IntArray) -> None:
    room = min(int(decimal(cap) * UNITS_PER_EPSILON), UNBOUNDED - 1)
    endless = amounts >= UNBOUNDED
    more = new @ np.where(endless, 0, amounts)
    over = new.any(axis=1) & (before + more > room) | new[:, endless].any(axis=1)
    if over.any():
        most = (
            "without bound" if new[:, endless].any() else f"{int(more.max()) / UNITS_PER_EPSILON:g}"
        )
        raise PrivacyError(
            f"The release would spend {most} more on a person, and on {what} no more than "
            f"{cap:g} may be spent: {int(over.sum()):,} people would go beyond it. Nothing "
            "was sent. Leave out a column, lower its epsilon, or decide on a higher cap in "
            "[ledger]."
        )
