"""Noise that is drawn once: a release through the ledger.

For each cell (person, attribute, value, mechanism) that was drawn before, for whomever, the same
draw is given again and nothing is charged.  New cells are charged and drawn, and both are on the
disk before :meth:`Drawing.draw` returns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import ExitStack
from fractions import Fraction
from functools import cached_property
from math import ceil, isinf
from types import TracebackType
from typing import Any

import numpy as np

from opboost._typing import BoolArray
from opboost.budget import Budget
from opboost.columns import Prepared, PrivateColumn
from opboost.durable import alone
from opboost.errors import DataError, PrivacyError
from opboost.frames import OutColumn, hidden
from opboost.ledger.keys import Persons
from opboost.ledger.packing import from_bytes, to_bytes, width_of
from opboost.ledger.store import UNBOUNDED, UNIT, Entry, Ledger
from opboost.ledger.verify import verify
from opboost.specs import column_to_dict
from opboost.unique import Unique


class Drawing:
    """One release in progress: reserved when entered, committed when left, aborted by an error.

    ``attributes`` are the declared identities of the columns; a rename of a column leaves them as
    they are.  A reservation that a crash left behind counts as spent, and is taken up again by the
    next drawing of the same job.
    """

    def __init__(
        self,
        ledger: Ledger,
        columns: Sequence[PrivateColumn],
        attributes: Sequence[str],
        *,
        job: str,
        recipient: str,
        budget: Budget | None = None,
        new_attributes: Sequence[str] = (),
        people: str = "",
    ) -> None:
        self._ledger, self._columns, self._attributes = ledger, tuple(columns), tuple(attributes)
        self._budget, self._new = budget, frozenset(new_attributes)
        self._mechanisms = [_identity(c) for c in columns]
        self._amounts = [_amount(c) for c in columns]
        self._about = {"job": job, "recipient": recipient}
        self._people = people
        self.rows = self._cells = 0
        self.remarks: dict[str, str] = {}

    def __enter__(self) -> Drawing:
        with ExitStack() as stack:
            # Two drawings at once would not see each other's draws and noise a cell twice.
            stack.enter_context(alone(self._ledger.folder))
            self._check_whole()
            with self._ledger.writing():
                self._check_attributes()
                self._number = self._reserve().number
                self._before = self._ledger.last_blocks()
            self._seen = stack.enter_context(Unique(self._ledger.folder))
            self._alone = stack.pop_all()
        return self

    def check(self) -> None:
        """Refuse now what would be refused in the end: a damaged ledger, unknown attributes."""
        with alone(self._ledger.folder):
            self._check_whole()
            self._check_attributes()

    def draw(self, ids: Sequence[bytes], prepared: Sequence[Prepared]) -> list[list[OutColumn]]:
        """The released columns of some rows, each row's ID beside it."""
        persons = {key.name: key.persons(ids) for key in self._ledger.keys}
        self._check_once(persons[self._ledger.key.name])
        with self._ledger.writing():
            blocks: list[dict[str, Any]] = []
            self._piece = self._ledger.last_blocks()
            chosen = self._chosen(persons, blocks)
            drawn = [
                self._column(j, persons, p, chosen[:, j], blocks) for j, p in enumerate(prepared)
            ]
            if blocks:
                self._ledger.append("draw", {"reservation": self._number, "blocks": blocks})
        self.rows += len(ids)
        return drawn

    def charge(self, part: int, ids: Sequence[bytes], chosen: BoolArray) -> None:
        """Charge people for noise that is drawn elsewhere; a part charged before is passed over.

        ``chosen`` says which columns of each row are released.  What is stored elsewhere is the
        memory of such noise: the ledger holds what it cost, not what it was.
        """
        persons = {key.name: key.persons(ids) for key in self._ledger.keys}
        self._check_once(persons[self._ledger.key.name])
        self.rows += len(ids)
        self._cells += int(chosen.sum())
        if part in self._charged_parts:
            return
        with self._ledger.writing():
            blocks: list[dict[str, Any]] = []
            self._piece = self._ledger.last_blocks()
            for j, rows in enumerate(chosen.T):
                if rows.any():
                    self._charge(j, {name: p.where(rows) for name, p in persons.items()}, blocks)
            body = {"reservation": self._number, "part": part, "blocks": blocks}
            self._ledger.append("draw", body)

    def repeat(self, ids: Sequence[bytes], cells: int) -> None:
        """Count rows whose noise was drawn and charged for before, and is kept elsewhere."""
        self._check_once(self._ledger.key.persons(ids))
        self.rows += len(ids)
        self._cells += cells

    @cached_property
    def _charged_parts(self) -> set[int]:
        """The parts that an earlier run of this reservation charged for."""
        bodies = [e.body for e in self._ledger.entries("draw")]
        return {b["part"] for b in bodies if b["reservation"] == self._number and "part" in b}

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._close(kind)
        finally:
            self._alone.close()

    def _close(self, kind: type[BaseException] | None) -> None:
        if kind is not None and (not issubclass(kind, Exception) or issubclass(kind, OSError)):
            return  # by force or for want of room, no refusal: it stands, to be taken up again
        if kind is not None:
            self._abort(kind.__name__)
            return
        try:
            _refuse_twice(self._seen.repeats())
        except DataError as twice:
            self._abort(type(twice).__name__)
            raise
        with self._ledger.writing():
            # What an earlier run drew before it was killed was drawn for this release, too.
            self.new_cells = self._ledger.cells_charged(self._number)
            self.old_cells = max(self._cells - self.new_cells, 0)
            figures = {"rows": self.rows, "new_cells": self.new_cells, "old_cells": self.old_cells}
            body = {"reservation": self._number, **self._about, **figures, **self.remarks}
            self.entry: Entry = self._ledger.append("commit", body)

    def _abort(self, reason: str) -> None:
        """Take back what this run drew: nothing of it was sent, and nobody else has seen it.

        What an earlier run of the same reservation drew stays: another job may have used it.
        """
        with self._ledger.writing():
            taken = [
                list(pair) for pair in zip(self._before, self._ledger.last_blocks(), strict=True)
            ]
            body = {"reservation": self._number, **self._about, "reason": reason}
            self._ledger.append("abort", {**body, "charges": taken[0], "noise": taken[1]})

    def _reserve(self) -> Entry:
        """A new reservation, or the one of this job that a crash left open."""
        columns = [
            {
                "attribute": attribute,
                "mechanism": mechanism,
                "declared": {k: v for k, v in column_to_dict(c).items() if k != "name"},
                "guarantee": str(c.guarantee()),
                "amount": "unbounded" if amount >= UNBOUNDED else str(Fraction(amount, UNIT)),
            }
            for c, attribute, mechanism, amount in zip(
                self._columns, self._attributes, self._mechanisms, self._amounts, strict=True
            )
        ]
        caps = {"attribute": self._ledger.caps.attribute, "person": self._ledger.caps.person}
        body = {**self._about, "people": self._people, "columns": columns, "caps": caps}
        closed = {e.body["reservation"] for e in self._ledger.entries("commit", "abort")}
        for entry in self._ledger.entries("reserve"):
            if entry.number not in closed and entry.body == body:
                return entry
        return self._ledger.append("reserve", body)

    def _check_whole(self) -> None:
        """Refuse a ledger that is damaged: what it remembers wrongly would be noised anew."""
        for finding in verify(self._ledger):
            place = "" if finding.entry is None else f"entry {finding.entry} "
            raise PrivacyError(
                f"The ledger in {self._ledger.folder} is not whole: {place}{finding.words}. "
                "People would be noised anew. Bring back a copy of it."
            )

    def _check_attributes(self) -> None:
        """Refuse an attribute that the ledger has never seen: it may be an old one, renamed."""
        reserved = [e.body for e in self._ledger.entries("reserve")]
        known = {c["attribute"] for body in reserved for c in body["columns"]}
        for body in reserved:
            if body["people"] != self._people:
                raise PrivacyError(
                    f"This ledger knows people by {body['people']!r}, the table by "
                    f"{self._people!r}: everyone would be taken for a new person. If the IDs are "
                    f'the same under a new name, add people = "{body["people"]}" to [ledger].'
                )
        for column, attribute in zip(self._columns, self._attributes, strict=True):
            if known and attribute not in known and attribute not in self._new:
                listed = ", ".join(sorted(known))
                raise PrivacyError(
                    f"Column {column.name!r} is attribute {attribute!r}, which this ledger has "
                    f"never seen; it knows {listed}. If it is one of these under a new name, add "
                    f'attribute = "<that one>" to [columns.{column.name}]; if it is truly new, '
                    f"list it under [ledger] new_attributes."
                )

    def _check_once(self, persons: Persons) -> None:
        """Refuse an ID that stands twice: that person would be released twice."""
        self._seen.add(persons.words[:, 2:])
        _refuse_twice(len(persons) - len(np.unique(persons.charged)))

    def _chosen(self, persons: dict[str, Persons], blocks: list[dict[str, Any]]) -> BoolArray:
        """Which columns of each row are released: drawn once a person, without a look at values."""
        rows, width = len(next(iter(persons.values()))), len(self._columns)
        if self._budget is None or self._budget.columns_per_row is None:
            return np.ones((rows, width), dtype=np.bool_)
        order = np.argsort(self._attributes)  # columns in another order are the same plan
        plan = hashlib.sha256(
            json.dumps([self._budget.columns_per_row, *sorted(self._attributes)]).encode()
        ).hexdigest()
        none = np.zeros(rows, dtype=np.int64)
        cells = {k.name: k.cells("", plan, persons[k.name], none) for k in self._ledger.keys}
        size = -(-width // 8)
        found, packed = self._ledger.remembered("", plan, cells, size, upto=self._before)
        fresh = np.packbits(self._budget.drawn(int((~found).sum()), width), axis=1)
        packed[~found] = fresh
        if len(fresh):
            new = cells[self._ledger.key.name][~found]
            blocks.append(self._ledger.add_noise(self._number, "", plan, new, fresh))
        chosen = np.empty((rows, width), dtype=np.bool_)
        chosen[:, order] = np.unpackbits(packed, axis=1, count=width)
        return chosen

    def _column(
        self,
        j: int,
        persons: dict[str, Persons],
        prepared: Prepared,
        chosen: BoolArray,
        blocks: list[dict[str, Any]],
    ) -> list[OutColumn]:
        column, attribute, mechanism = self._columns[j], self._attributes[j], self._mechanisms[j]
        states = column.states(prepared)
        cells = {
            k.name: k.cells(attribute, mechanism, persons[k.name], states)
            for k in self._ledger.keys
        }
        width = width_of(column)
        found, drawn = self._ledger.remembered(
            attribute, mechanism, cells, width, upto=self._before
        )
        fresh = chosen & ~found
        if fresh.any():
            self._charge(j, {name: p.where(fresh) for name, p in persons.items()}, blocks)
            drawn[fresh] = to_bytes(column, column.release(prepared.where(fresh)), width)
            new = cells[self._ledger.key.name][fresh]
            blocks.append(
                self._ledger.add_noise(self._number, attribute, mechanism, new, drawn[fresh])
            )
        self._cells += int(chosen.sum())
        out = from_bytes(column, drawn)
        return out if chosen.all() else [hidden(c, ~chosen) for c in out]

    def _charge(self, j: int, persons: dict[str, Persons], blocks: list[dict[str, Any]]) -> None:
        attribute, amount = self._attributes[j], self._amounts[j]
        caps = self._ledger.caps
        for cap, of, what in (
            (caps.attribute, attribute, f"attribute {attribute!r}"),
            (caps.person, None, "all attributes together"),
        ):
            if cap is None:
                continue
            spent = self._ledger.spent(persons, of, without=(self._before, self._piece))
            room = min(int(_decimal(cap) * UNIT), UNBOUNDED - 1) - amount
            over = spent > room
            if over.any():
                level = "without bound" if amount >= UNBOUNDED else f"{amount / UNIT:g}"
                raise PrivacyError(
                    f"The release would spend {level} more on column "
                    f"{self._columns[j].name!r}, and on {what} no more than {cap:g} may be spent "
                    f"a person: {int(over.sum()):,} people would go beyond it. Nothing was sent. "
                    "Leave out changed rows or the column, lower its epsilon, or decide on a "
                    "higher cap in [ledger]."
                )
        charged = persons[self._ledger.key.name].charged
        blocks.append(self._ledger.add_charge(self._number, attribute, amount, charged))


def _refuse_twice(twice: int) -> None:
    if twice:
        raise DataError(
            f"{twice:,} rows repeat an ID of an earlier row",
            hint="An ID stands for one person: keep one row of each.",
        )


def _identity(column: PrivateColumn) -> str:
    """The mechanism with its grid and mapping: what a draw's law depends on besides the cell."""
    spec = column_to_dict(column)
    kept = ["mapping", "mechanism", *(["missing"] if column.flagged() is not None else [])]
    plain = _spelt_alike({name: spec[name] for name in kept})
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def _spelt_alike(value: Any) -> Any:
    """The same numbers in one spelling: 50.0 is 50."""
    if isinstance(value, dict):
        return {k: _spelt_alike(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_spelt_alike(v) for v in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _amount(column: PrivateColumn) -> int:
    total = column.guarantee().total
    return UNBOUNDED if isinf(total) else ceil(_decimal(total) * UNIT)


def _decimal(level: float) -> Fraction:
    """A level as people write it: 5.76 is 576/100, so that a cap of 5.76 has room for it."""
    return Fraction(repr(float(level)))
