"""Limits that a plan exceeds whoever the people are: found when a file is read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from opboost.config.sections import LedgerSection
from opboost.config.table_plan import Plan
from opboost.errors import PrivacyError


def check_caps_of_plan(plan: Plan, ledger: LedgerSection) -> None:
    """Refuse a plan that spends more on one person, at its first release, than a cap allows."""
    sent = None if plan.budget is None else plan.budget.columns_per_row
    levels = [c.guarantee().total for c in plan.private]
    if ledger.cap_attribute is not None:
        for attribute in dict.fromkeys(plan.attributes):
            own = [v for v, a in zip(levels, plan.attributes, strict=True) if a == attribute]
            what = f"attribute {attribute!r}"
            _check(plan.source, what, ledger.cap_attribute, own, sent, "cap_attribute")
    if ledger.cap_person is not None:
        what = "all attributes together"
        _check(plan.source, what, ledger.cap_person, levels, sent, "cap_person")
    if plan.score is not None:
        _check_score(plan.source, plan.score.level, ledger)


def _check_score(source: str, level: float, ledger: LedgerSection) -> None:
    """Refuse scores that no person could be charged, or that nothing bounds over time."""
    if ledger.cap_person is None:
        raise PrivacyError(
            f"{source}: [budget] score releases scores, which are bounded over time by a cap alone."
            " Add cap_person to [ledger], at least the record total and the score together."
        )
    for what, cap, setting in (
        ("all attributes together", ledger.cap_person, "cap_person"),
        ("an attribute that a score reads", ledger.cap_attribute, "cap_attribute"),
    ):
        if cap is not None:
            _check(source, what, cap, [level], None, setting)


def check_job_record(plan: Plan, record: float | None, party: str) -> None:
    """Refuse a plan that alone reveals more about one person than the job allows."""
    if record is not None:
        check_record({party: plan.total}, record)


def check_record(totals: dict[str, float], limit: float) -> None:
    """Refuse feature parties that together reveal more about one person than the job allows.

    >>> check_record({"shop": 4.0, "telco": 4.0}, 8.0)
    """
    unbounded = [party for party, total in totals.items() if math.isinf(total)]
    if unbounded:
        raise PrivacyError(
            f"Party {unbounded[0]!r} reveals about one person without bound, and the job allows "
            f"{limit:g} ([job] record). Give it a [budget] record, or leave record out of [job] in "
            "the job file of all parties."
        )
    if sum(map(_exact, totals.values())) > _exact(limit):
        listed = ", ".join(f"{party} {total:g}" for party, total in totals.items())
        added = f" ({float(sum(map(_exact, totals.values()))):g} in all)" if len(totals) > 1 else ""
        raise PrivacyError(
            f"The job allows {limit:g} to be revealed about one person ([job] record), and the "
            f"plans of its feature parties come to more: {listed}{added}. Lower [budget] record of "
            "a party, or agree on a higher record in the job file of all parties. Nothing was "
            "drawn."
        )


def _check(
    source: str, what: str, cap: float, levels: Sequence[float], sent: int | None, setting: str
) -> None:
    """Compare exactly what the largest levels that one row sends add up to."""
    largest = sorted(levels, reverse=True)[:sent]
    if any(map(math.isinf, largest)):
        spent = math.inf
    else:
        exact = sum(map(_exact, largest), Fraction(0))
        if exact <= _exact(cap):
            return
        spent = float(exact)
    most = "without bound" if math.isinf(spent) else f"{spent:g}"
    raise PrivacyError(
        f"{source}: one release would spend {most} on a person, and on {what} no more than {cap:g} "
        f"may be spent ({setting} in [ledger]). Nothing was drawn. Lower the level or the record "
        "total, leave out a column, or decide on a higher cap."
    )


def _exact(level: float) -> Fraction:
    """A level as people write it: 5.76 is 576/100."""
    return Fraction(repr(float(level)))
