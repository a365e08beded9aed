"""Attacks by a feature party: inconsistent messages, and too many or too large ones."""

import contextlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pyarrow as pa
import pyarrow.flight as flight

import opboost as op
from opboost.parties.alignment import PsiPeer
from opboost.parties.row_proof import RowProof
from opboost.protocol import messages as msg
from opboost.psi.blinding import Secret
from opboost.psi.row_keys import key_digests
from opboost.storage import atomic_files
from opboost.transport.feature.label_connection import Connection
from robustness.attacks import http2_frames
from robustness.attacks.attack_harness import (
    OTHER_JOB,
    POINT,
    AcceptedError,
    AttackHarness,
    Attacks,
    Calls,
    renamed,
)
from robustness.attacks.by_outsiders import ended
from robustness.party_processes import ROWS, new_identity
from robustness.prefork_server import waited

MEMBERS = Attacks()
RULES = op.AlignRules()


@MEMBERS.calls("refused: .*altered|not an OpBoost message")
def bytes_that_are_no_message(harness: AttackHarness, shop: Connection) -> Calls:
    good = msg.encode(msg.Poll(harness.job))
    for body in (b"", b"\0" * 100, good[:-1], good[:50] + b"!" + good[51:], os.urandom(5000)):
        yield "poll", body, "altered|not an OpBoost message"


@MEMBERS.calls("refused: A message is of an unexpected kind")
def a_message_of_another_kind(harness: AttackHarness, shop: Connection) -> Calls:
    yield "hello", msg.Poll(harness.job), "unexpected kind: 'poll'"


@MEMBERS.calls("refused: There is no such step")
def a_step_that_does_not_exist(harness: AttackHarness, shop: Connection) -> Calls:
    yield "exec", b"ls", "no such step"


@MEMBERS.calls("refused: .*(another job|of job)")
def messages_of_another_job(harness: AttackHarness, shop: Connection) -> Calls:
    """Send complete, correctly signed messages of another run."""
    digest = bytes(32)
    rows = msg.Rows("shop", OTHER_JOB, ROWS, digest)
    yield "poll", msg.Poll(OTHER_JOB), "works on another job"
    yield "rows", rows, "of job '2020|This job aligns rows"
    yield "prove", msg.Claim("shop", OTHER_JOB, ROWS, POINT, digest), "proof of rows"
    yield "answer", msg.SplitValues(OTHER_JOB, digest, ()), "not requested"
    yield "receipt", harness.identity().sign(OTHER_JOB, 3, digest), "receipt is for another job"


@MEMBERS.calls("refused: ")
def fetching_data_of_another_party(harness: AttackHarness, shop: Connection) -> Calls:
    """Try Flight's calls to list and fetch data, all of which must be refused."""
    client = shop._client
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
    yield "../telco", b"", "no such step"


# Points


@MEMBERS.calls("refused: .*points", when="points")
def unexpected_points(harness: AttackHarness, shop: Connection) -> Calls:
    job, tag = harness.job, bytes(16)
    for points, words in (
        (msg.Points(job, "label", tag, 1, 0, POINT), "not expected"),
        (msg.Points(job, "raised", tag, 1, 0, POINT), "not the label party's"),
        (msg.Points(job, "raised", tag, ROWS, 0, POINT * ROWS), "before the party's own"),
        (msg.Points(OTHER_JOB, "feature", tag, 1, 0, POINT), "another job now"),
        (msg.Points(job, "feature", tag, 6_000_000, 0, POINT * 8192), "rows are more than"),
    ):
        yield "points", points, words


@MEMBERS.calls("refused: The points cannot be used: A point does not lie", when="points")
def points_that_are_not_on_the_curve(harness: AttackHarness, shop: Connection) -> Calls:
    shop.call("points", msg.Points(harness.job, "feature", bytes(16), 2, 0, POINT * 2), msg.Ack)
    yield told_to_come_again(harness, "does not lie on the curve")


