"""Noise that is drawn once: a release through the ledger.

A draw belongs to a person, an attribute, a mechanism (with its grid and level) and a period.
Whatever the value is now, whoever asks: a draw that was committed before is given again, and
nothing is charged.  Everything else is drawn and charged.  Nothing may be sent before the release
is committed, when :class:`Drawing` is left; a release that ends before leaves no trace but its
reservation, and is drawn afresh when it is run again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from fractions import Fraction
from math import ceil, isinf
from types import TracebackType
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.budgets.budget import Budget, columns_sent
from opboost.columns.column_specs import column_to_dict
from opboost.columns.dataframes import OutColumn, hidden
from opboost.columns.duplicate_ids import DuplicateIds
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.columns.row_ids import Spelling
from opboost.errors import DataError, OpBoostError, PrivacyError
from opboost.ledger import members
from opboost.ledger.chain import Entry
from opboost.ledger.compaction import merge_runs
from opboost.ledger.lookup import Known, Lookup, Wanted
from opboost.ledger.packed_draws import Draws, from_bytes, to_bytes, width_of
from opboost.ledger.rotation import rotate
from opboost.ledger.run_files import TAG_BYTES, Repeated, Run, RunWriter
from opboost.ledger.store import UNBOUNDED, UNITS_PER_EPSILON, Ledger
from opboost.ledger.verify_ledger import check_chain
from opboost.storage import atomic_files


class Drawing:
    """One release in progress: reserved when entered, committed when left, aborted by an error.

    ``attributes`` are the declared identities of the columns; a rename of a column leaves them as
    they are.  ``stored`` names a stored release whose outputs are kept there, and not here.
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
        stored: str = "",
    ) -> None:
        self._ledger, self._columns, self._attributes = ledger, tuple(columns), tuple(attributes)
        self._budget, self._new, self._stored = budget, frozenset(new_attributes), stored
        self._wanted = [
            Wanted(a, _identity(c), _amount(c), 0 if stored else width_of(c))
            for a, c in zip(self._attributes, columns, strict=True)
        ]
        self._about = {"job": job, "recipient": recipient}
        self._people = people
        self.rows = self.new_cells = self.old_cells = 0
        self.remarks: dict[str, str] = {}

    def __enter__(self) -> Drawing:
        with ExitStack() as stack:
            # Two drawings at once would not see each other's draws and noise a cell twice.
            stack.enter_context(atomic_files.alone(self._ledger.folder))
            check_chain(self._ledger)
            self._ledger.clear()
            rotate(self._ledger)
            merge_runs(self._ledger)
            with self._ledger.writing():
                self._check_attributes()
                self._number = self._reserve().number
            self._redraw = self._ledger.changed == "redraw"
            self._memory = Lookup(self._ledger, self._wanted)
            stored = [w.stored(tagged=self._redraw and not self._stored) for w in self._wanted]
            self._path = self._ledger.new_run_path()
            self._writer = RunWriter(self._path.parent, stored, self._stored)
            stack.callback(self._writer.close)
            self._seen = stack.enter_context(DuplicateIds(self._ledger.folder))
            self._alone = stack.pop_all()
        return self

    @property
    def spelling(self) -> Spelling:
        """How the IDs of people are to be spelt."""
        return self._ledger.ids

    def check(self, pieces: Iterable[tuple[Any, BoolArray | None]] = ()) -> None:
        """Refuse now what would be refused in the end, before anything is drawn or reserved.

        That is a damaged ledger, an attribute that it does not know, and people whom
        :meth:`charge` refuses; ``pieces`` are IDs and chosen columns as it takes them.
        """
        with atomic_files.alone(self._ledger.folder):
            check_chain(self._ledger)
            self._check_attributes()
            self._memory = Lookup(self._ledger, self._wanted)
            for ids, chosen in pieces:
                self._chargeable(ids, chosen)

    def draw(self, ids: Any, prepared: Sequence[Prepared]) -> list[list[OutColumn]]:
        """The released columns of some rows, each row's ID beside it."""
        people = self._ledger.people(ids)
        handles = self._ledger.handles(people)
        tags = self._tags(people, prepared) if self._redraw else None
        known = self._memory.known(handles, tags)
        if known.elsewhere.any():
            raise self._kept_elsewhere(known.elsewhere)
        if known.decided.all():
            return self._repeated(handles, known)
        fresh = ~known.decided
        chosen = self._sent(people)
        new = fresh if chosen is None else fresh & chosen
        self._check_caps(handles, new)
        record = np.zeros((len(people), self._writer.run.draw_bytes), dtype=np.uint8)
        out = []
        sent = known.sent | new
        for j, slot in enumerate(self._writer.run.slots()):
            tag = None if tags is None else tags[:, j]
            self._draw_new(j, prepared[j], new[:, j], tag, record[:, slot])
            drawn = record[:, slot][:, : self._wanted[j].width]
            if known.sent[:, j].any():
                drawn = np.where(new[:, j, None], drawn, known.draws[:, self._memory.slot(j)])
            out.append(_released(self._columns[j], drawn, sent[:, j]))
        self._remember(handles, fresh, new, record, known.recorded)
        self._count(len(people), new, sent)
        return out

    def _repeated(self, handles: Words, known: Known) -> list[list[OutColumn]]:
        """The released columns of people of whom everything stands: nothing is drawn or charged."""
        self._seen.add(handles[~known.recorded])
        self._count(len(handles), np.zeros_like(known.sent), known.sent)
        return [
            _released(column, known.draws[:, self._memory.slot(j)], known.sent[:, j])
            for j, column in enumerate(self._columns)
        ]

    def charge(self, ids: Any, chosen: BoolArray | None) -> None:
        """Charge people for noise that is drawn elsewhere and kept in the stored release.

        ``chosen`` says which columns of each row it holds; None, that it holds all.  People
        of whom one of these cells was drawn before are refused: a second, independent draw would
        tell more than was charged.
        """
        handles, here, chosen, recorded = self._chargeable(ids, chosen)
        nothing = np.zeros((len(handles), 0), dtype=np.uint8)
        decided = np.broadcast_to(here[:, None], chosen.shape)
        self._remember(handles, decided, chosen, nothing, recorded)
        self._count(len(handles), chosen, chosen)

    def _chargeable(
        self, ids: Any, chosen: BoolArray | None
    ) -> tuple[Words, BoolArray, BoolArray, BoolArray]:
        """Who is charged, who of them is not forgotten, for which columns, who has a record."""
        handles = self._ledger.handles(self._ledger.people(ids))
        known = self._memory.known(handles, None)
        here = ~self._memory.forgotten(handles)
        if known.decided[here].any():
            raise self._drawn_before(known.decided[here])
        all_here = np.broadcast_to(here[:, None], (len(handles), len(self._columns)))
        chosen = all_here if chosen is None else chosen & all_here
        self._check_caps(handles, chosen)
        return handles, here, chosen, known.recorded

    def forgotten(self, ids: Any) -> BoolArray:
        """Which rows are about people who are forgotten: nothing is sent about them."""
        return self._memory.forgotten(self._ledger.handles(self._ledger.people(ids)))

    def repeat(self, ids: Any, release: str) -> None:
        """Count rows of a stored release, whose noise was drawn and charged for before.

        It is sent as it is also after a renewal, so it is noted whose draws of then went out.
        """
        handles = self._ledger.handles(self._ledger.people(ids))
        sent = self._memory.stored(handles, release)
        self._seen.add(handles)
        self._count(len(handles), np.zeros_like(sent), sent)
        self.remarks["sent"] = release

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
            return  # by force or for want of room, no refusal: the same command goes on
        if kind is not None:
            self._abort(_reason(kind))
            return
        try:
            self._commit()
        except OpBoostError as error:
            self._path.unlink(missing_ok=True)
            self._abort(_reason(type(error)))
            raise

    def _commit(self) -> None:
        _refuse_twice(self._seen.repeats() + self._memory.repeats)
        with self._ledger.writing():
            number = self._ledger.head().number + 1
            runs, told = [], []
            if self._writer.count:
                runs.append(self._finished(number).as_json())
            if self._memory.members:
                path = self._path.with_name(f"{int(self._path.name) + 1:06d}")
                kept = members.write(path, self._memory.members)
                told.append([number, kept.as_json()])
            figures = {"rows": self.rows, "new_cells": self.new_cells, "old_cells": self.old_cells}
            body = {"reservation": self._number, **self._about, **figures, **self.remarks}
            self.entry: Entry = self._ledger.append(
                "commit", {**body, "runs": runs, "members": told}
            )

    def _finished(self, number: int) -> Run:
        try:
            return self._writer.finish(self._path, number)
        except Repeated as repeated:
            raise _twice(repeated.args[0]) from None

    def _abort(self, reason: str) -> None:
        with self._ledger.writing():
            body = {"reservation": self._number, **self._about, "reason": reason}
            self._ledger.append("abort", body)

    def _reserve(self) -> Entry:
        """A new reservation, or the open one of this job; one with another plan is aborted."""
        caps = {"attribute": self._ledger.caps.attribute, "person": self._ledger.caps.person}
        body = {**self._about, "people": self._people, "columns": self._described(), "caps": caps}
        for entry in self._ledger.open_reservations():
            if entry.body == body:
                return entry
            if entry.body["job"] == self._about["job"]:
                reason = "the job goes on with another plan"
                self._ledger.append(
                    "abort", {"reservation": entry.number, **self._about, "reason": reason}
                )
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

    def _check_attributes(self) -> None:
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
        for column, attribute in zip(self._columns, self._attributes, strict=True):
            if known and attribute not in known and attribute not in self._new:
                listed = ", ".join(sorted(known))
                raise PrivacyError(
                    f"Column {column.name!r} is attribute {attribute!r}, which this ledger has "
                    f"never seen; it knows {listed}. If it is one of these under a new name, add "
                    f'attribute = "<that one>" to [columns.{column.name}]; if it is truly new, '
                    f"list it under [ledger] new_attributes."
                )

    def _sent(self, people: Words) -> BoolArray | None:
        """Which columns of each person are sent: fixed within a period, whatever the values."""
        attributes = list(self._attributes)
        return columns_sent(self._budget, lambda: self._ledger.sampling_words(people, attributes))

    def _tags(self, people: Words, prepared: Sequence[Prepared]) -> Words:
        return np.column_stack(
            [
                self._ledger.tags(w.attribute, w.mechanism, people, c.states(p))
                for c, w, p in zip(self._columns, self._wanted, prepared, strict=True)
            ]
        )

    def _draw_new(
        self, j: int, prepared: Prepared, new: BoolArray, tags: Words | None, slot: Draws
    ) -> None:
        """Put draws for the new cells of a column into their slot, behind each its tag."""
        column, width = self._columns[j], self._wanted[j].width
        if new.all():
            slot[:, :width] = to_bytes(column, column.release(prepared), width)
        elif new.any():
            slot[new, :width] = to_bytes(column, column.release(prepared.where(new)), width)
        if tags is not None:
            slot[new, width:] = tags[new].astype("<u8").view(np.uint8).reshape(-1, TAG_BYTES)

    def _remember(
        self,
        handles: Words,
        decided: BoolArray,
        sent: BoolArray,
        draws: Draws,
        recorded: BoolArray,
    ) -> None:
        """Write records for people of whom something is decided now.

        Of all others, the memory finds those twice who are ``recorded``, and the rest is put aside.
        """
        some = decided.any(axis=1)
        if some.all():
            self._writer.add(handles, decided, sent, draws)
            return
        self._seen.add(handles[~some & ~recorded])
        if some.any():
            self._writer.add(handles[some], decided[some], sent[some], draws[some])

    def _count(self, rows: int, new: BoolArray, sent: BoolArray) -> None:
        self.rows += rows
        drawn = int(np.count_nonzero(new))
        self.new_cells += drawn
        self.old_cells += int(np.count_nonzero(sent)) - drawn

    def _check_caps(self, handles: Words, new: BoolArray) -> None:
        """Refuse a release that would spend more on someone than a cap allows."""
        caps = self._ledger.caps
        amounts = np.array([w.amount for w in self._wanted], dtype=np.int64)
        if caps.attribute is not None:
            for attribute in dict.fromkeys(self._attributes):
                of = np.array([w.attribute == attribute for w in self._wanted])
                before = self._memory.spent(handles, attribute)
                what = f"attribute {attribute!r}"
                self._check_cap(caps.attribute, what, before, new & of, amounts)
        if caps.person is not None:
            before = self._memory.spent(handles)
            self._check_cap(caps.person, "all attributes together", before, new, amounts)

    def _check_cap(
        self, cap: float, what: str, before: IntArray, new: BoolArray, amounts: IntArray
    ) -> None:
        room = min(int(_decimal(cap) * UNITS_PER_EPSILON), UNBOUNDED - 1)
        endless = amounts >= UNBOUNDED
        more = new @ np.where(endless, 0, amounts)
        over = new.any(axis=1) & (before + more > room) | new[:, endless].any(axis=1)
        if over.any():
            most = (
                "without bound"
                if new[:, endless].any()
                else f"{int(more.max()) / UNITS_PER_EPSILON:g}"
            )
            raise PrivacyError(
                f"The release would spend {most} more on a person, and on {what} no more than "
                f"{cap:g} may be spent: {int(over.sum()):,} people would go beyond it. Nothing "
                "was sent. Leave out a column, lower its epsilon, or decide on a higher cap in "
                "[ledger]."
            )

    def _kept_elsewhere(self, cells: BoolArray) -> PrivacyError:
        return PrivacyError(
            f"{int(cells.any(axis=1).sum()):,} people of the table were released before in parts "
            "(--engine), and their draws are kept in that stored release. Send the stored release, "
            "or begin a new period with opboost ledger renew. Nothing was sent."
        )

    def _drawn_before(self, decided: BoolArray) -> PrivacyError:
        return PrivacyError(
            f"{int(decided.any(axis=1).sum()):,} people of the table were released before, "
            "and a release in parts (--engine) would draw them a second time. Leave out --engine "
            "to repeat what was drawn, send the stored release that holds it, or begin a new "
            "period with opboost ledger renew. Nothing was sent."
        )


def _released(column: PrivateColumn, drawn: Draws, sent: BoolArray) -> list[OutColumn]:
    out = from_bytes(column, drawn)
    return out if sent.all() else [hidden(c, ~sent) for c in out]


def _reason(kind: type[BaseException]) -> str:
    """Why a release was taken back, for people who read the ledger."""
    if issubclass(kind, PrivacyError):
        return "refused: a cap or another privacy rule"
    return "refused: the table does not fit" if issubclass(kind, DataError) else "it failed"


def _refuse_twice(twice: int) -> None:
    if twice:
        raise _twice(twice)


def _twice(rows: int) -> DataError:
    return DataError(
        f"{rows:,} rows repeat an ID of an earlier row",
        hint="An ID stands for one person, however it is spelt: keep one row of each. Where "
        'IDs are case-sensitive, begin the ledger with ids = "exact" in [ledger].',
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
    return UNBOUNDED if isinf(total) else ceil(_decimal(total) * UNITS_PER_EPSILON)


def _decimal(level: float) -> Fraction:
    """A level as people write it: 5.76 is 576/100, so that a cap of 5.76 has room for it."""
    return Fraction(repr(float(level)))
