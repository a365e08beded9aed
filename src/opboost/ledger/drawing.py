"""A release through the ledger, which draws noise only once.

A draw belongs to a person, an attribute, a mechanism (with its grid, mapping and level) and a
period.  A draw that was committed before is repeated at no charge, whoever receives it.  This holds
even if the value has changed, unless the ledger redraws changed values (``changed = "redraw"``).
Everything else is drawn and charged.

Send nothing before the release is committed, which happens at the end of the ``with`` block of
:class:`Drawing`.  A release that is killed earlier leaves only its reservation; if it is run again,
it draws again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any

import numpy as np

from opboost._typing import BoolArray, Words
from opboost.budgets.budget import Budget, columns_sent
from opboost.columns.dataframes import OutColumn, hidden
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.columns.row_ids import Spelling
from opboost.errors import DataError, OpBoostError, PrivacyError, refusing
from opboost.ledger import release_members
from opboost.ledger.chain import Entry
from opboost.ledger.compaction import merge_runs
from opboost.ledger.frozen_plan import FrozenPlan, check_left_out, frozen_plan
from opboost.ledger.lookup import Known, Lookup
from opboost.ledger.new_run import NewRun
from opboost.ledger.packed_draws import Draws, from_bytes, to_bytes
from opboost.ledger.pilot import in_pilot
from opboost.ledger.reservation import Reservation
from opboost.ledger.rotation import rotate
from opboost.ledger.run_files import TAG_BYTES
from opboost.ledger.score_charge import ScoreCharge, check_cap_person
from opboost.ledger.spending_caps import (
    beyond_caps,
    beyond_record_total,
    check_caps,
    check_record_total,
    check_score,
)
from opboost.ledger.store import Caps, Ledger
from opboost.ledger.verify_ledger import check_chain
from opboost.ledger.wanted_columns import wanted_columns
from opboost.storage import atomic_files


class Drawing:
    """One release in progress: reserved on entry, committed on exit, aborted if it is refused.

    ``attributes`` are the declared identities of the columns; an identity stays the same if its
    column is renamed. ``stored`` names a stored release: the noisy values are kept there and not in
    the ledger. Give ``score`` only if the single column is a model's score; it names the attributes
    that the score reads.
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
        score: ScoreCharge | None = None,
    ) -> None:
        if score is not None:
            check_cap_person(ledger.caps.person)
        self._score = score
        self._ledger, self._columns, self._attributes = ledger, tuple(columns), tuple(attributes)
        self._budget, self._stored = budget, stored
        self._wanted = wanted_columns(columns, attributes, draws_here=not stored)
        self._reservation = Reservation(
            ledger,
            columns,
            self._wanted,
            job=job,
            recipient=recipient,
            people=people,
            new_attributes=new_attributes,
            budget=budget,
            score=score,
        )
        self._frozen: FrozenPlan | None = None
        self.rows = self.new_cells = self.old_cells = 0
        self.remarks: dict[str, str] = {}

    def __enter__(self) -> Drawing:
        with ExitStack() as stack:
            # Two releases at the same time would not see each other's draws: both would draw.
            stack.enter_context(atomic_files.alone(self._ledger.folder))
            check_chain(self._ledger)
            self._ledger.clear()
            rotate(self._ledger)
            merge_runs(self._ledger)
            self._reservation.open()
            self._frozen = self._reservation.check_plan()
            # A person has one score per model and period, even if values have changed.
            self._redraw = self._ledger.changed == "redraw" and self._score is None
            self._memory = Lookup(self._ledger, self._wanted)
            stored = [w.stored(tagged=self._redraw and not self._stored) for w in self._wanted]
            self._run = stack.enter_context(NewRun(self._ledger, stored, self._stored))
            self._alone = stack.pop_all()
        return self

    @property
    def spelling(self) -> Spelling:
        """How the ledger compares IDs: exactly, or in their canonical form."""
        return self._ledger.ids

    def check(self, pieces: Iterable[tuple[Any, BoolArray | None]] = ()) -> None:
        """Run all later checks now, and refuse before anything is drawn or reserved.

        This refuses a damaged ledger, an unknown attribute, a record plan other than the period's,
        and people whom :meth:`draw` or :meth:`charge` would refuse. ``pieces`` are IDs and chosen
        columns, as :meth:`charge` takes them. If the ledger redraws changed values, only
        :meth:`draw` knows what is charged; in that case, this method checks people only if the
        release is stored or is a score.
        """
        with atomic_files.alone(self._ledger.folder):
            check_chain(self._ledger)
            self._recall()
            for ids, chosen in pieces:
                if self._stored:
                    self._chargeable(ids, chosen)
                elif self._ledger.changed == "keep" or self._score is not None:
                    self._new_cells(*self._looked_up(ids))

    def rehearse(
        self, pieces: Callable[[], Iterable[tuple[Any, None]]], *, all_people: bool
    ) -> None:
        """Refuse what :meth:`check` refuses, without a lock and without writing to the ledger.

        ``pieces`` yields the IDs of the table.  Without ``all_people``, only some of these people
        will be in the release, so this refuses only if the ledger would refuse every one of them.
        """

        def look() -> None:
            with refusing("declaration"):
                self._recall()
            if self._ledger.changed == "keep":
                with refusing("cap"):
                    self._rehearse_people(pieces(), all_people)

        self._ledger.consistently(look)

    def _rehearse_people(self, pieces: Iterable[tuple[Any, None]], all_people: bool) -> None:
        refused: PrivacyError | None = None
        for ids, _ in pieces:
            people, handles, known = self._looked_up(ids)
            try:
                self._new_cells(people, handles, known)
            except PrivacyError as error:
                if all_people:
                    raise
                refused = refused or error
                if not self._nobody_left(people, handles, known):
                    return
            else:
                if not all_people:
                    return
        if refused is not None:
            raise refused

    def _nobody_left(self, people: Words, handles: Words, known: Known) -> bool:
        """Return whether the ledger refuses every one of these people."""
        chosen = self._sent(people)
        new = ~known.decided if chosen is None else ~known.decided & chosen
        refused = known.elsewhere.any(axis=1)
        plan = self._reservation.plan
        if plan is not None and self._frozen is not None and plan.digest != self._frozen.digest:
            refused |= new.any(axis=1)
        if (binding := plan or self._frozen) is not None:
            refused |= beyond_record_total(binding.total, self._wanted, self._memory, handles, new)
        refused |= beyond_caps(self._ledger.caps, self._wanted, self._memory, handles, new)
        return bool(refused.all())

    def _recall(self) -> None:
        """Load what the ledger holds for these columns; refuse columns or a plan it forbids."""
        self._reservation.check_attributes()
        self._frozen = self._reservation.check_plan()
        self._memory = Lookup(self._ledger, self._wanted)

    def _looked_up(self, ids: Any) -> tuple[Words, Words, Known]:
        people = self._ledger.people(ids)
        handles = self._ledger.handles(people)
        return people, handles, self._memory.known(handles, None)

    def can_refuse_people(self) -> bool:
        """Return whether the ledger could refuse some people; if not, IDs need no early check.

        If a cap is set, the ledger could refuse people as soon as it has recorded a release.
        Without a cap, it could refuse people in three cases:

        * a release of this period was made in parts, so that the ledger does not hold its draws;
        * there is a record plan, and some attribute was renewed on its own;
        * there is a record plan, and a release of this period had different columns.
        """
        ledger = self._ledger
        if ledger.caps != Caps():
            return bool(ledger.runs())
        renewed = ledger.renewed()
        runs = [run for run in ledger.runs() if run.committed > renewed[""]]
        if self._reservation.plan is None and frozen_plan(ledger) is None:
            return any(run.stored for run in runs)
        own = {(w.attribute, w.mechanism) for w in self._wanted}
        others = ({(c.attribute, c.mechanism) for c in run.columns} != own for run in runs)
        return len(renewed) > 1 or any(run.stored for run in runs) or any(others)

    def draw(self, ids: Any, prepared: Sequence[Prepared]) -> list[list[OutColumn]]:
        """Return the released columns of some rows, given their IDs and their private columns."""
        people = self._ledger.people(ids)
        handles = self._ledger.handles(people)
        tags = self._tags(people, prepared) if self._redraw else None
        known = self._memory.known(handles, tags)
        new = self._new_cells(people, handles, known)
        if known.decided.all():
            return self._repeated(handles, known)
        fresh = ~known.decided
        record = np.zeros((len(people), self._run.draw_bytes), dtype=np.uint8)
        out = []
        sent = known.sent | new
        for j, slot in enumerate(self._run.slots()):
            tag = None if tags is None else tags[:, j]
            self._draw_new(j, prepared[j], new[:, j], tag, record[:, slot])
            drawn = record[:, slot][:, : self._wanted[j].width]
            if known.sent[:, j].any():
                drawn = np.where(new[:, j, None], drawn, known.draws[:, self._memory.slot(j)])
            out.append(_released(self._columns[j], drawn, sent[:, j]))
        self._run.add(handles, fresh, new, record, known.recorded)
        self._count(len(people), new, sent)
        return out

    def _new_cells(self, people: Words, handles: Words, known: Known) -> BoolArray:
        """Return the cells to draw; refuse the release if any person in it must not be charged."""
        if known.elsewhere.any():
            raise self._kept_elsewhere(known.elsewhere)
        if known.decided.all():
            return np.zeros_like(known.decided)
        chosen = self._sent(people)
        new = ~known.decided if chosen is None else ~known.decided & chosen
        self._check_charge(handles, new)
        return new

    def _check_charge(self, handles: Words, new: BoolArray) -> None:
        """Refuse the release if the plan, the total or a cap forbids charging these cells."""
        plan, memory = self._reservation.plan, self._memory
        if self._score is not None:
            check_score(self._score, self._ledger.caps, self._wanted, memory, handles, new)
            check_caps(self._ledger.caps, self._wanted, memory, handles, new)
            return
        check_left_out(self._frozen, plan, int(np.count_nonzero(new.any(axis=1))))
        if (binding := plan or self._frozen) is not None:
            check_record_total(binding.total, self._wanted, memory, handles, new)
        check_caps(self._ledger.caps, self._wanted, memory, handles, new)

    def _repeated(self, handles: Words, known: Known) -> list[list[OutColumn]]:
        """Return the released columns of people for whom nothing is drawn or charged."""
        self._run.see(handles[~known.recorded])
        self._count(len(handles), np.zeros_like(known.sent), known.sent)
        return [
            _released(column, known.draws[:, self._memory.slot(j)], known.sent[:, j])
            for j, column in enumerate(self._columns)
        ]

    def charge(self, ids: Any, chosen: BoolArray | None) -> None:
        """Charge people for noisy values that are kept in a stored release instead of the ledger.

        ``chosen`` says which columns the stored release holds for each row; None means all.  If the
        ledger already has a draw for any of these people, this refuses the whole release: a second,
        independent draw would reveal more than was charged.
        """
        handles, here, chosen, recorded = self._chargeable(ids, chosen)
        nothing = np.zeros((len(handles), 0), dtype=np.uint8)
        decided = np.broadcast_to(here[:, None], chosen.shape)
        self._run.add(handles, decided, chosen, nothing, recorded)
        self._count(len(handles), chosen, chosen)

    def _chargeable(
        self, ids: Any, chosen: BoolArray | None
    ) -> tuple[Words, BoolArray, BoolArray, BoolArray]:
        """Return the people's handles and three masks, or refuse the release.

        The masks mark people who are not forgotten, cells to charge, and people of whom the ledger
        has a record.
        """
        handles = self._ledger.handles(self._ledger.people(ids))
        known = self._memory.known(handles, None)
        here = ~self._memory.forgotten(handles)
        if known.decided[here].any():
            raise self._drawn_before(known.decided[here])
        all_here = np.broadcast_to(here[:, None], (len(handles), len(self._columns)))
        chosen = all_here if chosen is None else chosen & all_here
        self._check_charge(handles, chosen)
        return handles, here, chosen, known.recorded

    def forgotten(self, ids: Any) -> BoolArray:
        """Return which rows are about forgotten people; no column is sent for them."""
        return self._memory.forgotten(self._ledger.handles(self._ledger.people(ids)))

    def repeat(self, ids: Any, release: str) -> None:
        """Count the rows of a stored release, whose noise was drawn and charged before.

        A stored release is sent unchanged even after a renewal, so the ledger notes whose old draws
        were sent.
        """
        handles = self._ledger.handles(self._ledger.people(ids))
        sent = self._memory.stored(handles, release)
        self._run.see(handles)
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
            return  # killed or out of space, not refused: the same command resumes the release
        if kind is not None:
            self._reservation.abort(_reason(kind))
            return
        try:
            self._commit()
        except OpBoostError as error:
            self._run.discard()
            self._reservation.abort(_reason(type(error)))
            raise

    def _commit(self) -> None:
        self._run.check_seen(self._memory.repeats)
        with self._ledger.writing():
            number = self._ledger.head().number + 1
            run, members = self._run.finish(number), []
            if self._memory.members:
                kept = release_members.write(self._run.next_path, self._memory.members)
                members.append([number, kept.as_json()])
            self.entry: Entry = self._reservation.commit(
                rows=self.rows,
                new_cells=self.new_cells,
                old_cells=self.old_cells,
                **self.remarks,
                runs=[] if run is None else [run.as_json()],
                members=members,
            )

    def _sent(self, people: Words) -> BoolArray | None:
        """Return which columns are sent for each person, or None if all are.

        The choice is fixed within a period and does not depend on the person's values.
        """
        attributes, names = list(self._attributes), [c.name for c in self._columns]
        return columns_sent(
            self._budget,
            lambda: self._ledger.sampling_words(people, attributes),
            names,
            lambda: in_pilot(self._ledger, people, getattr(self._budget, "pilot", 0.0)),
        )

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
        """Write the draws of a column's new cells to their slot, each followed by its tag."""
        column, width = self._columns[j], self._wanted[j].width
        if new.all():
            slot[:, :width] = to_bytes(column, column.release(prepared), width)
        elif new.any():
            slot[new, :width] = to_bytes(column, column.release(prepared.where(new)), width)
        if tags is not None:
            slot[new, width:] = tags[new].astype("<u8").view(np.uint8).reshape(-1, TAG_BYTES)

    def _count(self, rows: int, new: BoolArray, sent: BoolArray) -> None:
        self.rows += rows
        drawn = int(np.count_nonzero(new))
        self.new_cells += drawn
        self.old_cells += int(np.count_nonzero(sent)) - drawn

    def _kept_elsewhere(self, cells: BoolArray) -> PrivacyError:
        return PrivacyError(
            f"For {int(cells.any(axis=1).sum()):,} people in the table, a release in parts "
            "(--engine) was made before, and their draws are kept in that stored release. Send the "
            "stored release, or start a new period with opboost ledger renew. Nothing was sent."
        )

    def _drawn_before(self, decided: BoolArray) -> PrivacyError:
        return PrivacyError(
            f"For {int(decided.any(axis=1).sum()):,} people in the table, a release was made "
            "before, and a release in parts (--engine) would draw their noise a second time. Leave "
            "out --engine to repeat the earlier draws, send the stored release that holds them, or "
            "start a new period with opboost ledger renew. Nothing was sent."
        )


def _released(column: PrivateColumn, drawn: Draws, sent: BoolArray) -> list[OutColumn]:
    out = from_bytes(column, drawn)
    return out if sent.all() else [hidden(c, ~sent) for c in out]


def _reason(kind: type[BaseException]) -> str:
    """Return why a release was aborted, in words for readers of the ledger."""
    if issubclass(kind, PrivacyError):
        return "refused: a cap or another privacy rule"
    return "refused: the table does not fit" if issubclass(kind, DataError) else "it failed"
