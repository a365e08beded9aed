"""A new period: everybody's cells are drawn and charged again at the next release."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

from opboost.config import Plan
from opboost.errors import ConfigError, PrivacyError
from opboost.ledger.chain import Entry
from opboost.ledger.person_totals import Spent, totals
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Changed, Ledger
from opboost.ledger.verify_ledger import check_chain
from opboost.promises import Joint
from opboost.storage import atomic_files

NO_BOUND = "values that change are redrawn, so repeated releases have no bound over time"
"""The caveat of a guarantee with ``changed = "redraw"``."""


def over_time(promise: Joint, ledger: Ledger | None) -> Joint:
    """Return the promise of a release through a ledger, with a caveat if it redraws values."""
    if ledger is None or ledger.changed == "keep":
        return promise
    return replace(promise, caveats=(*promise.caveats, NO_BOUND))


def renew(ledger: Ledger, attribute: str = "", *, changed: Changed | None = None) -> Entry:
    """Start a new period for one attribute, or for all of them and the choice of columns.

    The decision to renew must not depend on the data: what a renewal reveals is charged, but the
    fact that it happened is not.  Caps cover all periods.  A renewal is refused while a reservation
    is open.
    """
    with atomic_files.alone(ledger.folder):
        check_chain(ledger)
        refuse_open(ledger)
        known = {c.attribute for run in ledger.runs() for c in run.columns}
        if attribute and attribute not in known:
            listed = ", ".join(sorted(known)) or "none yet"
            raise ConfigError(
                f"The ledger does not know attribute {attribute!r}, so there is nothing to renew. "
                f"It knows: {listed}."
            )
        if attribute and changed not in (None, ledger.changed):
            raise ConfigError(
                f'changed = "{changed}" applies to all attributes. Renew all of them: leave out '
                "--attribute."
            )
        with ledger.writing():
            return ledger.append(
                "renew", {"attribute": attribute, "changed": changed or ledger.changed}
            )


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a new period means for one person, over all periods.

    Attributes:
        people: How many people were charged for what is renewed.
        spent: The most that was spent on one of them.
        next: The most that the next release adds for each of them.
        beyond: Attributes (or ``"all together"``) whose cap that release may exceed.
    """

    people: int
    spent: float
    next: float
    beyond: tuple[str, ...]


def forecast(ledger: Ledger, plan: Plan, attribute: str = "") -> Forecast:
    """Return what renewing one attribute, or all, means for the next release of a plan."""
    found = ledger.consistently(lambda: totals(ledger))
    renewed = [
        (c, a) for c, a in zip(plan.private, plan.attributes, strict=True) if attribute in ("", a)
    ]
    sampled = None if plan.budget is None else plan.budget.columns_per_row

    def added(wanted: str = "") -> float:
        parts = {c.name: c.guarantee() for c, a in renewed if wanted in ("", a)}
        return Joint(parts, sampled).total

    def beyond(name: str, cap: float | None, more: float) -> bool:
        return cap is not None and more > 0 and _level(found.get(name)) + more > cap

    names = [
        a
        for a in dict.fromkeys(a for _, a in renewed)
        if beyond(a, ledger.caps.attribute, added(a))
    ]
    if beyond("", ledger.caps.person, added()):
        names.append("all together")
    before = found.get(attribute)
    return Forecast(before.people if before else 0, _level(before), added(), tuple(names))


def _level(spent: Spent | None) -> float:
    most = spent.most if spent else 0
    return inf if most >= UNBOUNDED else most / UNITS_PER_EPSILON


def refuse_open(ledger: Ledger) -> None:
    """Refuse to change the whole ledger while a release is reserved and not finished."""
    for entry in ledger.open_reservations():
        raise PrivacyError(
            f"Job {entry.body['job']!r} has reserved a release in entry {entry.number} and has "
            "not finished it. Run it again to finish it, or abort the reservation: "
            f"opboost ledger abort -c FILE {entry.number}"
        )


def abort(ledger: Ledger, number: int) -> Entry:
    """Abort an open reservation of a release that will not be finished; nothing was sent."""
    with atomic_files.alone(ledger.folder):
        check_chain(ledger)
        found = next((e for e in ledger.open_reservations() if e.number == number), None)
        if found is None:
            listed = ", ".join(str(e.number) for e in ledger.open_reservations()) or "none"
            raise ConfigError(
                f"Entry {number} is not an open reservation of the ledger. Open ones: {listed}."
            )
        about = {k: found.body[k] for k in ("job", "recipient")}
        with ledger.writing():
            reason = "aborted by hand"
            return ledger.append("abort", {"reservation": number, **about, "reason": reason})
