"""Find the sockets that processes listen on, from ``/proc``."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from pathlib import Path

LISTENS = "0A"


@dataclass(frozen=True)
class Listener:
    """An address on which a process listens."""

    process: int
    address: str
    port: int


def family(process):
    """Return the IDs of a process and of all its descendants."""
    found = [process]
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:  # it has ended since
            continue
        for child in children:
            found += family(int(child))
    return found


def listeners(process):
    """Return all TCP sockets on which a process or one of its descendants listens."""
    sockets = {}
    for version in ("tcp", "tcp6"):
        table = Path(f"/proc/{process}/net/{version}")
        for line in table.read_text().splitlines()[1:] if table.exists() else ():
            fields = line.split()
            if fields[3] == LISTENS:
                address, _, port = fields[1].partition(":")
                sockets[f"socket:[{fields[9]}]"] = _address(address), int(port, 16)
    found = set()
    for member in family(process):
        for handle in Path(f"/proc/{member}/fd").glob("*"):
            try:
                name = str(handle.readlink())
            except OSError:  # it has been closed since
                continue
            if name in sockets:
                found.add(Listener(member, *sockets[name]))
    return found


def _address(digits):
    """Return the address of the kernel's notation: four-byte words in the machine's byte order."""
    words = [int(digits[i : i + 8], 16) for i in range(0, len(digits), 8)]
    data = struct.pack(f"={len(words)}I", *words)
    return socket.inet_ntop(socket.AF_INET if len(words) == 1 else socket.AF_INET6, data)
