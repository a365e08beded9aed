"""Attacks by a party of the job: more than anybody can take."""

from __future__ import annotations

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor

import opboost as op
from opboost.protocol.messages import Ack, Poll, encode
from robustness.attacks import http2_frames
from robustness.attacks.attack_harness import (
    AcceptedError,
    AttackHarness,
    Attacks,
    raw_action,
    refused,
)
from robustness.attacks.by_outsiders import ended

FLOODS = Attacks()


@FLOODS.add("cut off: A message is larger than any")
def a_huge_message(harness: AttackHarness) -> str:
    """700 MB in one message, where the gate has 512: it is cut off before it is all there."""
    with harness.hands() as (connection, _):
        return refused(
            lambda: raw_action(connection, "hello", bytes(700_000_000)),
            "hung up|[Ss]tream removed|[Cc]onnection reset|[Bb]roken pipe",
        )


@FLOODS.add("refused: A message of .* bytes is too large")
def a_large_message(harness: AttackHarness) -> str:
    """Ten times as large as any message of ours."""
    with harness.hands() as (connection, _):
        return refused(lambda: raw_action(connection, "hello", bytes(40_000_000)), "too large")


@FLOODS.add("flood: Party 'shop' has 16 calls open already")
def a_flood_of_calls(harness: AttackHarness) -> str:
    with harness.hands() as (connection, welcome):

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


@FLOODS.add("cut off: The party has more than 16 connections")
def many_connections_of_a_party(harness: AttackHarness) -> str:
    """Whole Flight channels, each idle after its hello."""
    with contextlib.ExitStack() as stack:
        for _ in range(harness.crowd):
            with contextlib.suppress(op.PeerError):
                stack.enter_context(harness.hands())
    return f"(16 of {harness.crowd} connections stay open)"


@FLOODS.add("flood: Party 'shop' has 16 calls open already")
def a_reader_that_does_not_read(harness: AttackHarness) -> str:
    """Hundreds of calls over HTTP/2 by hand, whose answers may not be sent."""
    with harness.hands() as (_, welcome):
        job, session = encode(Poll(welcome.job)), welcome.session.hex()
    kit = harness.certs / "shop"
    with http2_frames.connected(harness.address, kit, buffer=4096) as end:
        end.sendall(http2_frames.opening(window=0))
        with contextlib.suppress(OSError):  # the server may cut it off before all are sent
            for number in range(300):
                end.sendall(http2_frames.action(1 + 2 * number, "aligned", job, session))
        time.sleep(2.0)
    return "(16 calls wait, the others were refused)"


@FLOODS.add("cut off: Calls were begun and not gone on with")
def a_thousand_calls_that_never_say_which(harness: AttackHarness) -> str:
    """Begun over one connection, none of them gone on with: each would hold a thread."""
    kit = harness.certs / "shop"
    with http2_frames.connected(harness.address, kit) as end:
        end.sendall(http2_frames.opening())
        with contextlib.suppress(OSError):
            end.sendall(b"".join(http2_frames.headers(1 + 2 * n, "DoPut") for n in range(1000)))
        end.settimeout(9.0)
        return ended(end)


@FLOODS.add("cut off|refused")
def a_sender_that_crawls(harness: AttackHarness) -> str:
    """A message that comes by a byte a second keeps its own connection busy, nobody else's."""
    kit = harness.certs / "shop"
    with http2_frames.connected(harness.address, kit) as end:
        end.sendall(http2_frames.opening())
        message = http2_frames.action(1, "hello", bytes(1000))
        for byte in message[:3]:
            end.sendall(bytes([byte]))
            time.sleep(0.5)
        end.sendall(message[3:-1])
        time.sleep(1.0)
    return "(nothing was taken in)"
