"""Attacks by outsiders: without a certificate, with a wrong one, or with another party's."""

import contextlib
import os
import resource
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from opboost.demo.local_federation import LABEL_PARTY
from opboost.protocol import messages as msg
from opboost.protocol.column_streams import FIELDS
from opboost.transport.feature.label_connection import Connection
from opboost.transport.shared import development_certificates as kits
from opboost.transport.shared.tls import SESSION, Identity
from opboost_lab.counting_proxy import CountingProxy
from robustness.attacks import http2_frames
from robustness.attacks.attack_harness import (
    POINT,
    AcceptedError,
    Attack,
    AttackHarness,
    Attacks,
    call_refused,
    put_refused,
    refused,
)
from robustness.party_processes import ROWS, job_hash, new_identity, shaken_hands

STRANGERS = Attacks()
HANDSHAKE = "refused: A TLS handshake failed: "
HUNG_UP = "hung up"


def lax_identity(
    certs: Path,
    name: str,
    subject: str,
    names: Sequence[x509.GeneralName] = (),
    *,
    own: bool = False,
) -> Identity:
    """Return an identity with this subject, signed by the true authority or by its ``own`` key."""
    authority, signing = kits._authority(certs / "ca", 1.0)
    key = ec.generate_private_key(ec.SECP256R1())
    common = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, subject)])
    issuer = common if own else authority.subject
    builder = kits._builder(subject, issuer, key.public_key(), 1.0)
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    signed = builder.sign(key if own else signing, hashes.SHA256())
    pem = serialization.Encoding.PEM
    return Identity(name, authority.public_bytes(pem), signed.public_bytes(pem), kits._private(key))


def hello_refused(
    harness: AttackHarness, words: str, identity: Identity, party: str | None = None
) -> str:
    """Return the words that refuse a hello with this certificate."""
    return refused(lambda: shaken_hands(harness.made, harness.address, identity, party), words)


BAD_CERTIFICATES: dict[str, tuple[str, str, Callable[[AttackHarness], Identity]]] = {
    "a self-signed certificate": (HANDSHAKE, HUNG_UP,
        lambda h: lax_identity(h.certs, "shop", "shop", [x509.DNSName("shop")], own=True)),
    "a certificate of another authority": (HANDSHAKE, HUNG_UP,
        lambda h: new_identity(h.certs, "shop")),
    "a certificate that has expired": (HANDSHAKE, HUNG_UP,
        lambda h: new_identity(h.certs, "shop", days=-1.0, true=True)),
    "a party that was revoked": ("Party 'former' is revoked", "Party 'former' is revoked",
        lambda h: h.identity("former")),
    "a valid certificate of a stranger":
        ("'stranger' is not a party of this job", "'stranger' is not a party of this job",
        lambda h: new_identity(h.certs, "stranger", true=True)),
}  # fmt: skip
"""By name: the words in the log, the words to the sender, and the certificate that is shown."""

STRANGERS += [
    Attack(name, "any", log, lambda h, words=words, of=of: hello_refused(h, words, of(h)))
    for name, (log, words, of) in BAD_CERTIFICATES.items()
]


@STRANGERS.add(HANDSHAKE + "peer did not return a certificate")
def no_certificate(harness: AttackHarness) -> str:
    with harness.without_session(replace(harness.identity(), cert=b"", key=b"")) as connection:
        return call_refused(connection, "hello", b"", HUNG_UP)


FOR_SHOP = "The certificate is for 'shop', the message from 'telco'"


@STRANGERS.add(FOR_SHOP)
def the_name_of_another_party(harness: AttackHarness) -> str:
    return hello_refused(harness, FOR_SHOP, harness.identity(), "telco")


@STRANGERS.add("refused: The certificate of party 'shop' is for")
def certificates_that_name_a_party_in_another_way(harness: AttackHarness) -> str:
    """Log in with certificates that TLS accepts; none opens a session or may do anything else."""
    uri, mail = x509.UniformResourceIdentifier("shop"), x509.RFC822Name("shop")
    own, other = x509.DNSName("shop"), x509.DNSName("telco")
    ways: tuple[list[x509.GeneralName], ...] = ([], [uri], [mail], [own, other], [own, uri])
    with harness.nothing_kept():
        for names in ways:
            subject = "another" if names else "shop"
            identity = lax_identity(harness.certs, "shop", subject, names)
            said = hello_refused(harness, "one subject alternative name", identity)
            with harness.without_session(identity) as connection:
                every_step_is_refused(harness, connection)
    return said


@STRANGERS.add(HANDSHAKE)
def a_replayed_connection(harness: AttackHarness) -> str:
    """Replay the bytes of an honest party's connections, as recorded on the network."""
    with CountingProxy(harness.address, keep=True) as tap:
        shaken_hands(harness.made, tap.address, harness.identity("telco"))[0].close()
    if len(tap.sent) != 2:  # to learn which server answers, and to log in to it
        raise AcceptedError(f"The party connected {len(tap.sent)} times.")
    return sent_without_tls(harness, *map(bytes, tap.sent))


@STRANGERS.add(HANDSHAKE)
def garbage_on_the_port(harness: AttackHarness) -> str:
    hello = b"\x16\x03\x01\xff\xff" + os.urandom(4000)
    return sent_without_tls(harness, b"GET / HTTP/1.1\r\n\r\n", hello, b"\n" * 50)


def bare_connection(harness: AttackHarness) -> socket.socket:
    """Return a connection to the label party without TLS."""
    host, _, port = harness.address.rpartition(":")
    return socket.create_connection((host, int(port)), timeout=20)


def sent_without_tls(harness: AttackHarness, *streams: bytes) -> str:
    """Send each stream over its own connection, which the label party must close."""
    for data in streams:
        with bare_connection(harness) as connection:
            connection.sendall(data)
            said = ended(connection)
    return said


