"""Attacks by a party of the job: a true certificate, and messages that do not hold together."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
from tests.federation import ROWS, as_identity

import opboost as op
from hardening import frames
from hardening.attack import Attacks
from hardening.siege import AcceptedError, Siege, disk, refused, tree
from hardening.strangers import ended, kit_of
from opboost import durable
from opboost.align.keys import key_digests
from opboost.party.alignment import Side, kept_secret
from opboost.service.join import Connection, _spoken
from opboost.wire.coding import pack_integers
from opboost.wire.columns import FIELDS, Outline
from opboost.wire.messages import (
    Ack,
    Points,
    Poll,
    Receipt,
    Rows,
    SplitValues,
    encode,
)

MEMBERS = Attacks()
OTHER_JOB = "20200101T000000Z-00000000"


def tried(siege: Siege, step: str, message: Any, words: str) -> str:
    """One call of the shop's, which must be refused."""
    with siege.hands() as (connection, _):
        return refused(lambda: connection.call(step, message, Ack), words)


def raw_action(connection: Connection, step: str, body: bytes) -> None:
    with _spoken():
        list(connection._client.do_action(flight.Action(step, body)))


# Messages


@MEMBERS.add("refused: .*altered|no message of OpBoost")
def bytes_that_are_no_message(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):
        good = encode(Poll(welcome.job))
        for body in (b"", b"\0" * 100, good[:-1], good[:50] + b"!" + good[51:], os.urandom(5000)):
            said = refused(
                lambda body=body: raw_action(connection, "poll", body),
                "altered|no message of OpBoost",
            )
    return said


@MEMBERS.add("refused: A message is of a kind that nobody asked for")
def a_message_of_another_kind(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):
        return refused(
            lambda: connection.call("hello", Poll(welcome.job), Ack), "nobody asked for: 'poll'"
        )


@MEMBERS.add("refused: There is no such step")
def a_step_that_there_is_not(siege: Siege) -> str:
    with siege.hands() as (connection, _):
        return refused(lambda: raw_action(connection, "exec", b"ls"), "no such step")


@MEMBERS.add("refused: .*(another job|of job)")
def messages_of_another_job(siege: Siege) -> str:
    """Well signed and whole, as they were in another run."""
    with siege.hands() as (connection, _):
        digest, receipt = bytes(32), siege.identity().sign(OTHER_JOB, 3, bytes(32))
        for step, message, words in (
            ("poll", Poll(OTHER_JOB), "works on another job"),
            ("rows", Rows("shop", OTHER_JOB, ROWS, digest), "of job '2020|before they were"),
            ("answer", SplitValues(OTHER_JOB, digest, ()), "nobody asked for"),
            ("receipt", receipt, "receipt is of another job"),
        ):
            said = refused(lambda s=step, m=message: connection.call(s, m, Ack), words)
    return said


@MEMBERS.add("refused: ")
def fetching_what_is_another_partys(siege: Siege) -> str:
    """None of Flight's ways to list or to get is open; the log has those that reach the gate."""
    with siege.hands() as (connection, _):
        client = connection._client
        for attempt in (
            lambda: list(client.list_flights()),
            lambda: list(client.list_actions()),
            lambda: client.do_get(flight.Ticket(b"telco")).read_all(),
            lambda: client.get_flight_info(flight.FlightDescriptor.for_path("telco")),
            lambda: client.get_schema(flight.FlightDescriptor.for_path("../telco")),
        ):
            try:
                attempt()
            except (flight.FlightError, pa.ArrowException, NotImplementedError):
                continue
            raise AcceptedError("Something was given out.")
        return refused(lambda: raw_action(connection, "../telco", b""), "no such step")


# Points


def points_of(job: str, keys: Iterable[bytes]) -> Points:
    """Sound points under a secret of the attacker's."""
    side = Side(job, "feature", kept_secret(None), key_digests(list(keys)), op.AlignRules())
    (piece,) = side.pieces()
    return piece


