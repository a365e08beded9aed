"""Limit the label server's connections: close those that are idle or hold too much memory.

Arrow Flight receives a whole message, whatever its size, before the server sees it, and accepts any
number of connections.  Neither can be limited from Python.  The kernel knows how many bytes arrived
over each connection, and the label server knows how many its calls have read.  The difference is
what Flight holds in memory.  If the total exceeds the limit, the connection with the largest
difference is closed.  On systems without ``/proc`` connections are not watched, and a message says
so.
"""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from opboost.transport.shared.logs import Log
from opboost.transport.shared.open_connections import (
    Address,
    address_of,
    can_watch,
    connections,
    hang_up,
)

NOT_LIMITED = (
    "This system has no /proc, so the label server limits neither its connections nor its memory. "
    "Make it listen where only the feature parties can reach it."
)
"""The message on systems where connections are not watched, such as macOS and Windows."""

POLL_SECONDS = 0.01
"""Seconds between two checks of the connections."""

MAX_CONNECTIONS = 256
"""The most connections in all; beyond this, the oldest that no party has used are closed."""

MAX_CONNECTIONS_PER_ADDRESS = 16
"""The most connections of one party; beyond this, its oldest are closed."""

IDLE_SECONDS, UNNAMED_SECONDS = 10.0, 120.0
"""How long a connection over which no party has called may be idle, and may stay open."""

SPARE_CONNECTIONS = 32
"""Threads that the process may have besides one per call."""

OVERHEAD_FACTOR, OVERHEAD_BYTES = 1.05, 512
"""Roughly the most that TLS and HTTP/2 add: a factor per byte, and bytes per message."""


@dataclass(slots=True)
class _Known:
    """A connection: its age, the bytes that arrived and that calls have read, and its party."""

    since: float
    party: str = ""
    received: int = 0
    quiet: float = 0.0
    taken: float = 0.0
    calls: int = 0
    cut: bool = False

    @property
    def held(self) -> float:
        """The bytes that arrived and that no call has read."""
        return max(0.0, self.received - self.taken)

    @property
    def nameless(self) -> bool:
        """Whether the connection is open and has received bytes, but no party's call."""
        return bool(self.received) and not self.party and not self.cut


REASONS = {
    "crowd": "There are too many connections.",
    "idle": "A connection without any call was idle for too long.",
    "connections": f"The party has more than {MAX_CONNECTIONS_PER_ADDRESS} connections.",
    "calls": "Calls were opened without naming a method.",
    "size": "A message is larger than any that a party sends.",
}
"""The reasons for which a connection is closed."""


class ConnectionLimits:
    """Watches this process's connections to a port, and closes those that exceed the limits."""

    def __init__(self, log: Log, *, held: int, calls: int) -> None:
        self._log, self._most_held, self._most_calls = log, held, calls
        self._threads, self._pardoned = 0, 0.0
        self._lock = threading.Lock()
        self._known: dict[Address, _Known] = {}
        self._stopped = threading.Event()

    def watch(self, port: int) -> None:
        """Start watching in a thread; if the system shows no connections, log that instead."""
        if not can_watch():
            self._log.write("not limited", why=NOT_LIMITED)
            return
        self._threads = _threads() + SPARE_CONNECTIONS + self._most_calls
        threading.Thread(target=self._watch, args=(port,), daemon=True).start()

    def stop(self) -> None:
        """Stop watching; the thread ends within ``POLL_SECONDS``."""
        self._stopped.set()

    def named(self, peer: str, party: str) -> None:
        """Note that a call of this party arrived over the connection that gRPC calls ``peer``."""
        with self._lock:
            known = self._of(address_of(peer))
            known.party, known.calls = party, known.calls + 1

    def ended(self, peer: str) -> None:
        """Note that one of the calls noted by :meth:`named` has ended."""
        with self._lock:
            self._of(address_of(peer)).calls -= 1

    def took(self, peer: str, size: int) -> None:
        """Note that a call has read a message of this size."""
        with self._lock:
            self._of(address_of(peer)).taken += size * OVERHEAD_FACTOR + OVERHEAD_BYTES

    def _of(self, address: Address) -> _Known:
        return self._known.setdefault(address, _Known(time.monotonic()))

    def _watch(self, port: int) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            with suppress(OSError):  # a descriptor was closed, or the process has none left
                self._look(port)

    def _look(self, port: int) -> None:
        there = {address: info for address, info, _ in connections(port)}
        with self._lock:
            gone = [a for a, k in self._known.items() if a not in there and k.nameless]
            self._known = {a: self._of(a) for a in there}
            for address, (received, quiet) in there.items():
                known = self._known[address]
                known.received, known.quiet = received, quiet
                known.taken = min(known.taken, received)
            condemned = dict(self._condemned())
        for host, count in Counter(host for host, _ in gone).items():
            why = "A connection ended before any call."
            about = {"party": "?", "step": "connect", "host": host, "connections": count}
            self._log.write("refused", **about, why=why)
        if condemned:
            self._cut(port, condemned)

    def _condemned(self) -> Iterator[tuple[Address, str]]:
        """Yield the connections to close, with the reason."""
        now = time.monotonic()
        there = {a: k for a, k in self._known.items() if not k.cut}
        oldest_first = sorted(there.items(), key=lambda item: item[1].since)
        unnamed = [(a, k) for a, k in oldest_first if not k.party]
        surplus = len(there) - MAX_CONNECTIONS
        for n, (address, known) in enumerate(unnamed):
            if n < surplus:
                yield address, "crowd"
            elif (
                min(known.quiet, now - known.since) > IDLE_SECONDS
                or now - known.since > UNNAMED_SECONDS
            ):
                yield address, "idle"
        left = Counter(k.party for k in there.values() if k.party)
        for address, known in oldest_first:
            if known.party and left[known.party] > MAX_CONNECTIONS_PER_ADDRESS:
                left[known.party] -= 1
                yield address, "connections"
        yield from self._hoarders(there, now)
        held = sum(known.held for known in there.values())
        for address, known in sorted(there.items(), key=lambda item: -item[1].held):
            if held <= self._most_held:
                return
            held -= known.held
            yield address, "size"

    def _hoarders(self, there: dict[Address, _Known], now: float) -> Iterator[tuple[Address, str]]:
        """Yield a connection to close if calls without a method use too many threads.

        A client can open calls without naming a method.  The label server does not see such calls,
        but it can count their threads.  Of the connections without a known call, or of all if every
        one has a call, close the one that holds the most bytes.  Close the next one only after the
        threads of the previous one have had time to end.
        """
        if _threads() <= self._threads or now < self._pardoned:
            return
        self._pardoned = now + 0.2
        quiet = [item for item in there.items() if not item[1].calls]
        among = quiet or list(there.items())
        if among:
            address, _ = max(among, key=lambda item: item[1].held)
            yield address, "calls"

    def _cut(self, port: int, condemned: dict[Address, str]) -> None:
        parties = {address: self._known[address].party for address in condemned}
        for address in condemned:
            self._known[address].cut = True
        done: Counter[tuple[str, str, str]] = Counter()
        for address, _, end in connections(port):
            if address in condemned:
                hang_up(end)
                done[condemned[address], parties[address], address[0]] += 1
        for (reason, party, host), count in done.items():
            about = {"party": party or "?", "step": reason, "host": host, "connections": count}
            self._log.write("cut off", **about, why=REASONS[reason])


def _threads() -> int:
    """Return how many threads this process has; 0 if the system does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except FileNotFoundError:
        return 0
