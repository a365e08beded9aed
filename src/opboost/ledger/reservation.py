"""A release's entry in the chain: reserved before anything is drawn, then committed or aborted."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from opboost.budgets.budget import Budget
from opboost.columns.column_specs import column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import PrivacyError
from opboost.ledger.chain import Entry
from opboost.ledger.frozen_plan import FrozenPlan, check_plan, frozen_plan, plan_to_freeze
from opboost.ledger.lookup import Wanted
from opboost.ledger.score_charge import ScoreCharge
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Ledger


def abort_open(ledger: Ledger, job: str, reason: str) -> None:
    """Abort the open reservations of a job."""
    with ledger.writing():
        for entry in ledger.open_reservations():
            if entry.body["job"] == job:
                about = {name: entry.body[name] for name in ("job", "recipient")}
                ledger.append("abort", {"reservation": entry.number, **about, "reason": reason})


def is_committed(ledger: Ledger, job: str) -> bool:
    """Return whether the ledger has a release of a job."""
    return any(entry.body["job"] == job for entry in ledger.entries("commit"))


class Reservation:
    """The record of one release in the chain.

    ``people`` is the ledger's name for the IDs.  ``new_attributes`` need not be
    known to the ledger yet.
    With a record budget, the reservation also holds the plan, which must be that of the period.
    """

    def __init__(
        self,
        ledger: Ledger,
        columns: Sequence[PrivateColumn],
        wanted: Sequence[Wanted],
        *,
        job: str,
        recipient: str,
        people: str,
        new_attributes: Sequence[str],
        budget: Budget | None = None,
        score: ScoreCharge | None = None,
    ) -> None:
        self._score = score
        self._ledger, self._columns, self._wanted = ledger, tuple(columns), tuple(wanted)
        self._about = {"job": job, "recipient": recipient}
        self._people, self._new = people, frozenset(new_attributes)
        self._number = 0
        self.plan: FrozenPlan | None = plan_to_freeze(budget, columns, self._described())

    def open(self) -> None:
        """Reserve the release, or resume the open reservation of its job."""
        with self._ledger.writing():
            self.check_attributes()
            self.check_plan()
            self._number = self._reserve().number

    def commit(self, **facts: Any) -> Entry:
        """Append the release; the caller holds the ledger's write lock."""
        return self._ledger.append("commit", {"reservation": self._number, **self._about, **facts})

    def abort(self, reason: str) -> None:
        """Abort the reservation."""
        with self._ledger.writing():
            self._abort(self._number, reason)

    def _abort(self, number: int, reason: str) -> None:
        self._ledger.append("abort", {"reservation": number, **self._about, "reason": reason})

    def _reserve(self) -> Entry:
        """Return this job's open reservation, or a new one; abort one whose plan differs."""
        caps = {"attribute": self._ledger.caps.attribute, "person": self._ledger.caps.person}
        about = {**self._about, "people": self._people}
        body: dict[str, Any] = {**about, "columns": self._described(), "caps": caps}
        if self.plan is not None:
            body["plan"] = self.plan.as_json()
        for entry in self._ledger.open_reservations():
            if entry.body == body:
                return entry
            if entry.body["job"] == self._about["job"]:
                self._abort(entry.number, "the job continues with another plan")
        return self._ledger.append("reserve", body)

    def _described(self) -> list[dict[str, Any]]:
        return [
            {
                "attribute": w.attribute,
                "mechanism": w.mechanism,
                "declared": {k: v for k, v in column_to_dict(c).items() if k != "name"},
                "guarantee": str(c.guarantee()),
                "amount": "unbounded"
                if w.amount >= UNBOUNDED
                else str(Fraction(w.amount, UNITS_PER_EPSILON)),
                **({"reads": list(self._score.reads)} if self._score is not None else {}),
            }
            for c, w in zip(self._columns, self._wanted, strict=True)
        ]

    def check_plan(self) -> FrozenPlan | None:
        """Refuse a record plan other than the period's, and return the period's plan or None."""
        frozen = frozen_plan(self._ledger)
        check_plan(frozen, self.plan)
        return frozen

    def check_attributes(self) -> None:
        """Refuse an attribute that the ledger has never seen: it may be a renamed one."""
        reserved = [e.body for e in self._ledger.entries("reserve")]
        reserved += [b for e in self._ledger.entries("migrate") for b in e.body["history"]]
        columns = [c for body in reserved for c in body.get("columns", [])]
        known = {c["attribute"] for c in columns if "reads" not in c}  # a score is not an attribute
        for body in reserved:
            if body.get("people", self._people) != self._people:
                raise PrivacyError(
                    f"This ledger identifies people by {body['people']!r}, but the table by "
                    f"{self._people!r}: everyone would count as a new person. If the IDs are "
                    f'the same under a new name, add people = "{body["people"]}" to [ledger].'
                )
        if self._score is not None:
            return  # the attributes of the score were already checked against the plan
        for column, wanted in zip(self._columns, self._wanted, strict=True):
            attribute = wanted.attribute
            if known and attribute not in known and attribute not in self._new:
                listed = ", ".join(sorted(known))
                raise PrivacyError(
                    f"Column {column.name!r} is attribute {attribute!r}, which this ledger has "
                    f"never seen; it knows {listed}. If it is one of these under a new name, add "
                    f'attribute = "<that one>" to [columns.{column.name}]; if it is truly new, '
                    f"list it under [ledger] new_attributes."
                )
