"""Attacks by a party of the job: a true certificate, and messages that do not hold together."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterable, Iterator
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
from robustness.attacks.attack_harness import (
    AcceptedError,
    AttackHarness,
    Attacks,
    call_refused,
    raw_action,
    refused,
)
from robustness.party_processes import ROWS, new_identity
from robustness.prefork_server import waited

MEMBERS = Attacks()
Calls = Iterator[tuple[str, Any, str]]
OTHER_JOB = "20200101T000000Z-00000000"


@MEMBERS.add("refused: .*altered|no message of OpBoost")
def bytes_that_are_no_message(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        good = msg.encode(msg.Poll(welcome.job))
        for body in (b"", b"\0" * 100, good[:-1], good[:50] + b"!" + good[51:], os.urandom(5000)):
            said = refused(
                lambda body=body: raw_action(connection, "poll", body),
                "altered|no message of OpBoost",
            )
    return said


@MEMBERS.calls("refused: A message is of a kind that nobody asked for")
def a_message_of_another_kind(harness: AttackHarness, job: str) -> Calls:
    yield "hello", msg.Poll(job), "nobody asked for: 'poll'"


@MEMBERS.add("refused: There is no such step")
def a_step_that_there_is_not(harness: AttackHarness) -> str:
    with harness.hands() as (connection, _):
        return refused(lambda: raw_action(connection, "exec", b"ls"), "no such step")


@MEMBERS.calls("refused: .*(another job|of job)")
def messages_of_another_job(harness: AttackHarness, job: str) -> Calls:
    """Well signed and whole, as they were in another run."""
    digest, point = bytes(32), b"\2" + bytes(31)
    rows = msg.Rows("shop", OTHER_JOB, ROWS, digest)
    yield "poll", msg.Poll(OTHER_JOB), "works on another job"
    yield "rows", rows, "of job '2020|Rows are aligned"
    yield "prove", msg.Claim("shop", OTHER_JOB, ROWS, point, digest), "proof of rows"
    yield "answer", msg.SplitValues(OTHER_JOB, digest, ()), "nobody asked for"
    yield "receipt", harness.identity().sign(OTHER_JOB, 3, digest), "receipt is of another job"


@MEMBERS.add("refused: ")
def fetching_what_is_another_partys(harness: AttackHarness) -> str:
    """None of Flight's ways to list or to get is open; the log has those that reach the gate."""
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
            raise AcceptedError("Something was given out.")
        return refused(lambda: raw_action(connection, "../telco", b""), "no such step")


# Points


def points_of(job: str, keys: Iterable[bytes]) -> msg.Points:
    """Sound points under a secret of the attacker's."""
    side = PsiPeer(job, "feature", kept_secret(None), key_digests(list(keys)), op.AlignRules())
    (piece,) = side.pieces()
    return piece


@MEMBERS.calls("refused: .*points", harness="points")
def points_that_nobody_waits_for(harness: AttackHarness, job: str) -> Calls:
    tag, point = bytes(16), b"\2" + bytes(31)
    for points, words in (
        (msg.Points(job, "label", tag, 1, 0, point), "nobody waits for"),
        (msg.Points(job, "raised", tag, 1, 0, point), "not the label party's"),
        (msg.Points(job, "raised", tag, ROWS, 0, point * ROWS), "before the party's own"),
        (msg.Points(OTHER_JOB, "feature", tag, 1, 0, point), "another job now"),
        (msg.Points(job, "feature", tag, 6_000_000, 0, point * 8192), "rows are more than"),
    ):
        yield "points", points, words


