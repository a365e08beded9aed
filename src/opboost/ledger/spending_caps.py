"""Refuse a release that would exceed a limit on what is spent on one person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.errors import PrivacyError
from opboost.ledger.lookup import Lookup, Wanted
from opboost.ledger.score_charge import ScoreCharge, check_models
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Caps
from opboost.ledger.wanted_columns import decimal


def check_caps(
    caps: Caps, wanted: Sequence[Wanted], memory: Lookup, handles: Words, new: BoolArray
) -> None:
    """Refuse a release that would spend more on someone than a cap allows.

    ``new`` says which cells of each person would be charged.
    """
    amounts = np.array([w.amount for w in wanted], dtype=np.int64)
    for cap, what, before, cells in _capped(caps, wanted, memory, handles, new):
        _check_cap(cap, what, before, cells, amounts)


def beyond_caps(
    caps: Caps, wanted: Sequence[Wanted], memory: Lookup, handles: Words, new: BoolArray
) -> BoolArray:
    """Return the people on whom a release would spend more than a cap allows."""
    amounts = np.array([w.amount for w in wanted], dtype=np.int64)
    over = np.zeros(len(handles), dtype=bool)
    for cap, _, before, cells in _capped(caps, wanted, memory, handles, new):
        over |= _beyond(cap, before, cells, amounts)[0]
    return over


def _capped(
    caps: Caps, wanted: Sequence[Wanted], memory: Lookup, handles: Words, new: BoolArray
) -> Iterator[tuple[float, str, IntArray, BoolArray]]:
    """Yield each cap, what it limits, what was spent before, and the cells to be charged."""
    if caps.attribute is not None:
        for attribute in dict.fromkeys(w.attribute for w in wanted):
            of = np.array([w.attribute == attribute for w in wanted])
            before = memory.spent(handles, attribute)
            yield caps.attribute, f"attribute {attribute!r}", before, new & of
    if caps.person is not None:
        yield caps.person, "all attributes together", memory.spent(handles), new


def check_record_total(
    total: float, wanted: Sequence[Wanted], memory: Lookup, handles: Words, new: BoolArray
) -> None:
    """Refuse a release that would bring someone above ``total`` in this period.

    Everything charged since the period began counts, except scores, whatever the job or the plan.
    A renewal of a single attribute does not start such a period.
    """
    before = memory.spent_in_period(handles)
    over, most = _beyond_total(total, wanted, before, new)
    if over.any():
        left = max(_room(total) - int(before[over].max()), 0) / UNITS_PER_EPSILON
        raise PrivacyError(
            f"The release would spend {most} more on a person, and the record total allows "
            f"{total:g} per person and period, over all jobs and plans: {int(over.sum()):,} people "
            f"would exceed it, and one of them has {left:g} left. Nothing was sent. Leave them "
            "out, or start a new period with opboost ledger renew; caps still cover all periods."
        )


def beyond_record_total(
    total: float, wanted: Sequence[Wanted], memory: Lookup, handles: Words, new: BoolArray
) -> BoolArray:
    """Return the people on whom more than ``total`` would be spent in this period."""
    return _beyond_total(total, wanted, memory.spent_in_period(handles), new)[0]


def _beyond_total(
    total: float, wanted: Sequence[Wanted], before: IntArray, new: BoolArray
) -> tuple[BoolArray, str]:
    return _beyond(total, before, new, np.array([w.amount for w in wanted], dtype=np.int64))


def check_score(
    score: ScoreCharge,
    caps: Caps,
    wanted: Sequence[Wanted],
    memory: Lookup,
    handles: Words,
    new: BoolArray,
) -> None:
    """Refuse a score that exceeds the models per period, or a cap on an attribute that it reads."""
    check_models(score.models, memory.scored_in_period(handles), new.sum(axis=1))
    amounts = np.array([w.amount for w in wanted], dtype=np.int64)
    for attribute in score.reads if caps.attribute is not None else ():
        before = memory.spent(handles, attribute)
        _check_cap(caps.attribute or 0.0, f"attribute {attribute!r}", before, new, amounts)


def _check_cap(cap: float, what: str, before: IntArray, new: BoolArray, amounts: IntArray) -> None:
    over, most = _beyond(cap, before, new, amounts)
    if over.any():
        raise PrivacyError(
            f"The release would spend {most} more on a person, and on {what} no more than "
            f"{cap:g} may be spent: {int(over.sum()):,} people would exceed it. Nothing was sent. "
            "Leave out a column, lower its epsilon, or decide on a higher cap in [ledger]."
        )


def _beyond(
    limit: float, before: IntArray, new: BoolArray, amounts: IntArray
) -> tuple[BoolArray, str]:
    """Return who would exceed a limit, and the most that is added for one person, in words."""
    endless = amounts >= UNBOUNDED
    more = new @ np.where(endless, 0, amounts)
    over = new.any(axis=1) & (before + more > _room(limit)) | new[:, endless].any(axis=1)
    if new[:, endless].any():
        return over, "without bound"
    return over, f"{int(more.max(initial=0)) / UNITS_PER_EPSILON:g}"


def _room(limit: float) -> int:
    return min(int(decimal(limit) * UNITS_PER_EPSILON), UNBOUNDED - 1)
