"""The steps in which the label party's server receives a release: schema, receipt, columns."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow.flight as flight

from opboost.errors import PeerError
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.parties.message_checks import check_schema
from opboost.protocol.messages import Ack, Poll, Rows, Schema, decode
from opboost.transport.label.job_folder import AGREED, PartyFolder
from opboost.transport.label.job_terms import all_agreed, is_shared
from opboost.transport.label.receive_columns import (
    check_column_due,
    check_new_receipt,
    check_proved,
    receive_column,
    taken_schema,
)
from opboost.transport.label.served_job import ServedJob

Took = Callable[[int], None]
"""A callback that receives how many bytes of a stream were read."""


class ReleaseSteps:
    """The steps ``rows`` (if rows are given), ``schema``, ``receipt``, each column, and ``sent``.

    With ``pilot``, the same steps for the release of a party's pilot.
    """

    def __init__(self, job: ServedJob, *, pilot: bool = False) -> None:
        self._job, self._pilot = job, pilot
        self._announced: dict[str, tuple[bytes, AnnouncedColumns]] = {}

    def _box(self, party: str) -> PartyFolder:
        box = self._job.box(party)
        return box.pilot() if self._pilot else box

    def rows(self, party: str, data: bytes) -> bytes:
        """Check that the party's given rows are those of the label party.

        If the job's terms concern all parties, the party has to wait until all have agreed.
        """
        record = self._job.record
        rows = decode(data, Rows)
        if record.align != "given":
            raise PeerError("This job aligns rows: both sides prove that they know them.")
        box, folder = self._job.box(party), self._job.folder
        check_schema(rows, party, record.job, *box.expected(record))
        box.write(AGREED, b"")

        def may_begin() -> bool:
            return all_agreed(folder, record) or box.has("refused")

        if is_shared(box, record) and not self._job.held(may_begin):
            return self._job.ack("wait")
        self._job.check_refusal(box)
        return self._job.ack("rows")

    def schema(self, party: str, data: bytes) -> bytes:
        """Store the schema of a release; return which columns have already arrived."""
        record, box = self._job.record, self._box(party)
        check_proved(record, self._job.box(party))
        if self._pilot and record.purpose != "train":
            raise PeerError("A pilot arrived in a prediction, which has no labels.")
        _, due = taken_schema(record, box, data)
        box.note("due", due)
        box.write("schema", data)
        return self._job.ack("schema", tuple(box.columns()))

    def receipt(self, party: str, data: bytes) -> bytes:
        """Store the signed head of the party's ledger."""
        if self._job.ca is None:
            raise PeerError("There are no receipts without certificates.")
        check_new_receipt(self._job.folder, self._job.record, party, data, self._job.ca)
        self._box(party).write("receipt", data)
        return self._job.ack("receipt")

    def column(
        self, party: str, number: int, reader: flight.MetadataRecordBatchReader, took: Took
    ) -> None:
        """Receive the codes of a column, and check them as they arrive."""
        box = self._box(party)
        check_column_due(self._job.record, box)
        target, announced = box.column(number), self._columns(box)
        batches, turn = (chunk.data for chunk in reader), partial(self._job.turns.turn, party)
        head = receive_column(target, number, announced, reader.schema, batches, took, turn)
        if head is None:
            return
        size = target.stat().st_size
        self._job.log.write("column", party=party, column=number, rows=head.rows, bytes=size)

    def _columns(self, box: PartyFolder) -> AnnouncedColumns:
        """Return what the party's schema announces; parse it once, not for each column."""
        data = box.read("schema")
        key = hashlib.sha256(data).digest()
        known = self._announced.get(box.party)
        if known is None or known[0] != key:
            known = self._announced[box.party] = key, AnnouncedColumns.of(decode(data, Schema))
        return known[1]

    def sent(self, party: str, data: bytes) -> bytes:
        """Note that the party has sent everything that its schema announced."""
        box = self._box(party)
        decode(data, Ack)
        if not box.has("schema") or len(box.columns()) < box.due():
            raise PeerError(f"{len(box.columns())} of {box.due()} columns have arrived.")
        if self._job.record.receipts and not box.has("receipt"):
            raise PeerError("The receipt is missing.")
        box.write("sent", b"")
        event = "pilot" if self._pilot else "released"
        self._job.log.write(event, party=party, columns=box.due(), bytes=box.bytes())
        return self._job.ack("sent")

    def score(self, party: str, data: bytes) -> bytes:
        """Once the label party has decided, return the score that it wants instead of columns."""
        self._job.check_job(decode(data, Poll).job)
        box = self._job.box(party)
        if self._job.record.purpose != "predict":
            raise PeerError("Only a prediction asks for a score.")

        def known() -> bool:
            return box.has("score") or box.has("columns") or box.has("refused")

        if not self._job.held(known):
            return self._job.ack("wait")
        self._job.check_refusal(box)
        return box.read("score") if box.has("score") else self._job.ack("columns")

    def declined(self, party: str, data: bytes) -> bytes:
        """Note that the party declines to release the requested score."""
        self._job.check_job(decode(data, Poll).job)
        box = self._job.box(party)
        if not box.has("score") or box.has("sent"):
            raise PeerError("No score was requested, or it has already been released.")
        box.write("score-declined", b"")
        self._job.log.write("declined", party=party)
        return self._job.ack("declined")

    def weights(self, party: str, data: bytes) -> bytes:
        """Return the column weights computed from the pilot, once they are known."""
        self._job.check_job(decode(data, Poll).job)
        box = self._job.box(party)
        if not box.pilot().has("sent"):
            raise PeerError("Weights are sent only after a pilot.")
        if self._job.held(lambda: box.has("weights") or box.has("refused")):
            self._job.check_refusal(box)
            return box.read("weights")
        return self._job.ack("wait")


def remove_partial_columns(job: Path) -> None:
    """Remove columns that an earlier server had received only in part."""
    for left in (*job.glob("parties/*/.*.part"), *job.glob("parties/*/pilot/.*.part")):
        left.unlink(missing_ok=True)