@MEMBERS.add("refused: .*points", stage="points")
def points_that_nobody_waits_for(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):
        job, tag, point = welcome.job, bytes(16), b"\2" + bytes(32)
        for points, words in (
            (Points(job, "label", tag, 1, 0, point), "nobody waits for"),
            (Points(job, "raised", tag, 1, 0, point), "not the label party's"),
            (Points(job, "raised", tag, ROWS, 0, point * ROWS), "before the party's own"),
            (Points(OTHER_JOB, "feature", tag, 1, 0, point), "another job now"),
            (Points(job, "feature", tag, 6_000_000, 0, point * 8192), "rows are more than"),
        ):
            said = refused(lambda p=points: connection.call("points", p, Ack), words)
    return said


@MEMBERS.add("refused: The points cannot be used: A point does not lie", stage="points")
def points_on_no_curve(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):
        bad = Points(welcome.job, "feature", bytes(16), 2, 0, (b"\2" + b"\1" * 32) * 2)
        connection.call("points", bad, Ack)
        return told_to_come_again(siege, connection, welcome.job, "does not lie on the curve")


@MEMBERS.add("refused: Piece 0 came again with other points", stage="points")
def points_that_change(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):
        good = points_of(welcome.job, [b"a", b"b"])
        connection.call("points", good, Ack)
        connection.call("points", good, Ack)  # repeated: nothing happens
        other = dataclasses.replace(good, points=good.points[33:] + good.points[:33])
        secret = dataclasses.replace(good, tag=bytes(16))
        more = points_of(welcome.job, [b"a", b"b", b"c"])
        more = dataclasses.replace(more, tag=good.tag)
        for points, words in (
            (secret, "under another secret came before"),
            (more, "of another set"),
            (other, "came again with other points"),
        ):
            said = refused(lambda p=points: connection.call("points", p, Ack), words)
        forgotten(siege)
    return said


def told_to_come_again(siege: Siege, connection: Connection, job: str, words: str) -> str:
    """The label party's own process finds out, and the gate tells the sender."""
    box = siege.job / "parties" / "shop" / "refused"
    end = time.monotonic() + 20
    while not box.exists() and time.monotonic() < end:
        time.sleep(0.02)
    return refused(lambda: connection.call("aligned", Poll(job), Ack), words)


def forgotten(siege: Siege) -> None:
    """Raise points that do not fit, so that the label party refuses all and the shop may begin."""
    with siege.hands() as (connection, welcome):
        job = welcome.job
        known = json.loads(durable.unsealed(siege.job / "parties" / "shop" / "points"))
        raised = (b"\2" + b"\1" * 32) * ROWS
        tag = bytes.fromhex(known["tag"])
        connection.call("points", Points(job, "raised", tag, ROWS, 0, raised), Ack)
        told_to_come_again(siege, connection, job, "cannot be used")


# What is announced


@MEMBERS.add("refused: .*(rows|digest|order|job)", stage="release")
def a_schema_that_does_not_fit(siege: Siege) -> str:
    schema = siege.release.schema
    for change, words in (
        ({"rows": ROWS + 1}, "sent 570 rows; the label party has 569"),
        ({"rows": 1}, "sent 1 rows"),
        ({"ids": bytes(32)}, "not the label party's in the same order"),
        ({"job": OTHER_JOB}, f"of job '{OTHER_JOB}'"),
        ({"party": "telco"}, "in the name of 'telco'"),
    ):
        said = tried(siege, "schema", dataclasses.replace(schema, **change), words)
    return said


@MEMBERS.add("refused: The schema changed in mid-job", stage="release")
def a_schema_that_changes_in_mid_job(siege: Siege) -> str:
    with siege.hands() as (connection, _):
        schema = siege.announced(connection).schema
        connection.call("schema", schema, Ack)  # repeated: nothing happens
        other = dataclasses.replace(schema, columns=schema.columns[::-1])
        return refused(lambda: connection.call("schema", other, Ack), "changed in mid-job")


@MEMBERS.add("refused: .*receipt", stage="release")
def receipts_that_are_not_its_own(siege: Siege) -> str:
    job, own = siege.release.schema.job, siege.release.receipt
    other = siege.identity("telco").sign(job, own.entry, own.head)
    with kit_of(siege, "shop") as kit:
        forged = as_identity(kit, siege.ca, "shop").sign(job, own.entry, own.head)
    for receipt in (
        other,
        dataclasses.replace(other, party="shop"),
        dataclasses.replace(own, entry=own.entry + 1),
        dataclasses.replace(own, head=bytes(32)),
        forged,
        Receipt("shop", job, own.entry, bytes(32), b"no certificate", b""),
    ):
        said = tried(siege, "receipt", receipt, "receipt")
    return said


