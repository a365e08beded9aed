"""Attacks by those who are no party: without a certificate, with a wrong one, with another's."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow.flight as flight
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.federation import as_identity, shaken_hands

from hardening import frames
from hardening.attack import Attacks
from hardening.siege import AcceptedError, Siege, refused
from opboost.experiments.scene import LABEL_PARTY
from opboost.service.certs import new_kit
from opboost.service.join import _spoken
from opboost.service.tls import Identity

STRANGERS = Attacks()
HANDSHAKE = "refused: A TLS handshake failed: "
HUNG_UP = "hung up"


@contextlib.contextmanager
def kit_of(siege: Siege, name: str, days: float = 30.0, *, true: bool = False) -> Iterator[Path]:
    """A new kit, of the true authority or of another one that calls itself the same."""
    with tempfile.TemporaryDirectory() as folder:
        if true:
            shutil.copytree(siege.made.folder / "certs" / "ca", Path(folder) / "ca")
        yield new_kit(name, Path(folder), days=days)


def hello(siege: Siege, identity: Identity) -> None:
    shaken_hands(siege.made, siege.address, identity)[0].close()


@STRANGERS.add(HANDSHAKE + "peer did not return a certificate")
def no_certificate(siege: Siege) -> str:
    client = flight.FlightClient(
        f"grpc+tls://{siege.address}", tls_root_certs=siege.ca, override_hostname=LABEL_PARTY
    )

    def call() -> None:
        with _spoken():
            list(client.do_action(flight.Action("hello", b"")))

    with contextlib.closing(client):
        return refused(call, HUNG_UP)


@STRANGERS.add(HANDSHAKE)
def a_certificate_that_signs_itself(siege: Siege) -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "shop")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("shop")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    plain, bare = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    own = Identity(
        "shop", siege.ca, certificate.public_bytes(pem), key.private_bytes(pem, plain, bare)
    )
    return refused(lambda: hello(siege, own), HUNG_UP)


@STRANGERS.add(HANDSHAKE)
def a_certificate_of_another_authority(siege: Siege) -> str:
    with kit_of(siege, "shop") as kit:
        return refused(lambda: hello(siege, as_identity(kit, siege.ca, "shop")), HUNG_UP)


@STRANGERS.add(HANDSHAKE)
def a_certificate_that_has_expired(siege: Siege) -> str:
    with kit_of(siege, "shop", -1.0, true=True) as kit:
        return refused(lambda: hello(siege, as_identity(kit, siege.ca, "shop")), HUNG_UP)


@STRANGERS.add("Party 'former' is revoked")
def a_party_that_was_revoked(siege: Siege) -> str:
    return refused(lambda: hello(siege, siege.identity("former")), "Party 'former' is revoked")


@STRANGERS.add("'stranger' is no party of this job")
def a_good_certificate_of_no_party(siege: Siege) -> str:
    with kit_of(siege, "stranger", true=True) as kit:
        own = as_identity(kit, siege.ca, "stranger")
        return refused(lambda: hello(siege, own), "'stranger' is no party of this job")


@STRANGERS.add("The certificate is for 'shop', the message from 'telco'")
def another_partys_name(siege: Siege) -> str:
    def call() -> None:
        shaken_hands(siege.made, siege.address, siege.identity("shop"), "telco")

    return refused(call, "The certificate is for 'shop', the message from 'telco'")


@STRANGERS.add(HANDSHAKE)
def a_recorded_connection_played_again(siege: Siege) -> str:
    """The bytes of an honest party's connection, taken from the network, TLS and all."""
    recorded = bytearray()
    host, _, port = siege.address.rpartition(":")
    with socket.create_server(("127.0.0.1", 0)) as tap:

        def carry(source: socket.socket, sink: socket.socket, keep: bool) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(2**16):
                    recorded.extend(data if keep else b"")
                    sink.sendall(data)

        def relay() -> None:
            near, _ = tap.accept()
            with near, socket.create_connection((host, int(port))) as far:
                back = threading.Thread(target=carry, args=(far, near, False))
                back.start()
                carry(near, far, True)
                far.shutdown(socket.SHUT_RDWR)
                back.join()

        thread = threading.Thread(target=relay)
        thread.start()
        where = f"127.0.0.1:{tap.getsockname()[1]}"
        shaken_hands(siege.made, where, siege.identity("telco"))[0].close()
        thread.join()
    with socket.create_connection((host, int(port)), timeout=20) as again:
        again.sendall(bytes(recorded))
        return ended(again)


@STRANGERS.add(HANDSHAKE)
def garbage_on_the_port(siege: Siege) -> str:
    host, _, port = siege.address.rpartition(":")
    for data in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + os.urandom(4000), b"\n" * 50):
        with socket.create_connection((host, int(port)), timeout=20) as garbage:
            garbage.sendall(data)
            said = ended(garbage)
    return said


def ended(connection: socket.socket) -> str:
    """Read on until the label party hangs up."""
    end = time.monotonic() + 20
    with contextlib.suppress(ConnectionError):
        while time.monotonic() < end:
            try:
                if not connection.recv(2**16):
                    break
            except TimeoutError:
                raise AcceptedError("The connection is still open.") from None
    return "(the connection was closed)"


@STRANGERS.add("refused: A connection ended before a party called over it")
def garbage_inside_tls(siege: Siege) -> str:
    """The attacker has a true certificate, so the handshake is done."""
    with frames.connected(siege.address, siege.made.folder / "certs" / "shop") as end:
        end.settimeout(20)
        end.sendall(frames.opening())
        time.sleep(0.2)
        end.sendall(os.urandom(20_000))
        return ended(end)


@STRANGERS.add("cut off: There are too many connections")
def many_connections_that_say_nothing(siege: Siege) -> str:
    host, _, port = siege.address.rpartition(":")
    return crowd(siege, lambda: socket.create_connection((host, int(port)), timeout=30))


@STRANGERS.add("cut off: There are too many connections")
def many_connections_that_stop_after_tls(siege: Siege) -> str:
    kit = siege.made.folder / "certs" / "shop"
    return crowd(siege, lambda: frames.connected(siege.address, kit))


@STRANGERS.add("cut off: A connection over which no party called was idle")
def a_connection_that_never_says_who_it_is(siege: Siege) -> str:
    host, _, port = siege.address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as idle:
        return ended(idle)


def crowd(siege: Siege, connect: object) -> str:
    """Open many connections and hold them; most are closed by the other side."""
    resource.setrlimit(
        resource.RLIMIT_NOFILE,
        (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2,
    )
    assert callable(connect)
    with contextlib.ExitStack() as stack:
        held: list[socket.socket] = []
        for _ in range(siege.crowd):
            with contextlib.suppress(OSError):
                held.append(stack.enter_context(connect()))
        time.sleep(1.0)
        left = sum(map(is_open, held))
        if left > 300:
            raise AcceptedError(f"{left} of {siege.crowd} connections are still open.")
    return f"({siege.crowd - left} of {siege.crowd} connections were closed)"


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
