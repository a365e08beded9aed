"""Refuse a plan, as soon as its file is read, if it would exceed a limit for every person."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

from opboost.budgets.job_limit import check_record, exact_level
from opboost.config.sections import LedgerSection
from opboost.config.table_plan import Plan
from opboost.errors import PrivacyError


def check_caps_of_plan(plan: Plan, ledger: LedgerSection) -> None:
    """Refuse a plan whose first release spends more on one person than a cap allows."""
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
    """Refuse scores that exceed a cap, or that no cap bounds over time."""
    if ledger.cap_person is None:
        raise PrivacyError(
            f"{source}: [budget] score releases scores, which only a cap bounds over time. Add "
            "cap_person to [ledger], at least the record total and the score together."
        )
    for what, cap, setting in (
        ("all attributes together", ledger.cap_person, "cap_person"),
        ("an attribute that a score reads", ledger.cap_attribute, "cap_attribute"),
    ):
        if cap is not None:
            _check(source, what, cap, [level], None, setting)


def check_job_record(plan: Plan, record: float | None, party: str) -> None:
    """Refuse a plan that reveals more about one person than the whole job allows."""
    if record is not None:
        check_record({party: plan.total}, record)


def _check(
    source: str, what: str, cap: float, levels: Sequence[float], sent: int | None, setting: str
) -> None:
    """Refuse the plan if the exact sum of the largest levels sent for one row exceeds the cap."""
    largest = sorted(levels, reverse=True)[:sent]
    if any(map(math.isinf, largest)):
        spent = math.inf
    else:
        exact = sum(map(exact_level, largest), Fraction(0))
        if exact <= exact_level(cap):
            return
        spent = float(exact)
    most = "without bound" if math.isinf(spent) else f"{spent:g}"
    raise PrivacyError(
        f"{source}: one release would spend {most} on a person, and on {what} no more than {cap:g} "
        f"may be spent ({setting} in [ledger]). Nothing was drawn. Lower the level or the record "
        "total, leave out a column, or decide on a higher cap."
    )