@MEMBERS.add("refused: The points cannot be used: A point does not lie", harness="points")
def points_on_no_curve(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        bad = msg.Points(welcome.job, "feature", bytes(16), 2, 0, (b"\2" + bytes(31)) * 2)
        connection.call("points", bad, msg.Ack)
        return told_to_come_again(harness, connection, welcome.job, "does not lie on the curve")


@MEMBERS.add("refused: Piece 0 came again with other points", harness="points")
def points_that_change(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        good = points_of(welcome.job, [b"a", b"b"])
        connection.call("points", good, msg.Ack)
        connection.call("points", good, msg.Ack)  # repeated: nothing happens
        more = points_of(welcome.job, [b"a", b"b", b"c"])
        turned = good.points[32:] + good.points[:32]
        for points, words in (
            (dataclasses.replace(good, tag=bytes(16)), "under another secret came before"),
            (dataclasses.replace(more, tag=good.tag), "of another set"),
            (dataclasses.replace(good, points=turned), "came again with other points"),
        ):
            said = call_refused(connection, "points", points, words)
        forgotten(harness)
    return said


def told_to_come_again(harness: AttackHarness, connection: Connection, job: str, words: str) -> str:
    """The label party's own process finds out, and the gate tells the sender."""
    box = harness.job / "parties" / "shop" / "refused"
    waited(box.exists, 20)
    return call_refused(connection, "aligned", msg.Poll(job), words)


def forgotten(harness: AttackHarness) -> None:
    """Raise points that do not fit, so that the label party refuses all and the shop may begin."""
    with harness.hands() as (connection, welcome):
        job = welcome.job
        points = atomic_files.read_checked(harness.job / "parties" / "shop" / "points", "")
        raised, tag = (b"\2" + bytes(31)) * ROWS, bytes.fromhex(json.loads(points)["tag"])
        connection.call("points", msg.Points(job, "raised", tag, ROWS, 0, raised), msg.Ack)
        told_to_come_again(harness, connection, job, "cannot be used")


# The proof that both know the common rows


@MEMBERS.add("refused: Another proof of rows came before", harness="release")
def a_second_guess_at_the_common_rows(harness: AttackHarness) -> str:
    """Each claim would tell whether it is right: the first is taken, and no other."""
    with harness.hands() as (connection, welcome):
        for _ in range(3):
            guess = RowProof.of(Secret.fresh(), os.urandom(32))
            claim = msg.Claim("shop", welcome.job, ROWS, guess.share, os.urandom(32))
            said = call_refused(connection, "prove", claim, "one is taken a job", msg.Proof)
        rows = msg.Rows("shop", welcome.job, ROWS, os.urandom(32))
        call_refused(connection, "rows", rows, "Rows are aligned in this job")
    return said


# What is announced


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


@MEMBERS.add("refused: The schema changed in mid-job", harness="release")
def a_schema_that_changes_in_mid_job(harness: AttackHarness) -> str:
    with harness.hands() as (connection, _):
        schema = harness.announced(connection).schema
        connection.call("schema", schema, msg.Ack)  # repeated: nothing happens
        other = dataclasses.replace(schema, columns=schema.columns[::-1])
        return call_refused(connection, "schema", other, "changed in mid-job")


@MEMBERS.calls("refused: A column's name or category has a character", harness="release")
def names_that_steer_a_terminal(harness: AttackHarness, job: str) -> Calls:
    """They would clear the line of the true promise, or turn its order around."""
    schema = harness.release.schema
    for name in ("\x1b[1A\x1b[2K", "a\nb: at most 0.1", "a\u202eb", "a\u200bb", "\x9b2J"):
        spec = json.loads(schema.columns[0].spec) | {"name": name}
        columns = (msg.ColumnSchema(json.dumps(spec)), *schema.columns[1:])
        yield "schema", dataclasses.replace(schema, columns=columns), "cannot be seen"


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
def a_receipt_of_before(harness: AttackHarness) -> str:
    """One that the shop signed itself, of a ledger that had fewer entries."""
    with harness.hands() as (connection, welcome):
        harness.announced(connection)
        old = harness.identity().sign(welcome.job, harness.release.receipt.entry - 1, bytes(32))
        return call_refused(connection, "receipt", old, "older than one")


@MEMBERS.add("refused: . of 2 columns have come", harness="release")
def an_end_before_all_is_there(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):
        harness.announced(connection)
        end = msg.Ack(welcome.job, "sent")
        return call_refused(connection, "sent", end, "of 2 columns have come")


@MEMBERS.calls("refused: Split values came that nobody asked for", harness="release")
def split_values_that_nobody_asked_for(harness: AttackHarness, job: str) -> Calls:
    yield "answer", msg.SplitValues(job, bytes(32), ()), "nobody asked for"