@MEMBERS.add("refused: The receipt is older", stage="release")
def a_receipt_of_before(siege: Siege) -> str:
    """One that the shop signed itself, of a ledger that had fewer entries."""
    with siege.hands() as (connection, welcome):
        siege.announced(connection)
        old = siege.identity().sign(welcome.job, siege.release.receipt.entry - 1, bytes(32))
        return refused(lambda: connection.call("receipt", old, Ack), "older than one")


@MEMBERS.add("refused: . of 2 columns have come", stage="release")
def an_end_before_all_is_there(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):
        siege.announced(connection)
        return refused(
            lambda: connection.call("sent", Ack(welcome.job, "sent"), Ack), "of 2 columns have come"
        )


@MEMBERS.add("refused: Split values came that nobody asked for", stage="release")
def split_values_that_nobody_asked_for(siege: Siege) -> str:
    answer = SplitValues(siege.release.schema.job, bytes(32), ())
    return tried(siege, "answer", answer, "nobody asked for")


# Columns


def put(
    connection: Connection,
    path: tuple[str, str],
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    compression: str | None = None,
) -> None:
    """A stream as the attacker likes it."""
    write = pa.ipc.IpcWriteOptions(compression=compression)
    options = flight.FlightCallOptions(write_options=write)
    with _spoken():
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
    def of(cls, siege: Siege) -> Stream:
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
    siege: Siege, words: str, make: Callable[[Stream], tuple[pa.Schema, Any]], **more: Any
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


@MEMBERS.add("refused: .*outside its grid", stage="release")
def codes_outside_the_declared_grid(siege: Siege) -> str:
    def off_grid(stream: Stream) -> tuple[pa.Schema, Any]:
        steps = np.array([50, *([1] * (stream.head.symbols - 1))])
        return stream.schema(values=pack_integers(steps)), stream.batches

    return stream_refused(siege, "outside its grid", off_grid)


@MEMBERS.add("refused: .*568 rows", stage="release")
def a_column_with_another_number_of_rows(siege: Siege) -> str:
    return stream_refused(
        siege, "568 rows, the schema 569", lambda s: (s.schema(rows=ROWS - 1), s.batches)
    )


@MEMBERS.add("refused: .*digest", stage="release")
def a_column_with_another_digest(siege: Siege) -> str:
    return stream_refused(siege, "digest", lambda s: (s.schema(digest=bytes(32)), s.batches))


@MEMBERS.add("refused: ", stage="release")
def heads_that_do_not_hold_together(siege: Siege) -> str:
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


@MEMBERS.add("refused: .*(ended after|damaged|impossible)", stage="release")
def a_column_that_is_damaged_or_cut(siege: Siege) -> str:
    junk = pa.record_batch([pa.array([os.urandom(800)], pa.binary())], schema=FIELDS)
    stream_refused(siege, "damaged|impossible", lambda s: (s.schema(), [junk]))
    return stream_refused(siege, "ended after 0 of its 569 rows", lambda s: (s.schema(), []))


@MEMBERS.add("refused: .*goes on after its last row", stage="release")
def an_endless_stream(siege: Siege) -> str:
    def endless(stream: Stream) -> tuple[pa.Schema, Any]:
        def go_on() -> Iterable[pa.RecordBatch]:
            end = time.monotonic() + 30
            while time.monotonic() < end:
                yield from stream.batches

        return stream.schema(), go_on()

    return stream_refused(siege, "goes on after its last row", endless)


@MEMBERS.add("refused: .*memory", stage="release")
def a_decompression_bomb(siege: Siege) -> str:
    """46 kB of zstd that unpack to 1.5 GB."""
    bomb = pa.record_batch([pa.array([bytes(1_500_000_000)], pa.binary())], schema=FIELDS)
    return stream_refused(siege, "more memory", lambda s: (s.schema(), [bomb]), compression="zstd")


