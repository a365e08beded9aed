"""The release that a feature party makes in a job: rows drawn once, coded, stored with a schema."""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa

from opboost.config import Plan
from opboost.errors import DataError, refusing
from opboost.ledger import Drawing, Ledger
from opboost.ledger.pilot import in_pilot
from opboost.ledger.score_charge import ScoreCharge
from opboost.parties.feature.outgoing_columns import OutgoingColumns
from opboost.parties.feature.outgoing_rows import ChosenRows, released_of
from opboost.parties.feature.party_table import JobProgress, PartyTable
from opboost.parties.feature.row_identities import RowIdentities
from opboost.protocol.messages import Books, ColumnSchema, Schema, Units, Welcome, encode
from opboost.storage import atomic_files
from opboost.storage.framing import framed_array


@dataclass(frozen=True, slots=True)
class ShownColumns:
    """What the label party sees of the columns, and the settings that decide it."""

    party: str
    units: Units
    codebook: Books
    columns: tuple[ColumnSchema, ...]


@dataclass(frozen=True, slots=True)
class Charged:
    """The names under which the ledger records a release."""

    recipient: str
    new_attributes: tuple[str, ...]
    people: str


@dataclass(frozen=True, slots=True)
class ReleaseMaker:
    """Desensitises a table through the ledger, and writes the files to send."""

    table: PartyTable
    identities: RowIdentities
    plan: Plan
    ledger: Ledger
    shown: ShownColumns
    charged: Charged
    progress: JobProgress
    score: ScoreCharge | None = None
    """What a score is charged to, if the release is a score."""

    def make(
        self, welcome: Welcome, folder: Path, chosen: ChosenRows | None, pilot: float | None = None
    ) -> None:
        """Write a job's release of the chosen or all rows into its folder, and the schema last.

        ``pilot`` is the share of people whose columns are released first.  Nothing is drawn for
        the others, and all their cells are gaps.
        """
        folder.mkdir(parents=True, exist_ok=True)
        for left in folder.glob("[0-9]*"):  # left by an interrupted run
            left.unlink()
        outgoing = OutgoingColumns(folder)
        ids = self._draw(welcome, outgoing, chosen, pilot)
        self._code(outgoing, chosen)
        budget = self.plan.budget
        schema = Schema(
            self.shown.party,
            welcome.job,
            outgoing.rows,
            ids,
            self.shown.codebook,
            self.shown.units,
            self.shown.columns,
            (budget.columns_per_row or 0) if budget else 0,
            0.0 if self.plan.score is None else self.plan.score.total,
        )
        atomic_files.write(folder / "schema", encode(schema))

    def _draw(
        self,
        welcome: Welcome,
        outgoing: OutgoingColumns,
        chosen: ChosenRows | None,
        pilot: float | None,
    ) -> bytes:
        """Draw the rows into ``outgoing``; return the digest of their IDs under the job's nonce."""
        digest = hmac.new(welcome.nonce, digestmod="sha256")
        self._check_people(welcome.job, chosen)
        seen = 0
        with self._drawing(welcome.job) as drawing:
            for piece, done, total in self.table.pieces():
                rows = self.table.rows(piece, seen)
                keys = self.identities.keys(piece, seen)
                people = self.identities.people(piece, seen, keys)
                if chosen is None:
                    digest.update(framed_array(keys))
                else:
                    here = chosen.among(seen, self.identities.matched(piece, seen, keys))
                    rows, people = rows.where(here), people.filter(pa.array(here))
                seen += len(piece)
                some = self.table.known(piece) if chosen is None else None
                if pilot is not None and len(people):
                    first = in_pilot(self.ledger, self.ledger.people(people), pilot)
                    some = first if some is None else first & some
                if len(people) and some is None:
                    outgoing.add(rows.released(drawing, people))
                elif len(people):
                    assert some is not None
                    outgoing.add(released_of(some, rows, drawing, people))
                self.progress("desensitised", done, total)
            self.progress("desensitised", 1, 1)
            if not outgoing.rows:
                raise DataError("The table has no rows")
        return digest.digest() if chosen is None else chosen.ids(welcome.nonce)

    def rehearse(self, *, all_people: bool) -> None:
        """Refuse now what the ledger would refuse in a later release; draw and write nothing.

        Without ``all_people``, only some of the table's people will be released, so refuse only if
        the ledger would refuse every one of them.
        """
        drawing = self._drawing("rehearsal")
        drawing.rehearse(partial(self._refusable, drawing, None), all_people=all_people)

    def _check_people(self, job: str, chosen: ChosenRows | None) -> None:
        """Refuse people whom the ledger refuses, before anything is drawn or reserved for them."""
        drawing = self._drawing(job)
        with refusing("cap"):
            drawing.check(self._refusable(drawing, chosen))

    def _refusable(
        self, drawing: Drawing, chosen: ChosenRows | None
    ) -> Iterable[tuple[pa.LargeBinaryArray, None]]:
        """Return the people whom the ledger may refuse; none if it cannot refuse anybody."""
        if self.table.stored is not None or not drawing.can_refuse_people():
            return ()
        return self._people(chosen)

    def _people(self, chosen: ChosenRows | None) -> Iterator[tuple[pa.LargeBinaryArray, None]]:
        """Yield the people whose rows are released, in pieces."""
        seen = 0
        for piece, _, _ in self.table.pieces():
            keys = self.identities.keys(piece, seen)
            people = self.identities.people(piece, seen, keys)
            if chosen is not None:
                here = chosen.among(seen, self.identities.matched(piece, seen, keys))
                people = people.filter(pa.array(here))
            elif (known := self.table.known(piece)) is not None:
                people = people.filter(pa.array(known))
            seen += len(piece)
            if len(people):
                yield people, None

    def _drawing(self, job: str) -> Drawing:
        return Drawing(
            self.ledger,
            self.plan.private,
            self.plan.attributes,
            job=job,
            recipient=self.charged.recipient,
            budget=self.plan.budget,
            new_attributes=self.charged.new_attributes,
            people=self.charged.people,
            score=self.score,
        )

    def _code(self, outgoing: OutgoingColumns, chosen: ChosenRows | None) -> None:
        withheld = [
            self.shown.codebook == "cuts" and c.has_order
            for c in self.plan.private
            for _ in c.release_names()
        ]
        outgoing.coded(
            withheld=withheld,
            order=None if chosen is None else chosen.order(),
            progress=lambda n: self.progress("coded", n, len(withheld)),
        )
