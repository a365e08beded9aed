"""What the ledger remembers of some people: which of their cells stand, and what was spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.ledger.packing import Draws
from opboost.ledger.runs import Run, RunColumn, RunFile
from opboost.ledger.store import UNBOUNDED, Ledger


@dataclass(frozen=True, slots=True)
class Wanted:
    """A column of a release: what tells its draws from others, and how they are stored."""

    attribute: str
    mechanism: str
    amount: int
    width: int

    def stored(self, *, tagged: bool) -> RunColumn:
        """The column of a run that remembers it."""
        return RunColumn(self.attribute, self.mechanism, self.amount, self.width, tagged)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What stands for some people: one row each, one column for each that is wanted.

    ``elsewhere`` marks cells whose outputs a stored release holds, and not the ledger.
    """

    decided: BoolArray
    sent: BoolArray
    draws: list[Draws]
    elsewhere: BoolArray


class Memory:
    """Looks people up in all runs, for one release's columns.

    ``members`` collects whom of each run the release is about.
    """

    def __init__(self, ledger: Ledger, wanted: Sequence[Wanted]) -> None:
        self._ledger, self._wanted = ledger, list(wanted)
        renewed = ledger.renewed()
        self._matches: list[tuple[RunFile, list[tuple[int, int]]]] = []
        self._files = [ledger.run_file(run) for run in ledger.runs()]
        for file in self._files:
            pairs = [
                (j, k)
                for j, column in enumerate(self._wanted)
                for k, found in enumerate(file.run.columns)
                if (found.attribute, found.mechanism) == (column.attribute, column.mechanism)
                and file.run.committed > _begun(renewed, column.attribute)
            ]
            if pairs:
                self._matches.append((file, pairs))
        self._stones = ledger.tombstones()
        self.members: dict[str, BoolArray] = {}

    def known(self, handles: Words, tags: Sequence[Words] | None) -> Known:
        """The draws that stand: the earliest committed one of each cell of the period.

        ``tags`` tell values apart where changed ones are drawn anew; a cell that was decided to be
        not sent stands whatever its value is.
        """
        rows, width = len(handles), len(self._wanted)
        decided, sent, elsewhere = (np.zeros((rows, width), dtype=np.bool_) for _ in range(3))
        draws = [np.zeros((rows, c.width), dtype=np.uint8) for c in self._wanted]
        for file, pairs in self._matches:
            places = file.places(handles)
            here = np.flatnonzero(places >= 0)
            if not len(here):
                continue
            places = places[here]
            self._note_members(file.run, places)
            says, was_sent, stored = file.decided(places), file.sent(places), file.draws[places]
            slots = file.run.slots()
            for j, k in pairs:
                column, drawn = file.run.columns[k], stored[:, slots[k]]
                stands = says[:, k] & ~decided[here, j]
                if tags is not None and column.tagged:
                    stands &= ~was_sent[:, k] | _same(drawn[:, column.width :], tags[j][here])
                at = here[stands]
                decided[at, j], sent[at, j] = True, was_sent[stands, k]
                if column.width == self._wanted[j].width:
                    draws[j][at] = drawn[stands, : column.width]
                else:
                    elsewhere[at, j] = was_sent[stands, k]
        forgotten = self.forgotten(handles)
        decided[forgotten], sent[forgotten], elsewhere[forgotten] = True, False, False
        return Known(decided, sent, draws, elsewhere)

    def _note_members(self, run: Run, places: IntArray) -> None:
        if run.file not in self.members:
            self.members[run.file] = np.zeros(run.count, dtype=np.bool_)
        self.members[run.file][places] = True

    def forgotten(self, handles: Words) -> BoolArray:
        """Who has a tombstone."""
        if not len(self._stones):
            return np.zeros(len(handles), dtype=np.bool_)
        alike = (handles[:, None, :] == self._stones[None, :, :]).all(axis=2)
        return np.asarray(alike.any(axis=1))

    def spent(self, handles: Words, attribute: str | None = None) -> IntArray:
        """What was spent on each person over all periods, in billionths: on one attribute, or all.

        ``UNBOUNDED`` stands for something without a bound.
        """
        return spent(self._files, handles, attribute)


def spent(files: Sequence[RunFile], handles: Words, attribute: str | None = None) -> IntArray:
    """What some runs charged to each person, in billionths."""
    total = np.zeros(len(handles), dtype=np.int64)
    unbounded = np.zeros(len(handles), dtype=np.bool_)
    for file in files:
        amounts = charged_amounts(file.run, attribute)
        if not amounts.any():
            continue
        places = file.places(handles)
        here = np.flatnonzero(places >= 0)
        sent = file.sent(places[here])
        endless = amounts >= UNBOUNDED
        total[here] += sent @ np.where(endless, 0, amounts)
        unbounded[here] |= sent[:, endless].any(axis=1)
    return np.where(unbounded, UNBOUNDED, total)


def charged_amounts(run: Run, attribute: str | None = None) -> IntArray:
    """What each column of a run costs whom it was sent about: of one attribute, or of all."""
    wanted = [c.amount if attribute in (None, c.attribute) else 0 for c in run.columns]
    return np.array(wanted, dtype=np.int64)


def _begun(renewed: dict[str, int], attribute: str) -> int:
    return renewed.get(attribute, renewed[""])


def _same(stored: Draws, tags: Words) -> BoolArray:
    found = np.ascontiguousarray(stored).view("<u8").reshape(-1)
    return np.asarray(found == tags)