@MEMBERS.add("refused: .*(impossible length|memory)", stage="release")
def small_bombs_one_after_the_other(siege: Siege) -> str:
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


@MEMBERS.add("refused: A column's stream names this job", stage="release")
def a_column_in_another_place(siege: Siege) -> str:
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


@MEMBERS.add("refused: Column 1 came again with other codes", stage="release")
def a_column_that_comes_again_with_other_codes(siege: Siege) -> str:
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


@MEMBERS.add("refused: .*'telco'", stage="release")
def messages_of_this_job_played_again(siege: Siege) -> str:
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


# Too much


@MEMBERS.add("cut off: A message is larger than any")
def a_huge_message(siege: Siege) -> str:
    """700 MB in one message, where the gate has 512: it is cut off before it is all there."""
    with siege.hands() as (connection, _):
        return refused(
            lambda: raw_action(connection, "hello", bytes(700_000_000)),
            "hung up|[Ss]tream removed|[Cc]onnection reset|[Bb]roken pipe",
        )


@MEMBERS.add("refused: A message of .* bytes is too large")
def a_large_message(siege: Siege) -> str:
    """Ten times as large as any message of ours."""
    with siege.hands() as (connection, _):
        return refused(lambda: raw_action(connection, "hello", bytes(40_000_000)), "too large")


@MEMBERS.add("flood: Party 'shop' has 16 calls open already")
def a_flood_of_calls(siege: Siege) -> str:
    with siege.hands() as (connection, welcome):

        def poll(_: int) -> str:
            try:
                connection.call("poll", Poll(welcome.job), Ack)
            except op.PeerError as error:
                return str(error)
            return "held"

        with ThreadPoolExecutor(60) as pool:
            said = list(pool.map(poll, range(60)))
    turned_away = [words for words in said if "calls open already" in words]
    if len(turned_away) < 20:
        raise AcceptedError(f"{len(turned_away)} of 60 calls were turned away.")
    return turned_away[0]


@MEMBERS.add("cut off: The party has more than 16 connections")
def many_connections_of_a_party(siege: Siege) -> str:
    """Whole Flight channels, each idle after its hello."""
    with contextlib.ExitStack() as stack:
        for _ in range(siege.crowd):
            with contextlib.suppress(op.PeerError):
                stack.enter_context(siege.hands())
    return f"(16 of {siege.crowd} connections stay open)"


@MEMBERS.add("flood: Party 'shop' has 16 calls open already")
def a_reader_that_does_not_read(siege: Siege) -> str:
    """Hundreds of calls over HTTP/2 by hand, whose answers may not be sent."""
    with siege.hands() as (_, welcome):
        job = encode(Poll(welcome.job))
    kit = siege.made.folder / "certs" / "shop"
    with frames.connected(siege.address, kit, buffer=4096) as end:
        end.sendall(frames.opening(window=0))
        for number in range(300):
            end.sendall(frames.action(1 + 2 * number, "aligned", job))
        time.sleep(2.0)
    return "(16 calls wait, the others were refused)"


@MEMBERS.add("cut off: Calls were begun and not gone on with")
def a_thousand_calls_that_never_say_which(siege: Siege) -> str:
    """Begun over one connection, none of them gone on with: each would hold a thread."""
    kit = siege.made.folder / "certs" / "shop"
    with frames.connected(siege.address, kit) as end:
        end.sendall(frames.opening())
        with contextlib.suppress(OSError):
            end.sendall(b"".join(frames.headers(1 + 2 * n, "DoPut") for n in range(1000)))
        end.settimeout(9.0)
        return ended(end)


@MEMBERS.add("cut off|refused")
def a_sender_that_crawls(siege: Siege) -> str:
    """A message that comes by a byte a second keeps its own connection busy, nobody else's."""
    kit = siege.made.folder / "certs" / "shop"
    with frames.connected(siege.address, kit) as end:
        end.sendall(frames.opening())
        message = frames.action(1, "hello", bytes(1000))
        for byte in message[:3]:
            end.sendall(bytes([byte]))
            time.sleep(0.5)
        end.sendall(message[3:-1])
        time.sleep(1.0)
    return "(nothing was taken in)"
