"""Attacks by a feature party: columns that differ from what it announced."""

import dataclasses
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa

from opboost.protocol.column_streams import FIELDS, Outline
from opboost.protocol.entropy_coding import pack_integers
from robustness.attacks.attack_harness import (
    Attack,
    AttackHarness,
    Attacks,
    call_refused,
    put,
    refused,
)
from robustness.attacks.by_feature_party import OTHER_JOB
from robustness.party_processes import ROWS

STREAMS = Attacks()


@dataclasses.dataclass(frozen=True)
class Stream:
    """The parts of the first column of the honest release."""

    job: str
    notes: dict[bytes, bytes]
    batches: list[pa.RecordBatch]

    @classmethod
    def of(cls, harness: AttackHarness) -> Self:
        release = harness.release
        with pa.OSFile(str(release.files[0])) as file, pa.ipc.open_stream(file) as stream:
            return cls(release.schema.job, dict(stream.schema.metadata), list(stream))

    @property
    def head(self) -> Outline:
        return Outline.unpacked(self.notes[b"opboost"])

    def schema(self, notes: dict[bytes, bytes] | None = None, **change: Any) -> pa.Schema:
        outline = self.head._replace(**change).packed()
        return FIELDS.with_metadata({**self.notes, b"opboost": outline, **(notes or {})})


Make = Callable[[Stream], tuple[pa.Schema, Iterable[pa.RecordBatch]]]


def stream_refused(harness: AttackHarness, words: str, make: Make, **more: Any) -> str:
    """Send a stream instead of the first column; it must be refused and leave nothing behind."""
    stream = Stream.of(harness)
    with harness.hands() as (connection, _):
        harness.announced(connection)
        with harness.nothing_kept():
            where, (schema, batches) = (stream.job, "0"), make(stream)
            return refused(lambda: put(connection, where, schema, batches, **more), words)


def head(**change: Any) -> Make:
    """Return a stream with a changed head."""
    return lambda stream: (stream.schema(**change), stream.batches)


def off_grid(stream: Stream) -> tuple[pa.Schema, Any]:
    steps = np.array([50, *([1] * (stream.head.symbols - 1))])
    return stream.schema(values=pack_integers(steps)), stream.batches


def one_batch(data: bytes) -> pa.RecordBatch:
    return pa.record_batch([pa.array([data], pa.binary())], schema=FIELDS)


def damaged(stream: Stream) -> tuple[pa.Schema, Any]:
    return stream.schema(), [one_batch(os.urandom(800))]


ODD_STREAMS: dict[tuple[str, str], tuple[tuple[str, Make], ...]] = {
    ("codes outside the declared grid", ".*outside its grid"): (("outside its grid", off_grid),),
    ("a column with another number of rows", ".*568 rows"):
        (("568 rows, the schema 569", head(rows=ROWS - 1)),),
    ("a column with another digest", ".*digest"): (("digest", head(digest=bytes(32))),),
    ("inconsistent heads", ""): (
        ("version 7", head(version=7)),
        ("where column 0 was due", head(column=1)),
        ("impossible numbers", head(rows=2**32 - 1)),
        ("impossible numbers", head(symbols=2**31)),
        ("more than its grid has cells", head(symbols=300)),
        ("must have one field", lambda s: (pa.schema([("data", pa.int64())]), [])),
        ("has unknown entries", head(notes={b"more": b"x"})),
    ),
    ("a damaged or truncated column", ".*(ended after|damaged|impossible)"):
        (("damaged|impossible", damaged),
         ("ended after 0 of its 569 rows", lambda s: (s.schema(), []))),
}  # fmt: skip
"""Streams and the words that refuse them, by the attack's name and the words of the log."""


def all_refused(harness: AttackHarness, streams: Sequence[tuple[str, Make]]) -> str:
    return [stream_refused(harness, words, make) for words, make in streams][-1]


STREAMS += [
    Attack(name, "release", f"refused: {log}", partial(all_refused, streams=streams))
    for (name, log), streams in ODD_STREAMS.items()
]


@STREAMS.add("refused: .*continues after its last row", harness="release")
def an_endless_stream(harness: AttackHarness) -> str:
    def endless(stream: Stream) -> tuple[pa.Schema, Any]:
        def go_on() -> Iterable[pa.RecordBatch]:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                yield from stream.batches

        return stream.schema(), go_on()

    return stream_refused(harness, "continues after its last row", endless)


@STREAMS.add("refused: .*memory", harness="release")
def a_decompression_bomb(harness: AttackHarness) -> str:
    """Send 46 kB of zstd that unpack to 1.5 GB."""
    bomb = [one_batch(bytes(1_500_000_000))]
    return stream_refused(harness, "more memory", lambda s: (s.schema(), bomb), compression="zstd")


@STREAMS.add("refused: .*(impossible length|memory)", harness="release")
def small_bombs_one_after_the_other(harness: AttackHarness) -> str:
    """Send bombs that each fit into memory, 100 MB at a time."""
    bomb, words = [one_batch(bytes(100_000_000))], "impossible length|more memory"
    for _ in range(5):
        said = stream_refused(harness, words, lambda s: (s.schema(), bomb), compression="zstd")
    return said


@STREAMS.add("refused: A column's stream must name this job", harness="release")
def a_column_at_another_path(harness: AttackHarness) -> str:
    stream = Stream.of(harness)
    with harness.hands() as (connection, _):
        harness.announced(connection)
        for path in ((OTHER_JOB, "0"), ("..", "0"), (stream.job, "../../x"), (stream.job, "-1")):
            said = refused(
                lambda p=path: put(connection, p, stream.schema(), stream.batches),
                "must name this job and the column's number",
            )
        refused(
            lambda: put(connection, (stream.job, "7"), stream.schema(column=7), stream.batches),
            "olumn",
        )
    return said


@STREAMS.add("refused: Column 1 arrived again with different codes", harness="release")
def a_column_sent_again_with_other_codes(harness: AttackHarness) -> str:
    """Repeat a column unchanged, which has no effect, then with other codes.

    It is the second column, because other attacks need the first.
    """
    with harness.hands() as (connection, welcome):
        file = harness.announced(connection).files[1]
        connection.put(welcome.job, 1, file)
        connection.put(welcome.job, 1, file)
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            notes, batches = dict(stream.schema.metadata), list(stream)
        outline = Outline.unpacked(notes[b"opboost"])._replace(digest=bytes(32))
        other = FIELDS.with_metadata({**notes, b"opboost": outline.packed()})
        return refused(
            lambda: put(connection, (welcome.job, "1"), other, batches), "arrived again with"
        )


@STREAMS.add("refused: .*'telco'", harness="release")
def replayed_messages_of_this_job(harness: AttackHarness) -> str:
    """Replay its own messages, which change nothing, and another party's, which are refused."""
    with harness.hands() as (connection, welcome):
        release = harness.announced(connection)
        with harness.nothing_kept():
            harness.announced(connection)
            harness.announced(connection)
        theirs = dataclasses.replace(release.schema, party="telco")
        call_refused(connection, "schema", theirs, "in the name of 'telco'")
        receipt = harness.identity("telco").sign(welcome.job, release.receipt.entry, bytes(32))
        return call_refused(connection, "receipt", receipt, "receipt is not from")
