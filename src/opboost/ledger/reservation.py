"""A release's place in the chain: reserved before anything is drawn, then committed or aborted."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from opboost.columns.column_specs import column_to_dict
from opboost.columns.private_column import PrivateColumn
from opboost.errors import PrivacyError
from opboost.ledger.chain import Entry
from opboost.ledger.lookup import Wanted
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Ledger


class Reservation:
    """What a release is recorded under.

    ``people`` is what the ledger calls the IDs; ``new_attributes`` may be ones it never saw.
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
    ) -> None:
        self._ledger, self._columns, self._wanted = ledger, tuple(columns), tuple(wanted)
        self._about = {"job": job, "recipient": recipient}
        self._people, self._new = people, frozenset(new_attributes)
        self._number = 0

    def open(self) -> None:
        """Reserve the release, or take up the open reservation of its job."""
        with self._ledger.writing():
            self.check_attributes()
            self._number = self._reserve().number

    def commit(self, **facts: Any) -> Entry:
        """Append the release; the caller holds the ledger's write lock."""
        return self._ledger.append("commit", {"reservation": self._number, **self._about, **facts})

    def abort(self, reason: str) -> None:
        """Take the reservation back."""
        with self._ledger.writing():
            self._abort(self._number, reason)

    def _abort(self, number: int, reason: str) -> None:
        self._ledger.append("abort", {"reservation": number, **self._about, "reason": reason})

    def _reserve(self) -> Entry:
        """A new reservation, or the open one of this job; one with another plan is aborted."""
        caps = {"attribute": self._ledger.caps.attribute, "person": self._ledger.caps.person}
        body = {**self._about, "people": self._people, "columns": self._described(), "caps": caps}
        for entry in self._ledger.open_reservations():
            if entry.body == body:
                return entry
            if entry.body["job"] == self._about["job"]:
                self._abort(entry.number, "the job goes on with another plan")
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
            }
            for c, w in zip(self._columns, self._wanted, strict=True)
        ]

    def check_attributes(self) -> None:
        """Refuse an attribute that the ledger has never seen: it may be an old one, renamed."""
        reserved = [e.body for e in self._ledger.entries("reserve")]
        reserved += [b for e in self._ledger.entries("migrate") for b in e.body["history"]]
        known = {c["attribute"] for body in reserved for c in body.get("columns", [])}
        for body in reserved:
            if body.get("people", self._people) != self._people:
                raise PrivacyError(
                    f"This ledger knows people by {body['people']!r}, the table by "
                    f"{self._people!r}: everyone would be taken for a new person. If the IDs are "
                    f'the same under a new name, add people = "{body["people"]}" to [ledger].'
                )
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