@MEMBERS.calls("refused: Piece 0 arrived again with different points", when="points")
def points_that_change(harness: AttackHarness, shop: Connection) -> Calls:
    good, more = (
        next(PsiPeer(harness.job, "feature", Secret.fresh(), key_digests(keys), RULES).pieces())
        for keys in ([b"a", b"b"], [b"a", b"b", b"c"])
    )
    shop.call("points", good, msg.Ack)
    shop.call("points", good, msg.Ack)  # repeated: nothing happens
    turned = good.points[32:] + good.points[:32]
    yield "points", replace(good, tag=bytes(16)), "under another secret have already arrived"
    yield "points", replace(more, tag=good.tag), "of another set"
    yield "points", replace(good, points=turned), "arrived again with different points"
    # Unusable raised points make the label party forget all points, so that others can be tried.
    tag = json.loads(atomic_files.read_checked(harness.kept / "points", ""))["tag"]
    raised = msg.Points(harness.job, "raised", bytes.fromhex(tag), ROWS, 0, POINT * ROWS)
    shop.call("points", raised, msg.Ack)
    yield told_to_come_again(harness, "cannot be used")


def told_to_come_again(harness: AttackHarness, words: str) -> tuple[str, msg.Poll, str]:
    """Return the call that the training process refuses once it has looked at the points."""
    waited((harness.kept / "refused").exists, 20)
    return "aligned", msg.Poll(harness.job), words


# The proof that both know the common rows


@MEMBERS.calls("refused: A different proof of rows has already arrived", when="release")
def a_second_guess_at_the_common_rows(harness: AttackHarness, shop: Connection) -> Calls:
    """Send a second claim: each would reveal whether it is right, so only the first is accepted."""
    for _ in range(3):
        guess = RowProof.of(Secret.fresh(), os.urandom(32))
        claim = msg.Claim("shop", harness.job, ROWS, guess.share, os.urandom(32))
        yield "prove", claim, "a job accepts only one", msg.Proof
    yield "rows", msg.Rows("shop", harness.job, ROWS, os.urandom(32)), "This job aligns rows"


# Schemas and receipts


@MEMBERS.calls("refused: .*(rows|digest|order|job)", when="release")
def a_schema_that_does_not_fit(harness: AttackHarness, shop: Connection) -> Calls:
    schema = harness.release.schema
    for other, words in (
        (replace(schema, rows=ROWS + 1), "sent 570 rows; the label party has 569"),
        (replace(schema, rows=1), "sent 1 rows"),
        (replace(schema, ids=bytes(32)), "not the label party's in the same order"),
        (replace(schema, job=OTHER_JOB), f"of job '{OTHER_JOB}'"),
        (replace(schema, party="telco"), "in the name of 'telco'"),
    ):
        yield "schema", other, words


@MEMBERS.calls("refused: The schema changed during the job", when="release")
def a_schema_that_changes_during_the_job(harness: AttackHarness, shop: Connection) -> Calls:
    schema = harness.announced(shop).schema
    shop.call("schema", schema, msg.Ack)  # repeated: nothing happens
    yield "schema", replace(schema, columns=schema.columns[::-1]), "changed during the job"


@MEMBERS.calls("refused: A column's name or category has an invisible character", when="release")
def names_that_steer_a_terminal(harness: AttackHarness, shop: Connection) -> Calls:
    """Send names that would clear the line of the true promise, or reverse its order."""
    for name in ("\x1b[1A\x1b[2K", "a\nb: at most 0.1", "a\u202eb", "a\u200bb", "\x9b2J"):
        yield "schema", renamed(harness.release.schema, name), "invisible character"


@MEMBERS.calls("refused: .*receipt", when="release")
def receipts_that_are_not_its_own(harness: AttackHarness, shop: Connection) -> Calls:
    own = harness.release.receipt
    other = harness.identity("telco").sign(harness.job, own.entry, own.head)
    for receipt in (
        other,
        replace(other, party="shop"),
        replace(own, entry=own.entry + 1),
        replace(own, head=bytes(32)),
        new_identity(harness.certs, "shop").sign(harness.job, own.entry, own.head),
        msg.Receipt("shop", harness.job, own.entry, bytes(32), b"no certificate", b""),
    ):
        yield "receipt", receipt, "receipt"


