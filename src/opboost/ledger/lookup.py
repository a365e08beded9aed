"""Look up what the ledger remembers about people: decided cells, and what was spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.ledger.handle_index import Handles, rough_order
from opboost.ledger.packed_draws import Draws
from opboost.ledger.run_files import Run, RunColumn, RunFile
from opboost.ledger.score_charge import Reads, scored
from opboost.ledger.search_kernel import recall
from opboost.ledger.store import UNBOUNDED, Ledger


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column of a release: what identifies its draws, and how they are stored."""

    attribute: str
    mechanism: str
    amount: int
    width: int

    def stored(self, *, tagged: bool) -> RunColumn:
        """Return the column of a run that stores these draws."""
        return RunColumn(self.attribute, self.mechanism, self.amount, self.width, tagged)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is decided for some people: one row per person, one column per wanted column.

    ``elsewhere`` marks cells whose outputs are in a stored release and not in the ledger.
    ``recorded`` marks people who have a record in one of the runs that were searched.
    """

    decided: BoolArray
    sent: BoolArray
    draws: Draws
    elsewhere: BoolArray
    recorded: BoolArray


class Lookup:
    """A search for people in all runs, for the columns of one release.

    ``members`` marks, in each run, the people whom the release includes.  ``repeats`` counts the
    rows that repeat the person of an earlier row, if that person has a record.
    """

    def __init__(self, ledger: Ledger, wanted: Sequence[Wanted]) -> None:
        self._ledger, self._wanted = ledger, list(wanted)
        renewed = ledger.renewed()
        self._begun, self._reads = renewed[""], ledger.score_reads()
        self._matches: list[tuple[RunFile, IntArray]] = []
        self._ends = np.cumsum([0, *(w.width for w in wanted)])
        self._files = [ledger.run_file(run) for run in ledger.runs()]
        for file in self._files:
            columns = [
                self._match(file.run, j, k)
                for j, column in enumerate(self._wanted)
                for k, found in enumerate(file.run.columns)
                if (found.attribute, found.mechanism) == (column.attribute, column.mechanism)
                and file.run.committed > _begun(renewed, column.attribute)
            ]
            if columns:
                self._matches.append((file, np.array(columns, dtype=np.int64)))
        self._stones = ledger.tombstones()
        self.members: dict[str, BoolArray] = {}
        self.repeats = 0

    def _match(self, run: Run, j: int, k: int) -> tuple[int, ...]:
        """Return how to read a wanted column from a run's column, as :func:`recall` expects it."""
        column, slot = run.columns[k], run.slots()[k]
        tag = slot.start + column.width if column.tagged else -1
        width = column.width if column.width == self._wanted[j].width else 0
        return j, k, slot.start, int(self._ends[j]), width, tag

    def slot(self, j: int) -> slice:
        """Return the position of a wanted column's draws in :attr:`Known.draws`."""
        return slice(int(self._ends[j]), int(self._ends[j + 1]))

    def known(self, handles: Words, tags: Words | None) -> Known:
        """Return the draws to repeat: the earliest committed one of each cell in the period.

        ``tags`` identify values if changed ones are redrawn.  A decision not to send a cell applies
        whatever its value is.
        """
        rows, width = len(handles), len(self._wanted)
        decided, sent, elsewhere = (np.zeros((rows, width), dtype=np.bool_) for _ in range(3))
        draws = np.zeros((rows, int(self._ends[-1])), dtype=np.uint8)
        recorded = np.zeros(rows, dtype=np.bool_)
        order = rough_order(handles) if self._matches else np.empty(0, dtype=np.int64)
        marks = np.zeros((rows, width), dtype=np.uint64) if tags is None else tags
        for file, columns in self._matches:
            places = file.places(handles, order)
            if not (places >= 0).any():
                continue
            before = sent.copy() if file.run.stored else sent
            asked = (columns, whole_rows(file.run, columns), marks, self._members_of(file.run))
            found = (recorded, decided, sent, draws)
            repeats, _ = recall(order, places, file.records, *asked, *found)
            self.repeats += repeats
            if file.run.stored:
                elsewhere |= sent & ~before
        forgotten = self.forgotten(handles)
        decided[forgotten], sent[forgotten], elsewhere[forgotten] = True, False, False
        return Known(decided, sent, draws, elsewhere, recorded)

    def stored(self, handles: Words, release: str) -> BoolArray:
        """Return which columns of each person are in a stored release of any period."""
        sent = np.zeros((len(handles), len(self._wanted)), dtype=np.bool_)
        for file in self._files:
            if file.run.stored == release:
                places = file.places(handles)
                here = np.flatnonzero(places >= 0)
                if len(here):
                    self._members_of(file.run)[places[here]] = True
                    sent[here] |= file.sent(places[here])
        return sent

    def _members_of(self, run: Run) -> BoolArray:
        if run.file not in self.members:
            self.members[run.file] = np.zeros(run.count, dtype=np.bool_)
        return self.members[run.file]

    def forgotten(self, handles: Words) -> BoolArray:
        """Return which people have a tombstone."""
        if not len(self._stones):
            return np.zeros(len(handles), dtype=np.bool_)
        return have_tombstones(self._stones, handles)

    def spent(self, handles: Words, attribute: str | None = None) -> IntArray:
        """Return the billionths spent on each person in all periods, on one attribute or on all.

        ``UNBOUNDED`` means that something had no bound.  A score counts in full for every attribute
        that it reads.
        """
        return spent(self._files, handles, attribute, self._reads)

    def spent_in_period(self, handles: Words) -> IntArray:
        """Return what was spent on each person's columns since the last full renewal.

        The unit is billionths.  Scores are excluded: they have a separate budget.
        """
        files = [f for f in self._in_period() if not self._is_score(f)]
        return spent(files, handles, None, self._reads)

    def scored_in_period(self, handles: Words) -> IntArray:
        """Return how many models scored each person since the last full renewal."""
        return scored(self._in_period(), self._reads, handles)

    def _in_period(self) -> list[RunFile]:
        return [f for f in self._files if f.run.committed > self._begun]

    def _is_score(self, file: RunFile) -> bool:
        return all(c.attribute in self._reads for c in file.run.columns)


