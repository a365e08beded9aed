"""Hand-made HTTP/2 frames that no well-behaved client would send."""

import socket
import ssl
import struct
from pathlib import Path

from opboost.transport.shared.tls import SESSION

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, SETTINGS = 0, 1, 4
END_STREAM, END_HEADERS = 1, 4
WINDOW = 4
"""The setting for how many bytes of an answer may be sent before they are acknowledged."""


def connected(address: str, kit: Path, *, buffer: int | None = None) -> ssl.SSLSocket:
    """Return an unused TLS connection with a party's certificate."""
    context = ssl.create_default_context(cafile=str(kit / "ca.pem"))
    context.check_hostname = False
    context.load_cert_chain(kit / "cert.pem", kit / "key.pem")
    context.set_alpn_protocols(["h2"])
    host, _, port = address.rpartition(":")
    plain = socket.socket()
    if buffer:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    plain.settimeout(10)
    plain.connect((host, int(port)))
    return context.wrap_socket(plain)


def frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big")
    return head + payload


def opening(window: int = 65_535) -> bytes:
    """Return a client's first bytes; with a window of 0 no answer may be sent."""
    return PREFACE + frame(SETTINGS, 0, 0, struct.pack(">HI", WINDOW, window))


def headers(stream: int, method: str, session: str = "") -> bytes:
    """Return the headers that begin a call."""
    fields = {
        ":method": "POST",
        ":scheme": "https",
        ":path": f"/arrow.flight.protocol.FlightService/{method}",
        ":authority": "bank",
        "te": "trailers",
        "content-type": "application/grpc",
        **({SESSION: session} if session else {}),
    }
    block = b"".join(b"\0" + _text(name) + _text(value) for name, value in fields.items())
    return frame(HEADERS, END_HEADERS, stream, block)


def action(stream: int, kind: str, body: bytes, session: str = "") -> bytes:
    """Return a complete Flight action."""
    message = b"\x0a" + _sized(kind.encode()) + b"\x12" + _sized(body)
    data = b"\0" + struct.pack(">I", len(message)) + message
    return headers(stream, "DoAction", session) + frame(DATA, END_STREAM, stream, data)


def _text(words: str) -> bytes:
    assert len(words) < 127
    return bytes([len(words)]) + words.encode()


def _sized(data: bytes) -> bytes:
    size, out = len(data), b""
    while size > 127:
        out += bytes([size & 127 | 128])
        size >>= 7
    return out + bytes([size]) + data