@MEMBERS.calls("refused: The receipt is older", when="release")
def an_outdated_receipt(harness: AttackHarness, shop: Connection) -> Calls:
    """Send a receipt that the shop signed when its ledger had fewer entries."""
    entry = harness.announced(shop).receipt.entry - 1
    yield "receipt", harness.identity().sign(harness.job, entry, bytes(32)), "older than one"


@MEMBERS.calls("refused: .*'telco'", when="release")
def replayed_messages_of_this_job(harness: AttackHarness, shop: Connection) -> Calls:
    """Replay its own messages, which change nothing, and another party's, which are refused."""
    release = harness.announced(shop)
    with harness.nothing_kept():
        harness.announced(shop)
        harness.announced(shop)
    yield "schema", replace(release.schema, party="telco"), "in the name of 'telco'"
    theirs = harness.identity("telco").sign(harness.job, release.receipt.entry, bytes(32))
    yield "receipt", theirs, "receipt is not from"


@MEMBERS.calls("refused: . of 2 columns have arrived", when="release")
def an_end_before_all_columns_arrived(harness: AttackHarness, shop: Connection) -> Calls:
    harness.announced(shop)
    yield "sent", msg.Ack(harness.job, "sent"), "of 2 columns have arrived"


@MEMBERS.calls("refused: These split values were not requested", when="release")
def split_values_that_were_not_requested(harness: AttackHarness, shop: Connection) -> Calls:
    yield "answer", msg.SplitValues(harness.job, bytes(32), ()), "not requested"


# Floods, and messages that are too large


@MEMBERS.calls("cut off: A message is larger than any")
def a_huge_message(harness: AttackHarness, shop: Connection) -> Calls:
    """Send 700 MB in one message to a server with 512 MB, which closes the connection early."""
    words = "hung up|[Ss]tream removed|[Cc]onnection reset|[Bb]roken pipe"
    yield "hello", bytes(700_000_000), words


@MEMBERS.calls("refused: A message of .* bytes is too large")
def a_large_message(harness: AttackHarness, shop: Connection) -> Calls:
    """Send a message ten times as large as any valid one."""
    yield "hello", bytes(40_000_000), "too large"


@MEMBERS.add("flood: Party 'shop' has 16 calls open already")
def a_flood_of_calls(harness: AttackHarness) -> str:
    with harness.logged_in() as (connection, welcome):

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
                stack.enter_context(harness.logged_in())
    return f"(16 of {harness.crowd} connections stay open)"


@MEMBERS.add("flood: Party 'shop' has 16 calls open already")
def a_reader_that_does_not_read(harness: AttackHarness) -> str:
    """Open hundreds of calls over hand-made HTTP/2 that never lets the server send answers."""
    with harness.logged_in() as (_, welcome):
        job, session = msg.encode(msg.Poll(welcome.job)), welcome.session.hex()
    with harness.http2(window=0, buffer=4096) as end:
        with contextlib.suppress(OSError):  # the server may close it before all are sent
            for number in range(300):
                end.sendall(http2_frames.action(1 + 2 * number, "aligned", job, session))
        time.sleep(2.0)
    return "(16 calls wait, the others were refused)"


@MEMBERS.add("cut off: Calls were opened without naming a method")
def a_thousand_calls_that_never_name_a_method(harness: AttackHarness) -> str:
    """Open calls over one connection without naming a method; each would occupy a thread."""
    with harness.http2() as end:
        with contextlib.suppress(OSError):
            end.sendall(b"".join(http2_frames.headers(1 + 2 * n, "DoPut") for n in range(1000)))
        end.settimeout(9.0)
        return ended(end)


@MEMBERS.add("cut off|refused")
def a_very_slow_sender(harness: AttackHarness) -> str:
    """Send a few single bytes with pauses, which occupies only the sender's own connection."""
    with harness.http2() as end:
        message = http2_frames.action(1, "hello", bytes(1000))
        for byte in message[:3]:
            end.sendall(bytes([byte]))
            time.sleep(0.5)
        end.sendall(message[3:-1])
        time.sleep(1.0)
    return "(nothing was accepted)"
