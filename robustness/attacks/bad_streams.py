"""Attacks by a party of the job: columns that are not what was announced."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight

from opboost.protocol.column_streams import FIELDS, Outline
from opboost.protocol.entropy_coding import pack_integers
from opboost.protocol.messages import Ack
from opboost.transport.feature.label_connection import Connection, as_sentences
from robustness.attacks.attack import Attacks
from robustness.attacks.attack_harness import AcceptedError, AttackHarness, disk, refused, tree
from robustness.attacks.by_feature_party import OTHER_JOB
from robustness.party_processes import ROWS

STREAMS = Attacks()


def put(
    connection: Connection,
    path: tuple[str, str],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    compression: str | None = None,
) -> None:
    """A stream as the attacker likes it."""
    write = pa.ipc.IpcWriteOptions(compression=compression)
    options = flight.FlightCallOptions(write_options=write, headers=connection._headers)
    with as_sentences():
        writer, _ = connection._client.do_put(
            flight.FlightDescriptor.for_path(*path), schema, options
        )
        try:
            for batch in batches:
                writer.write_batch(batch)
            writer.done_writing()
        finally:
            writer.close()


@dataclasses.dataclass(frozen=True)
class Stream:
    """The first column of the honest release, taken apart."""

    job: str
    notes: dict[bytes, bytes]
    batches: list[pa.RecordBatch]

    @classmethod
    def of(cls, siege: AttackHarness) -> Stream:
        release = siege.release
        with pa.OSFile(str(release.files[0])) as file, pa.ipc.open_stream(file) as stream:
            return cls(release.schema.job, dict(stream.schema.metadata), list(stream))

    @property
    def head(self) -> Outline:
        return Outline.unpacked(self.notes[b"opboost"])

    def schema(self, notes: dict[bytes, bytes] | None = None, **change: Any) -> pa.Schema:
        outline = self.head._replace(**change).packed()
        return FIELDS.with_metadata({**self.notes, b"opboost": outline, **(notes or {})})


def stream_refused(
    siege: AttackHarness, words: str, make: Callable[[Stream], tuple[pa.Schema, Any]], **more: Any
) -> str:
    """A stream in the place of the first column, which must be refused and leave nothing."""
    stream = Stream.of(siege)
    box = siege.job / "parties" / "shop"
    with siege.hands() as (connection, _):
        siege.announced(connection)
        before = disk(box)
        schema, batches = make(stream)
        said = refused(lambda: put(connection, (stream.job, "0"), schema, batches, **more), words)
    if disk(box) != before:
        raise AcceptedError("Something of the stream was kept.")
    return said


@STREAMS.add("refused: .*outside its grid", stage="release")
def codes_outside_the_declared_grid(siege: AttackHarness) -> str:
    def off_grid(stream: Stream) -> tuple[pa.Schema, Any]:
        steps = np.array([50, *([1] * (stream.head.symbols - 1))])
        return stream.schema(values=pack_integers(steps)), stream.batches

    return stream_refused(siege, "outside its grid", off_grid)


@STREAMS.add("refused: .*568 rows", stage="release")
def a_column_with_another_number_of_rows(siege: AttackHarness) -> str:
    return stream_refused(
        siege, "568 rows, the schema 569", lambda s: (s.schema(rows=ROWS - 1), s.batches)
    )


@STREAMS.add("refused: .*digest", stage="release")
def a_column_with_another_digest(siege: AttackHarness) -> str:
    return stream_refused(siege, "digest", lambda s: (s.schema(digest=bytes(32)), s.batches))


@STREAMS.add("refused: ", stage="release")
def heads_that_do_not_hold_together(siege: AttackHarness) -> str:
    for change, words in (
        ({"version": 7}, "version 7"),
        ({"column": 1}, "where column 0 was due"),
        ({"rows": 2**32 - 1}, "no sensible numbers"),
        ({"symbols": 2**31}, "no sensible numbers"),
        ({"symbols": 300}, "more than its grid has cells"),
    ):
        stream_refused(siege, words, lambda s, c=change: (s.schema(**c), s.batches))
    stream_refused(siege, "other fields", lambda s: (pa.schema([("data", pa.int64())]), []))
    return stream_refused(
        siege, "holds what no head", lambda s: (s.schema({b"more": b"x"}), s.batches)
    )


@STREAMS.add("refused: .*(ended after|damaged|impossible)", stage="release")
def a_column_that_is_damaged_or_cut(siege: AttackHarness) -> str:
    junk = pa.record_batch([pa.array([os.urandom(800)], pa.binary())], schema=FIELDS)
    stream_refused(siege, "damaged|impossible", lambda s: (s.schema(), [junk]))
    return stream_refused(siege, "ended after 0 of its 569 rows", lambda s: (s.schema(), []))


@STREAMS.add("refused: .*goes on after its last row", stage="release")
def an_endless_stream(siege: AttackHarness) -> str:
    def endless(stream: Stream) -> tuple[pa.Schema, Any]:
        def go_on() -> Iterable[pa.RecordBatch]:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                yield from stream.batches

        return stream.schema(), go_on()

    return stream_refused(siege, "goes on after its last row", endless)


@STREAMS.add("refused: .*memory", stage="release")
def a_decompression_bomb(siege: AttackHarness) -> str:
    """46 kB of zstd that unpack to 1.5 GB."""
    bomb = pa.record_batch([pa.array([bytes(1_500_000_000)], pa.binary())], schema=FIELDS)
    return stream_refused(siege, "more memory", lambda s: (s.schema(), [bomb]), compression="zstd")


@STREAMS.add("refused: .*(impossible length|memory)", stage="release")
def small_bombs_one_after_the_other(siege: AttackHarness) -> str:
    """Each fits into the memory that there is; 100 MB at a time."""
    bomb = pa.record_batch([pa.array([bytes(100_000_000)], pa.binary())], schema=FIELDS)
    for _ in range(5):
        said = stream_refused(
            siege,
            "impossible length|more memory",
            lambda s: (s.schema(), [bomb]),
            compression="zstd",
        )
    return said


@STREAMS.add("refused: A column's stream names this job", stage="release")
def a_column_in_another_place(siege: AttackHarness) -> str:
    stream = Stream.of(siege)
    with siege.hands() as (connection, _):
        siege.announced(connection)
        for path in ((OTHER_JOB, "0"), ("..", "0"), (stream.job, "../../x"), (stream.job, "-1")):
            said = refused(
                lambda p=path: put(connection, p, stream.schema(), stream.batches),
                "names this job and the column's number",
            )
        refused(
            lambda: put(connection, (stream.job, "7"), stream.schema(column=7), stream.batches),
            "olumn",
        )
    return said


@STREAMS.add("refused: Column 1 came again with other codes", stage="release")
def a_column_that_comes_again_with_other_codes(siege: AttackHarness) -> str:
    """Repeated as it was, nothing happens.  It is the second: other attacks need the first."""
    with siege.hands() as (connection, welcome):
        file = siege.announced(connection).files[1]
        connection.put(welcome.job, 1, file)
        connection.put(welcome.job, 1, file)
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            notes, batches = dict(stream.schema.metadata), list(stream)
        outline = Outline.unpacked(notes[b"opboost"])._replace(digest=bytes(32))
        other = FIELDS.with_metadata({**notes, b"opboost": outline.packed()})
        return refused(
            lambda: put(connection, (welcome.job, "1"), other, batches), "came again with other"
        )


@STREAMS.add("refused: .*'telco'", stage="release")
def messages_of_this_job_played_again(siege: AttackHarness) -> str:
    """One's own change nothing; another party's are not taken from this one."""
    with siege.hands() as (connection, welcome):
        release = siege.announced(connection)
        before = tree(siege.job / "parties" / "shop")
        siege.announced(connection)
        siege.announced(connection)
        if tree(siege.job / "parties" / "shop") != before:
            raise AcceptedError("Messages that came again changed something.")
        theirs = dataclasses.replace(release.schema, party="telco")
        refused(lambda: connection.call("schema", theirs, Ack), "in the name of 'telco'")
        receipt = siege.identity("telco").sign(welcome.job, release.receipt.entry, bytes(32))
        return refused(lambda: connection.call("receipt", receipt, Ack), "receipt is not one of")
