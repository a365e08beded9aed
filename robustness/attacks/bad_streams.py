"""Attacks by a feature party: columns that differ from what it announced."""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import pyarrow as pa

from opboost.protocol.column_streams import FIELDS, Outline, batch
from opboost.protocol.entropy_coding import pack_integers
from robustness.attacks.attack_harness import (
    OTHER_JOB,
    Attack,
    AttackHarness,
    Attacks,
    put_refused,
)
from robustness.party_processes import ROWS

STREAMS = Attacks()


@dataclass(frozen=True)
class Stream:
    """The parts of a column of the honest release."""

    job: str
    notes: dict[bytes, bytes]
    batches: list[pa.RecordBatch]

    @classmethod
    def of(cls, harness: AttackHarness, column: int = 0) -> Self:
        release = harness.release
        with pa.OSFile(str(release.files[column])) as file, pa.ipc.open_stream(file) as stream:
            return cls(release.schema.job, dict(stream.schema.metadata), list(stream))

    @property
    def head(self) -> Outline:
        return Outline.unpacked(self.notes[b"opboost"])

    def schema(self, notes: dict[bytes, bytes] | None = None, **change: Any) -> pa.Schema:
        outline = self.head._replace(**change).packed()
        return FIELDS.with_metadata({**self.notes, b"opboost": outline, **(notes or {})})


Make = Callable[[Stream], tuple[Any, ...]]
"""A function from the honest stream to a schema, batches, and perhaps their compression."""


def head(**change: Any) -> Make:
    """Return a stream with a changed head."""
    return lambda stream: (stream.schema(**change), stream.batches)


def off_grid(stream: Stream) -> tuple[pa.Schema, Any]:
    steps = np.array([50, *([1] * (stream.head.symbols - 1))])
    return stream.schema(values=pack_integers(steps)), stream.batches


def damaged(stream: Stream) -> tuple[pa.Schema, Any]:
    return stream.schema(), [batch(os.urandom(800))]


def endless(stream: Stream) -> tuple[pa.Schema, Any]:
    def go_on() -> Iterable[pa.RecordBatch]:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            yield from stream.batches

    return stream.schema(), go_on()


def bomb(size: int) -> Make:
    """Return a stream of this many zero bytes in one piece, which zstd packs into a few kB."""
    return lambda stream: (stream.schema(), [batch(bytes(size))], "zstd")


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
    ("an endless stream", ".*continues after its last row"):
        (("continues after its last row", endless),),
    ("a decompression bomb", ".*memory"): (("more memory", bomb(1_500_000_000)),),
    ("small bombs one after the other", ".*(impossible length|memory)"):
        (("impossible length|more memory", bomb(100_000_000)),) * 5,
}  # fmt: skip
"""Streams and the words that refuse them, by the attack's name and the words of the log."""


def all_refused(harness: AttackHarness, streams: Sequence[tuple[str, Make]]) -> str:
    """Send streams instead of the first column; each must be refused and leave nothing behind."""
    stream = Stream.of(harness)
    for words, make in streams:
        made = make(stream)
        with harness.logged_in() as (connection, _):
            harness.announced(connection)
            with harness.nothing_kept():
                said = put_refused(connection, (stream.job, "0"), words, *made)
    return said


STREAMS += [
    Attack(name, "release", f"refused: {log}", partial(all_refused, streams=streams))
    for (name, log), streams in ODD_STREAMS.items()
]


@STREAMS.add("refused: A column's stream must name this job", when="release")
def a_column_at_another_path(harness: AttackHarness) -> str:
    stream = Stream.of(harness)
    schema, words = stream.schema(), "must name this job and the column's number"
    with harness.logged_in() as (connection, _):
        harness.announced(connection)
        for path in ((OTHER_JOB, "0"), ("..", "0"), (stream.job, "../../x"), (stream.job, "-1")):
            said = put_refused(connection, path, words, schema, stream.batches)
        other = stream.schema(column=7)
        put_refused(connection, (stream.job, "7"), "olumn", other, stream.batches)
    return said


@STREAMS.add("refused: Column 1 arrived again with different codes", when="release")
def a_column_sent_again_with_other_codes(harness: AttackHarness) -> str:
    """Repeat a column unchanged, which has no effect, then with other codes."""
    stream = Stream.of(harness, 1)  # other attacks need the first column
    other, words = stream.schema(digest=bytes(32)), "arrived again with"
    with harness.logged_in() as (connection, _):
        file = harness.announced(connection).files[1]
        connection.put(stream.job, 1, file)
        connection.put(stream.job, 1, file)
        return put_refused(connection, (stream.job, "1"), words, other, stream.batches)
