"""Attacks by a feature party: inconsistent messages, and too many or too large ones."""

import contextlib
import dataclasses
import json
import os
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pyarrow.flight as flight

import opboost as op
from opboost.parties.alignment import PsiPeer, kept_secret
from opboost.parties.row_proof import RowProof
from opboost.protocol import messages as msg
from opboost.psi.blinding import Secret
from opboost.psi.row_keys import key_digests
from opboost.storage import atomic_files
from opboost.transport.feature.label_connection import Connection
from robustness.attacks import http2_frames
from robustness.attacks.attack_harness import (
    AcceptedError,
    AttackHarness,
    Attacks,
    call_refused,
    raw_action,
    refused,
)
from robustness.attacks.by_outsiders import ended
from robustness.party_processes import ROWS, new_identity
from robustness.prefork_server import waited

MEMBERS = Attacks()
Calls = Iterator[tuple[str, Any, str]]
OTHER_JOB = "20200101T000000Z-00000000"


@MEMBERS.add("refused: .*altered|not an OpBoost message")
def bytes_that_are_no_message(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        good = msg.encode(msg.Poll(welcome.job))
        for body in (b"", b"\0" * 100, good[:-1], good[:50] + b"!" + good[51:], os.urandom(5000)):
            said = refused(
                lambda body=body: raw_action(connection, "poll", body),
                "altered|not an OpBoost message",
            )
    return said


@MEMBERS.calls("refused: A message is of an unexpected kind")
def a_message_of_another_kind(harness: AttackHarness, job: str) -> Calls:
    yield "hello", msg.Poll(job), "unexpected kind: 'poll'"


@MEMBERS.add("refused: There is no such step")
def a_step_that_does_not_exist(harness: AttackHarness) -> str:
    with harness.hands() as (connection, _):
        return refused(lambda: raw_action(connection, "exec", b"ls"), "no such step")


@MEMBERS.calls("refused: .*(another job|of job)")
def messages_of_another_job(harness: AttackHarness, job: str) -> Calls:
    """Send complete, correctly signed messages of another run."""
    digest, point = bytes(32), b"\2" + bytes(31)
    rows = msg.Rows("shop", OTHER_JOB, ROWS, digest)
    yield "poll", msg.Poll(OTHER_JOB), "works on another job"
    yield "rows", rows, "of job '2020|This job aligns rows"
    yield "prove", msg.Claim("shop", OTHER_JOB, ROWS, point, digest), "proof of rows"
    yield "answer", msg.SplitValues(OTHER_JOB, digest, ()), "not requested"
    yield "receipt", harness.identity().sign(OTHER_JOB, 3, digest), "receipt is for another job"


@MEMBERS.add("refused: ")
def fetching_data_of_another_party(harness: AttackHarness) -> str:
    """Try Flight's calls to list and fetch data, all of which must be refused."""
    with harness.hands() as (connection, _):
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
            raise AcceptedError("Data of another party was returned.")
        return refused(lambda: raw_action(connection, "../telco", b""), "no such step")


# Points


def points_of(job: str, keys: Iterable[bytes]) -> msg.Points:
    """Return valid points under a secret of the attacker."""
    side = PsiPeer(job, "feature", kept_secret(None), key_digests(list(keys)), op.AlignRules())
    (piece,) = side.pieces()
    return piece


@MEMBERS.calls("refused: .*points", harness="points")
def points_that_nobody_expects(harness: AttackHarness, job: str) -> Calls:
    tag, point = bytes(16), b"\2" + bytes(31)
    for points, words in (
        (msg.Points(job, "label", tag, 1, 0, point), "not expected"),
        (msg.Points(job, "raised", tag, 1, 0, point), "not the label party's"),
        (msg.Points(job, "raised", tag, ROWS, 0, point * ROWS), "before the party's own"),
        (msg.Points(OTHER_JOB, "feature", tag, 1, 0, point), "another job now"),
        (msg.Points(job, "feature", tag, 6_000_000, 0, point * 8192), "rows are more than"),
    ):
        yield "points", points, words


@MEMBERS.add("refused: The points cannot be used: A point does not lie", harness="points")
def points_that_are_not_on_the_curve(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        bad = msg.Points(welcome.job, "feature", bytes(16), 2, 0, (b"\2" + bytes(31)) * 2)
        connection.call("points", bad, msg.Ack)
        return told_to_come_again(harness, connection, welcome.job, "does not lie on the curve")


@MEMBERS.add("refused: Piece 0 arrived again with different points", harness="points")
def points_that_change(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        good = points_of(welcome.job, [b"a", b"b"])
        connection.call("points", good, msg.Ack)
        connection.call("points", good, msg.Ack)  # repeated: nothing happens
        more = points_of(welcome.job, [b"a", b"b", b"c"])
        turned = good.points[32:] + good.points[:32]
        for points, words in (
            (dataclasses.replace(good, tag=bytes(16)), "under another secret arrived before"),
            (dataclasses.replace(more, tag=good.tag), "of another set"),
            (dataclasses.replace(good, points=turned), "arrived again with different points"),
        ):
            said = call_refused(connection, "points", points, words)
        forgotten(harness)
    return said


def told_to_come_again(harness: AttackHarness, connection: Connection, job: str, words: str) -> str:
    """Return the refusal that the training process writes and the label server sends."""
    box = harness.job / "parties" / "shop" / "refused"
    waited(box.exists, 20)
    return call_refused(connection, "aligned", msg.Poll(job), words)


def forgotten(harness: AttackHarness) -> None:
    """Send unusable raised points, so that the label party forgets all points and starts again."""
    with harness.hands() as (connection, welcome):
        job = welcome.job
        points = atomic_files.read_checked(harness.job / "parties" / "shop" / "points", "")
        raised, tag = (b"\2" + bytes(31)) * ROWS, bytes.fromhex(json.loads(points)["tag"])
        connection.call("points", msg.Points(job, "raised", tag, ROWS, 0, raised), msg.Ack)
        told_to_come_again(harness, connection, job, "cannot be used")


# The proof that both know the common rows


@MEMBERS.add("refused: A different proof of rows arrived before", harness="release")
def a_second_guess_at_the_common_rows(harness: AttackHarness) -> str:
    """Send a second claim: each would reveal whether it is right, so only the first is accepted."""
    with harness.hands() as (connection, welcome):
        for _ in range(3):
            guess = RowProof.of(Secret.fresh(), os.urandom(32))
            claim = msg.Claim("shop", welcome.job, ROWS, guess.share, os.urandom(32))
            said = call_refused(connection, "prove", claim, "a job accepts only one", msg.Proof)
        rows = msg.Rows("shop", welcome.job, ROWS, os.urandom(32))
        call_refused(connection, "rows", rows, "This job aligns rows")
    return said


# Schemas and receipts


@MEMBERS.calls("refused: .*(rows|digest|order|job)", harness="release")
def a_schema_that_does_not_fit(harness: AttackHarness, job: str) -> Calls:
    schema = harness.release.schema
    for other, words in (
        (dataclasses.replace(schema, rows=ROWS + 1), "sent 570 rows; the label party has 569"),
        (dataclasses.replace(schema, rows=1), "sent 1 rows"),
        (dataclasses.replace(schema, ids=bytes(32)), "not the label party's in the same order"),
        (dataclasses.replace(schema, job=OTHER_JOB), f"of job '{OTHER_JOB}'"),
        (dataclasses.replace(schema, party="telco"), "in the name of 'telco'"),
    ):
        yield "schema", other, words


@MEMBERS.add("refused: The schema changed during the job", harness="release")
def a_schema_that_changes_in_mid_job(harness: AttackHarness) -> str:
    with harness.hands() as (connection, _):
        schema = harness.announced(connection).schema
        connection.call("schema", schema, msg.Ack)  # repeated: nothing happens
        other = dataclasses.replace(schema, columns=schema.columns[::-1])
        return call_refused(connection, "schema", other, "changed during the job")


@MEMBERS.calls("refused: A column's name or category has an invisible character", harness="release")
def names_that_steer_a_terminal(harness: AttackHarness, job: str) -> Calls:
    """Send names that would clear the line of the true promise, or reverse its order."""
    schema = harness.release.schema
    for name in ("\x1b[1A\x1b[2K", "a\nb: at most 0.1", "a\u202eb", "a\u200bb", "\x9b2J"):
        spec = json.loads(schema.columns[0].spec) | {"name": name}
        columns = (msg.ColumnSchema(json.dumps(spec)), *schema.columns[1:])
        yield "schema", dataclasses.replace(schema, columns=columns), "invisible character"


@MEMBERS.calls("refused: .*receipt", harness="release")
def receipts_that_are_not_its_own(harness: AttackHarness, job: str) -> Calls:
    own = harness.release.receipt
    other = harness.identity("telco").sign(job, own.entry, own.head)
    for receipt in (
        other,
        dataclasses.replace(other, party="shop"),
        dataclasses.replace(own, entry=own.entry + 1),
        dataclasses.replace(own, head=bytes(32)),
        new_identity(harness.certs, "shop").sign(job, own.entry, own.head),
        msg.Receipt("shop", job, own.entry, bytes(32), b"no certificate", b""),
    ):
        yield "receipt", receipt, "receipt"


@MEMBERS.add("refused: The receipt is older", harness="release")
def an_outdated_receipt(harness: AttackHarness) -> str:
    """Send a receipt that the shop signed when its ledger had fewer entries."""
    with harness.hands() as (connection, welcome):
        harness.announced(connection)
        old = harness.identity().sign(welcome.job, harness.release.receipt.entry - 1, bytes(32))
        return call_refused(connection, "receipt", old, "older than one")


@MEMBERS.add("refused: . of 2 columns have arrived", harness="release")
def an_end_before_all_columns_arrived(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        harness.announced(connection)
        end = msg.Ack(welcome.job, "sent")
        return call_refused(connection, "sent", end, "of 2 columns have arrived")


@MEMBERS.calls("refused: These split values were not requested", harness="release")
def split_values_that_nobody_asked_for(harness: AttackHarness, job: str) -> Calls:
    yield "answer", msg.SplitValues(job, bytes(32), ()), "not requested"


# Floods, and messages that are too large


@MEMBERS.add("cut off: A message is larger than any")
def a_huge_message(harness: AttackHarness) -> str:
    """Send 700 MB in one message to a server with 512 MB, which closes the connection early."""
    with harness.hands() as (connection, _):
        return refused(
            lambda: raw_action(connection, "hello", bytes(700_000_000)),
            "hung up|[Ss]tream removed|[Cc]onnection reset|[Bb]roken pipe",
        )


@MEMBERS.add("refused: A message of .* bytes is too large")
def a_large_message(harness: AttackHarness) -> str:
    """Send a message ten times as large as any valid one."""
    with harness.hands() as (connection, _):
        return refused(lambda: raw_action(connection, "hello", bytes(40_000_000)), "too large")


@MEMBERS.add("flood: Party 'shop' has 16 calls open already")
def a_flood_of_calls(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):

        def poll(_: int) -> str:
            try:
                connection.call("poll", msg.Poll(welcome.job), msg.Ack)
            except op.PeerError as error:
                return str(error)
            return "held"

        with ThreadPoolExecutor(60) as pool:
            said = list(pool.map(poll, range(60)))
    turned_away = [words for words in said if "calls open already" in words]
    if len(turned_away) < 20:
        raise AcceptedError(f"Only {len(turned_away)} of 60 calls were refused.")
    return turned_away[0]


@MEMBERS.add("cut off: The party has more than 16 connections")
def many_connections_of_a_party(harness: AttackHarness) -> str:
    """Open many Flight channels, each idle after its hello."""
    with contextlib.ExitStack() as stack:
        for _ in range(harness.crowd):
            with contextlib.suppress(op.PeerError):
                stack.enter_context(harness.hands())
    return f"(16 of {harness.crowd} connections stay open)"


@MEMBERS.add("flood: Party 'shop' has 16 calls open already")
def a_reader_that_does_not_read(harness: AttackHarness) -> str:
    """Open hundreds of calls over hand-made HTTP/2 that never lets the server send answers."""
    with harness.hands() as (_, welcome):
        job, session = msg.encode(msg.Poll(welcome.job)), welcome.session.hex()
    kit = harness.certs / "shop"
    with http2_frames.connected(harness.address, kit, buffer=4096) as end:
        end.sendall(http2_frames.opening(window=0))
        with contextlib.suppress(OSError):  # the server may close it before all are sent
            for number in range(300):
                end.sendall(http2_frames.action(1 + 2 * number, "aligned", job, session))
        time.sleep(2.0)
    return "(16 calls wait, the others were refused)"


@MEMBERS.add("cut off: Calls were opened without naming a method")
def a_thousand_calls_that_never_name_a_method(harness: AttackHarness) -> str:
    """Open calls over one connection without naming a method; each would occupy a thread."""
    kit = harness.certs / "shop"
    with http2_frames.connected(harness.address, kit) as end:
        end.sendall(http2_frames.opening())
        with contextlib.suppress(OSError):
            end.sendall(b"".join(http2_frames.headers(1 + 2 * n, "DoPut") for n in range(1000)))
        end.settimeout(9.0)
        return ended(end)


@MEMBERS.add("cut off|refused")
def a_very_slow_sender(harness: AttackHarness) -> str:
    """Send a few single bytes with pauses, which occupies only the sender's own connection."""
    kit = harness.certs / "shop"
    with http2_frames.connected(harness.address, kit) as end:
        end.sendall(http2_frames.opening())
        message = http2_frames.action(1, "hello", bytes(1000))
        for byte in message[:3]:
            end.sendall(bytes([byte]))
            time.sleep(0.5)
        end.sendall(message[3:-1])
        time.sleep(1.0)
    return "(nothing was accepted)"
