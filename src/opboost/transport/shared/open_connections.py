"""This process's connections and how much each received; needs ``/proc``."""

from __future__ import annotations

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_RECEIVED, _LAST = 128, 52
"""Offsets in Linux's ``struct tcp_info``: bytes received, and milliseconds since the last."""

Address = tuple[str, int]

DESCRIPTORS = Path("/proc/self/fd")
"""Where Linux lists the open files of this process."""


def can_watch() -> bool:
    """Return whether this system shows a process's connections and how much each received."""
    return DESCRIPTORS.is_dir() and hasattr(socket, "TCP_INFO")


def connections(
    port: int, *, out: bool = False
) -> Iterator[tuple[Address, tuple[int, float], socket.socket]]:
    """Yield this process's connections to its own port, or with ``out`` to a peer's port.

    Each is the peer's address, (bytes received, seconds since the last byte), and a socket that is
    closed when the next connection is requested.
    """
    if not can_watch():
        return
    for number in map(int, os.listdir(DESCRIPTORS)):
        try:
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            end = socket.socket(fileno=os.dup(number))
        except OSError:
            continue
        with end:
            try:
                host, peer = end.getpeername()[:2]
                if (peer if out else end.getsockname()[1]) != port:
                    continue
                info = end.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
            except (OSError, IndexError, TypeError, ValueError):  # a socket of another family
                continue
            if len(info) >= _RECEIVED + 8:
                (received,) = struct.unpack_from("=Q", info, _RECEIVED)
                (quiet,) = struct.unpack_from("=I", info, _LAST)
                yield (_plain(host), peer), (received, quiet / 1000), end


def hang_up(end: socket.socket) -> None:
    """Shut a connection down, even if other descriptors of it are open."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


def address_of(peer: str) -> Address:
    """Return the address of a peer from gRPC's name for it.

    >>> address_of("ipv4:127.0.0.1:5000"), address_of("ipv6:%5B::1%5D:5000")
    (('127.0.0.1', 5000), ('::1', 5000))
    """
    host, _, port = peer.partition(":")[2].replace("%5B", "[").replace("%5D", "]").rpartition(":")
    return _plain(host.strip("[]")), int(port) if port.isdigit() else 0


def _plain(host: str) -> str:
    return host.removeprefix("::ffff:").split("%")[0]
