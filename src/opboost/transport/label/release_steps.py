"""The steps by which a release comes in at the label party's server: schema, receipt, columns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.flight as flight

from opboost.errors import PeerError
from opboost.parties.message_checks import check_schema
from opboost.protocol.messages import Ack, Rows, decode
from opboost.transport.label.receive_columns import (
    check_new_receipt,
    check_proved,
    receive_column,
    taken_schema,
)
from opboost.transport.label.served_job import ServedJob

Took = Callable[[int], None]
"""Told how many bytes of a stream were taken."""


class ReleaseSteps:
    """``rows`` where they are given, then ``schema``, ``receipt``, every column, and ``sent``."""

    def __init__(self, job: ServedJob) -> None:
        self._job = job

    def rows(self, party: str, data: bytes) -> bytes:
        """The party's given rows are those of the label party."""
        record = self._job.record
        rows = decode(data, Rows)
        if record.align != "given":
            raise PeerError("Rows are aligned in this job: both sides prove that they know them.")
        check_schema(rows, party, record.job, *self._job.box(party).expected(record))
        return self._job.ack("rows")

    def schema(self, party: str, data: bytes) -> bytes:
        """The schema of a release; the answer tells which columns are there already."""
        record, box = self._job.record, self._job.box(party)
        check_proved(record, box)
        _, due = taken_schema(record, box, data)
        box.note("due", due)
        box.write("schema", data)
        return self._job.ack("schema", tuple(box.columns()))

    def receipt(self, party: str, data: bytes) -> bytes:
        """The signed head of the party's ledger."""
        if self._job.ca is None:
            raise PeerError("There are no receipts without certificates.")
        check_new_receipt(self._job.folder, self._job.record, party, data, self._job.ca)
        self._job.box(party).write("receipt", data)
        return self._job.ack("receipt")

    def column(
        self, party: str, number: int, reader: flight.MetadataRecordBatchReader, took: Took
    ) -> None:
        """The codes of a column, checked while they come in."""
        box = self._job.box(party)
        batches = (chunk.data for chunk in reader)
        head = receive_column(self._job.record, box, number, reader.schema, batches, took)
        if head is None:
            return
        size = box.column(number).stat().st_size
        self._job.log.write("column", party=party, column=number, rows=head.rows, bytes=size)

    def sent(self, party: str, data: bytes) -> bytes:
        """The party has sent all that its schema announced."""
        box = self._job.box(party)
        decode(data, Ack)
        if not box.has("schema") or len(box.columns()) < box.due():
            raise PeerError(f"{len(box.columns())} of {box.due()} columns have come.")
        if self._job.record.receipts and not box.has("receipt"):
            raise PeerError("The receipt is missing.")
        box.write("sent", b"")
        self._job.log.write("released", party=party, columns=box.due(), bytes=box.bytes())
        return self._job.ack("sent")


def remove_partial_columns(job: Path) -> None:
    """Remove the columns that a server which died had not taken in whole."""
    for left in job.glob("parties/*/.*.part"):
        left.unlink(missing_ok=True)
