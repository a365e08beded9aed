"""A feature party's connection to the label party: calls, streams, and readable errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.flight as flight

from opboost.errors import PeerError
from opboost.protocol.envelope import MAX_MESSAGE_BYTES
from opboost.protocol.messages import Challenge, Hello, Login, Welcome, decode, encode
from opboost.transport.feature.response_limit import ResponseLimit
from opboost.transport.shared.tls import CLAIMED, SESSION, Identity, as_pem, check_named

M = TypeVar("M")

_CHANNEL_OPTIONS = [
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 20_000),
    ("grpc.max_reconnect_backoff_ms", 1000),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES + 2**16),
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
]
"""How gRPC itself retries (by default it waits a second after the first refusal), and how large a
message it accepts.

The minimum backoff is also the time limit for connecting, which takes long on a slow line.  gRPC
checks after ten seconds of silence whether the other side still answers.  The label party holds a
poll for less than that, so only a dead connection fails the check, and is then replaced.
"""

_MIN_BYTES_PER_SECOND = 1_000
"""Bytes per second below which a connection that sends a column counts as broken."""


class Connection:
    """A feature party's connection to the label party; ``welcome`` is the answer to its hello."""

    welcome: Welcome

    def __init__(
        self,
        address: str,
        party: str,
        label_party: str,
        identity: Identity | None,
        timeout: float = 120.0,
    ) -> None:
        self.sent = 0
        self._timeout, self._address = timeout, address
        self._label_party, self._identity = label_party, identity
        port = address.rpartition(":")[2]
        self._meter = ResponseLimit(int(port) if port.isdigit() else 0, 2 * MAX_MESSAGE_BYTES)
        self._headers = [(CLAIMED.encode(), party.encode())]
        self._client = self._connected(identity.ca if identity else b"")

    def _connected(self, root: bytes) -> flight.FlightClient:
        """Return a client that trusts ``root`` and certificates from it, or one without TLS."""
        if self._identity is None:
            return flight.FlightClient(
                f"grpc+tcp://{self._address}", generic_options=_CHANNEL_OPTIONS
            )
        return flight.FlightClient(
            f"grpc+tls://{self._address}",
            tls_root_certs=root,
            cert_chain=self._identity.cert,
            private_key=self._identity.key,
            override_hostname=self._label_party,
            generic_options=_CHANNEL_OPTIONS,
        )

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def hello(self, hello: Hello) -> Welcome:
        """Authenticate the label party and this party; after that, calls may follow.

        TLS accepts any certificate of the authority that names the label party in any way.  So the
        first answer contains the label party's certificate, which must name no other party.  From
        then on TLS accepts only that certificate, and this party signs only over such a connection.
        """
        challenge = self.call("hello", hello, Challenge)
        login = Login(b"", b"")
        if self._identity is not None:
            known = check_named(challenge.certificate, self._label_party, self._identity.ca)
            self._client.close()
            self._client = self._connected(as_pem(known))  # without other certificates sent with it
            challenge = self.call("hello", hello, Challenge)
            login = self._identity.login(hello, self._label_party, challenge.nonce)
        self.welcome = self.call("login", login, Welcome)
        self._headers.append((SESSION.encode(), self.welcome.session.hex().encode()))
        return self.welcome

    def call(self, step: str, message: Any, *expected: type[M]) -> M:
        """Send a message and return its only answer."""
        data = encode(message)
        with self._meter.call(), as_sentences():
            options = flight.FlightCallOptions(timeout=self._timeout, headers=self._headers)
            answers = list(islice(self._client.do_action(flight.Action(step, data), options), 2))
        self.sent += len(data)
        if len(answers) != 1:
            raise PeerError("The label party gave no answer, or more than one.")
        return decode(answers[0].body.to_pybytes(), *expected)

    def put(self, job: str, number: int, file: Path, *, pilot: bool = False) -> None:
        """Send one column's stream."""
        path = flight.FlightDescriptor.for_path(job, str(number), *(["pilot"] if pilot else []))
        with (
            self._meter.call(),
            as_sentences(),
            pa.OSFile(str(file)) as source,
            pa.ipc.open_stream(source) as stream,
        ):
            patience = max(self._timeout, file.stat().st_size / _MIN_BYTES_PER_SECOND)
            options = flight.FlightCallOptions(timeout=patience, headers=self._headers)
            writer, _ = self._client.do_put(path, stream.schema, options)
            try:
                for batch in stream:
                    writer.write_batch(batch)
                writer.done_writing()
            finally:
                writer.close()
        self.sent += file.stat().st_size


@contextmanager
def as_sentences() -> Iterator[None]:
    """Turn an error of the transport into one sentence."""
    try:
        yield
    except flight.FlightUnauthenticatedError as error:
        raise LoggedOut(_words(error)) from None
    except flight.FlightTimedOutError as error:
        raise Unreachable(f"it did not answer in time ({_words(error)})") from None
    except (
        flight.FlightCancelledError
    ):  # a server that stops during a call; a refusal is another error
        raise Unreachable("it ended the call before it answered") from None
    except flight.FlightUnavailableError as error:
        words = _words(error)
        if "handshake failed" in words.lower() or "certificate" in words.lower():
            raise PeerError(
                f"TLS with the label party failed: {words}. Its certificate must be signed by the "
                "authority in this party's ca.pem and name the job's label_party."
            ) from None
        if "Socket closed" in words:
            words = (
                "it hung up. If it keeps doing so, it does not accept this party's certificate: "
                "its authority must have signed it, and it must be valid today"
            )
        raise Unreachable(words) from None
    except flight.FlightError as error:
        raise PeerError(f"The label party refused: {_words(error)}") from None
    except pa.ArrowException as error:
        raise Unreachable(_words(error).split(" (", 1)[0]) from None


class Unreachable(PeerError):
    """The label party cannot be reached, or the connection broke; a retry may succeed."""


class LoggedOut(Unreachable):
    """The label party's server was restarted and does not know this party's session."""


def _words(error: BaseException) -> str:
    text = str(error).split("\n", 1)[0]
    for mark in (". Detail:", ". gRPC client debug context", " gRPC client debug"):
        text = text.split(mark, 1)[0]
    for kind in ("unavailable", "unauthenticated"):
        text = text.replace(f"Flight returned {kind} error, with message: ", "")
    text = text.replace("Flight error: ", "")
    return "".join(c if c.isprintable() else " " for c in text[:400])