def whole_rows(run: Run, columns: IntArray) -> tuple[Draws, IntArray]:
    """Return the bits of some columns of a run, and their draws in as few spans as possible.

    The bits are empty if records must be read column by column: if a column has tags, which decide
    for each draw whether to use it, or if the run has two columns for one column of the release.
    """
    spans = [[0, 0, 0]]
    for _, _, source, target, width, _ in columns.tolist():
        first, put, size = spans[-1]
        if (first + size, put + size) == (source, target):
            spans[-1][2] += width
        else:
            spans.append([source, target, width])
    bits = np.zeros(len(run.columns), dtype=np.bool_)
    bits[columns[:, 1]] = True
    is_plain = bool((columns[:, 5] < 0).all()) and len(set(columns[:, 0])) == len(columns)
    return np.packbits(bits)[: None if is_plain else 0], np.array(spans, dtype=np.int64)


def have_tombstones(stones: Words, handles: Words) -> BoolArray:
    """Return which handles have a tombstone; tombstones are sorted by their first word."""
    return np.asarray(Handles(stones).places(handles) >= 0)


def spent(
    files: Sequence[RunFile],
    handles: Words,
    attribute: str | None = None,
    reads: Reads | None = None,
) -> IntArray:
    """Return what some runs charged each person, in billionths; ``reads`` says what scores read."""
    total = np.zeros(len(handles), dtype=np.int64)
    unbounded = np.zeros(len(handles), dtype=np.bool_)
    for file in files:
        amounts = charged_amounts(file.run, attribute, reads or {})
        if not amounts.any():
            continue
        places = file.places(handles)
        here = np.flatnonzero(places >= 0)
        sent = file.sent(places[here])
        endless = amounts >= UNBOUNDED
        total[here] += sent @ np.where(endless, 0, amounts)
        unbounded[here] |= sent[:, endless].any(axis=1)
    return np.where(unbounded, UNBOUNDED, total)


def charged_amounts(run: Run, attribute: str | None, reads: Reads) -> IntArray:
    """Return what each column of a run charges a person: for one attribute, or for all."""
    counted = [attribute is None or is_about(c.attribute, attribute, reads) for c in run.columns]
    wanted = [c.amount if here else 0 for c, here in zip(run.columns, counted, strict=True)]
    return np.array(wanted, dtype=np.int64)


def is_about(column: str, attribute: str, reads: Reads) -> bool:
    """Return whether a column belongs to an attribute, or is a score that reads it."""
    return column == attribute or attribute in reads.get(column, ())


def _begun(renewed: dict[str, int], attribute: str) -> int:
    return renewed.get(attribute, renewed[""])