def ended(connection: socket.socket) -> str:
    """Read until the label party closes the connection."""
    end = time.monotonic() + 20
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < end:
            try:
                if not connection.recv(2**16):
                    break
            except TimeoutError:
                raise AcceptedError("The connection is still open.") from None
    return "(the connection was closed)"


def every_step_is_refused(harness: AttackHarness, connection: Connection) -> str:
    """Try every call of a party with a valid message, with and without a made-up session."""
    job, words = harness.job, "has not logged in"
    messages: dict[str, Any] = {
        "want": msg.PointsQuery(job, 0),
        "points": msg.Points(job, "feature", bytes(16), 1, 0, POINT),
        "aligned": msg.Poll(job),
        "prove": msg.Claim("shop", job, ROWS, POINT, bytes(32)),
        "rows": msg.Rows("shop", job, ROWS, bytes(32)),
        "schema": msg.Poll(job),
        "receipt": harness.identity().sign(job, 10**6, bytes(32)),
        "sent": msg.Ack(job, "sent"),
        "poll": msg.Poll(job),
        "answer": msg.SplitValues(job, bytes(32), ()),
        "heard": msg.Ack(job, "heard"),
    }
    for made_up in ("", "00" * 32, os.urandom(32).hex(), "x" * 64):
        connection._headers[1:] = [(SESSION.encode(), made_up.encode())] if made_up else []
        for step, message in messages.items():
            said = call_refused(connection, step, message, words)
        put_refused(connection, (job, "0"), words, FIELDS)
    return said


@STRANGERS.add("refused: Party 'shop' has not logged in")
def calls_after_a_failed_login(harness: AttackHarness) -> str:
    """Make calls after a refused login, in case a handler has continued in spite of its refusal."""
    own, other = harness.identity(), harness.identity("telco")
    said_hello = msg.Hello("shop", job_hash(harness.made))
    with harness.nothing_kept(), harness.without_session(own) as connection:
        for certificate, signer in ((own.cert, None), (own.cert, other), (other.cert, other)):
            challenge = connection.call("hello", said_hello, msg.Challenge)
            good = msg.Login.signed(said_hello, LABEL_PARTY, challenge.nonce)
            signature = signer.signature(good) if signer else b"no signature"
            login, words = msg.Login(certificate, signature), "no valid signature|is for telco"
            call_refused(connection, "login", login, words, msg.Welcome)
            said = every_step_is_refused(harness, connection)
    return said


@STRANGERS.add("refused: The login of party 'shop' has no valid signature")
def a_replayed_login(harness: AttackHarness) -> str:
    """Replay the party's signed message over its own connection and over others."""
    own, said_hello = harness.identity(), msg.Hello("shop", job_hash(harness.made))
    with harness.without_session(own) as first, harness.without_session(own) as second:
        challenge = first.call("hello", said_hello, msg.Challenge)
        login = own.login(said_hello, LABEL_PARTY, challenge.nonce)
        not_due = "No login was begun over this connection"
        call_refused(second, "login", login, not_due, msg.Welcome)  # before it was used
        first.call("login", login, msg.Welcome)
        call_refused(first, "login", login, not_due, msg.Welcome)
        for connection in (first, second):
            connection.call("hello", said_hello, msg.Challenge)
            said = call_refused(connection, "login", login, "no valid signature", msg.Welcome)
            call_refused(connection, "login", login, not_due, msg.Welcome)
    return said


@STRANGERS.add("refused: Party 'shop' has not logged in")
def the_session_of_another_party(harness: AttackHarness) -> str:
    with (
        harness.logged_in(harness.identity("telco")) as (_, welcome),
        harness.without_session(harness.identity()) as connection,
    ):
        connection._headers.append((SESSION.encode(), welcome.session.hex().encode()))
        return call_refused(connection, "poll", msg.Poll(welcome.job), "not logged in")


@STRANGERS.add("refused: A connection ended before any call")
def garbage_inside_tls(harness: AttackHarness) -> str:
    """Send garbage after a handshake with a true certificate."""
    with harness.http2() as end:
        end.settimeout(20)
        time.sleep(0.2)
        end.sendall(os.urandom(20_000))
        return ended(end)


@STRANGERS.add("cut off: There are too many connections")
def many_silent_connections(harness: AttackHarness) -> str:
    return crowd(harness, lambda: bare_connection(harness))


@STRANGERS.add("cut off: There are too many connections")
def many_connections_that_stop_after_tls(harness: AttackHarness) -> str:
    kit = harness.certs / "shop"
    return crowd(harness, lambda: http2_frames.connected(harness.address, kit))


@STRANGERS.add("cut off: A connection without any call was idle")
def a_connection_that_never_identifies_itself(harness: AttackHarness) -> str:
    with bare_connection(harness) as idle:
        return ended(idle)


def crowd(harness: AttackHarness, connect: Callable[[], socket.socket]) -> str:
    """Open many connections and keep them; the label party must close most of them."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    with contextlib.ExitStack() as stack:
        held: list[socket.socket] = []
        for _ in range(harness.crowd):
            with contextlib.suppress(OSError):
                held.append(stack.enter_context(connect()))
        time.sleep(1.0)
        left = sum(map(is_open, held))
        if left > 300:
            raise AcceptedError(f"{left} of {harness.crowd} connections are still open.")
    return f"({harness.crowd - left} of {harness.crowd} connections were closed)"


def is_open(end: socket.socket) -> bool:
    end.settimeout(0.0)
    try:
        while end.recv(2**16):
            pass
    except (BlockingIOError, TimeoutError):
        return True
    except OSError as error:
        return "want read" in str(error).lower() or "did not complete" in str(error).lower()
    return False
