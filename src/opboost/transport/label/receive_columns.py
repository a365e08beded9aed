"""Check and store what a feature party sends, over the network or by bundle."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import pyarrow as pa

from opboost.errors import DataError, PeerError, WireError
from opboost.parties.announced_columns import AnnouncedColumns
from opboost.parties.message_checks import (
    check_answer,
    check_private,
    check_schema,
    check_values_shown,
)
from opboost.protocol.column_streams import ColumnHead, Reader, checked_pieces
from opboost.protocol.envelope import is_compressed
from opboost.protocol.messages import (
    Claim,
    Points,
    Proof,
    Receipt,
    Schema,
    SplitQuery,
    SplitValues,
    decode,
    encode,
)
from opboost.protocol.stored_columns import read_head
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import STEPS, JobRecord, PartyFolder, newest_receipt
from opboost.transport.shared.tls import check_receipt


def check_their_points(record: JobRecord, points: Points) -> None:
    """Refuse points of an unexpected step, and more points than the label party aligns."""
    if record.align == "given" or points.step not in STEPS:
        raise PeerError("These points are not expected.")
    if points.step == "raised" and points.total != record.rows:
        raise PeerError("The raised points are not the label party's.")
    if points.step == "feature" and points.total > record.most_rows:
        raise PeerError(
            f"{points.total:,} rows are more than the label party aligns ({record.most_rows:,})."
        )


def answered_claim(record: JobRecord, box: PartyFolder, data: bytes) -> bytes:
    """Check a party's proof that it knows the common rows, and return the label party's proof.

    The label party accepts one claim per job and party.  Its answer shows the sender whether the
    claim was right, so a second claim would be another guess at rows that the sender does not know.
    """
    claim = decode(data, Claim)
    if record.align == "given" or not box.has("aligned"):
        raise PeerError("This proof of rows is not expected.")
    if (claim.party, claim.job) != (box.party, record.job):
        raise PeerError("A proof of rows names another party or another job.")
    if box.has("claim") and box.read("claim") != data:
        raise PeerError(
            "A different proof of rows has already arrived, and a job accepts only one. Begin a "
            "new job (--again)."
        )
    box.write("claim", data)
    rows, proof = box.row_proof()
    answer = encode(Proof(record.job, proof.answered(claim, rows).label))
    box.write("proved", answer)
    return answer


def check_proved(record: JobRecord, box: PartyFolder) -> None:
    """Refuse a release of aligned rows if the party has not proved that it knows them."""
    if record.align != "given" and not box.has("proved"):
        raise PeerError("A release arrived before the proof of its rows.")


def taken_schema(record: JobRecord, box: PartyFolder, data: bytes) -> tuple[Schema, int]:
    """Check a party's schema for this job and its rows; return it and its number of columns."""
    schema = decode(data, Schema)
    check_schema(schema, box.party, record.job, *box.expected(record))
    if record.purpose == "predict":
        check_values_shown(schema)
    private = schema.private()
    check_private(private)
    due = sum(len(c.release_names()) for c in private)
    if due > record.columns:
        raise PeerError(f"{due} columns are more than the label party accepts: {record.columns}.")
    if box.has("schema") and box.read("schema") != data:
        raise PeerError("The schema changed during the job. Begin a new job.")
    return schema, due


def check_new_receipt(job: Path, record: JobRecord, party: str, data: bytes, ca: bytes) -> None:
    """Refuse a receipt that is unsigned, from another job, or older than one already stored."""
    receipt = decode(data, Receipt)
    check_receipt(receipt, party, ca)
    if receipt.job != record.job:
        raise PeerError("The receipt is for another job.")
    known = newest_receipt(job.parent, party)
    if known and decode(known, Receipt).entry > receipt.entry:
        raise PeerError("The receipt is older than one that the label party holds.")


def check_split_values(record: JobRecord, box: PartyFolder, data: bytes) -> SplitQuery:
    """Return the query that these split values answer; refuse unrequested or impossible values."""
    answer = decode(data, SplitValues)
    if answer.job != record.job or not box.has("query"):
        raise PeerError("These split values were not requested.")
    if box.has("answer") and box.read("answer") != data:
        raise PeerError("Different split values have already arrived.")
    query = decode(box.read("query"), SplitQuery)
    private = decode(box.read("schema"), Schema).private()
    books = {c.column: read_head(box.column(c.column)).codebook for c in query.columns}
    check_answer(query, answer, private, books)
    return query


def check_column_due(record: JobRecord, box: PartyFolder) -> None:
    """Refuse a column that arrives before the schema, or before the receipt if the job has one."""
    if not box.has("schema"):
        raise PeerError("A column arrived before its schema.")
    if record.receipts and not box.has("receipt"):
        raise PeerError("A column arrived before the receipt.")


def receive_column(
    target: Path,
    number: int,
    announced: AnnouncedColumns,
    stream: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    took: Callable[[int], None],
    turn: Callable[[int], AbstractContextManager[None]],
) -> ColumnHead | None:
    """Check and store a column's stream piece by piece; return None if it was stored before.

    Each piece is checked and written inside ``turn(n)``, so that the caller can schedule the work;
    n is the expected number of rows.
    ``took`` is called with the size of each piece in bytes before the piece is written.
    """
    head = _announced_head(stream, announced, number)
    if target.exists():
        if read_head(target).digest != head.digest:
            raise PeerError(f"Column {number} arrived again with different codes.")
        return None
    with atomic_files.placing(target) as part:
        with pa.OSFile(str(part), "wb") as sink, pa.ipc.new_stream(sink, head.to_schema()) as out:
            reader = Reader(head)
            for piece in batches:
                with turn(reader.due):
                    reader.take(piece)
                    took(piece.nbytes)
                    out.write_batch(piece)
            reader.finish()
        atomic_files.add_checksum(part, flushed=False)
    return head


def check_column_file(file: Path, announced: AnnouncedColumns, number: int) -> None:
    """Refuse a column's file unless its whole stream matches what the schema announces.

    A compressed batch is refused before it is decompressed: a small one can inflate a thousandfold.
    """
    try:
        with pa.OSFile(str(file)) as source:
            for message in pa.ipc.MessageReader.open_stream(source):
                if message.type == "record batch" and is_compressed(message):
                    raise WireError(f"Column {number} is compressed, which is not allowed.")
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            head = _announced_head(stream.schema, announced, number)
            for _ in checked_pieces(head, stream):
                pass
        atomic_files.verify_checksum(file, atomic_files.AT_LABEL_PARTY)
    except (pa.ArrowException, OSError, MemoryError, DataError) as error:
        raise WireError(f"Column {number} cannot be read ({type(error).__name__}).") from None


def _announced_head(stream: pa.Schema, announced: AnnouncedColumns, number: int) -> ColumnHead:
    """Return the head of a column's stream; refuse one that the schema does not announce."""
    head = ColumnHead.from_schema(stream, announced.most_symbols(number))
    announced.check(head, number)
    return head
