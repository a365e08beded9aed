"""Keeps the gate's door: connections that bring too much, or only stand there, are cut off.

Arrow Flight takes in a message of any size before it shows it, and as many connections as come; it
cannot be told otherwise from Python.  The kernel knows what came over each connection, and the gate
what its calls have taken, so what is held in between is known too.  Where it passes the limit, the
connection that holds most of it ends.  Systems without ``/proc`` are told that nothing is watched.
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
    "Let it listen where only the feature parties reach it."
)
"""What a user reads where nothing is watched, as on macOS and Windows."""

POLL_SECONDS = 0.01
"""Seconds between two looks."""

MAX_CONNECTIONS = 256
"""Connections in all; the oldest that no party has used yet go first."""

MAX_CONNECTIONS_PER_ADDRESS = 16
"""Connections of one party; its oldest go first."""

IDLE, UNNAMED = 10.0, 120.0
"""Seconds that a connection may stay without a party's call: with nothing coming in, and at all."""

SPARE_CONNECTIONS = 32
"""Threads that there may be besides one a call."""

OVERHEAD, PER_CALL = 1.05, 512
"""What TLS and HTTP/2 add, at most about: to each byte, and to each message."""


@dataclass(slots=True)
class _Known:
    """A connection: since when, what came, what calls have taken of it, and whose it is."""

    since: float
    party: str = ""
    received: int = 0
    quiet: float = 0.0
    taken: float = 0.0
    calls: int = 0
    cut: bool = False

    @property
    def held(self) -> float:
        """Bytes that came and that no call has been given."""
        return max(0.0, self.received - self.taken)

    @property
    def nameless(self) -> bool:
        """Whether something came over it, and no party's call; and nothing was done about it."""
        return bool(self.received) and not self.party and not self.cut


REASONS = {
    "crowd": "There are too many connections.",
    "idle": "A connection over which no party called was idle for too long.",
    "connections": f"The party has more than {MAX_CONNECTIONS_PER_ADDRESS} connections.",
    "calls": "Calls were begun and not gone on with.",
    "size": "A message is larger than any that a party sends.",
}
"""Why a connection is cut off."""


class ConnectionLimits:
    """Watches the connections to a port of this process."""

    def __init__(self, log: Log, *, held: int, calls: int) -> None:
        self._log, self._most_held, self._most_calls = log, held, calls
        self._threads, self._pardoned = 0, 0.0
        self._lock = threading.Lock()
        self._known: dict[Address, _Known] = {}
        self._stopped = threading.Event()

    def watch(self, port: int) -> None:
        """Begin, in a thread of its own; where the system shows no connections, say so instead."""
        if not can_watch():
            self._log.write("not limited", why=NOT_LIMITED)
            return
        self._threads = _threads() + SPARE_CONNECTIONS + self._most_calls
        threading.Thread(target=self._watch, args=(port,), daemon=True).start()

    def stop(self) -> None:
        """Watch no longer; the thread ends within ``POLL_SECONDS``."""
        self._stopped.set()

    def named(self, peer: str, party: str) -> None:
        """A call of this party came over the connection that gRPC names so."""
        with self._lock:
            known = self._of(address_of(peer))
            known.party, known.calls = party, known.calls + 1

    def ended(self, peer: str) -> None:
        """Such a call has ended."""
        with self._lock:
            self._of(address_of(peer)).calls -= 1

    def took(self, peer: str, size: int) -> None:
        """A call was given a message of this size."""
        with self._lock:
            self._of(address_of(peer)).taken += size * OVERHEAD + PER_CALL

    def _of(self, address: Address) -> _Known:
        return self._known.setdefault(address, _Known(time.monotonic()))

    def _watch(self, port: int) -> None:
        while not self._stopped.wait(POLL_SECONDS):
            with suppress(OSError):  # a descriptor that is gone meanwhile, or none left
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
            why = "A connection ended before a party called over it."
            about = {"party": "?", "step": "connect", "host": host, "connections": count}
            self._log.write("refused", **about, why=why)
        if condemned:
            self._cut(port, condemned)

    def _condemned(self) -> Iterator[tuple[Address, str]]:
        """The connections that are to go, and the reason."""
        now = time.monotonic()
        there = {a: k for a, k in self._known.items() if not k.cut}
        oldest_first = sorted(there.items(), key=lambda item: item[1].since)
        unnamed = [(a, k) for a, k in oldest_first if not k.party]
        surplus = len(there) - MAX_CONNECTIONS
        for n, (address, known) in enumerate(unnamed):
            if n < surplus:
                yield address, "crowd"
            elif min(known.quiet, now - known.since) > IDLE or now - known.since > UNNAMED:
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
        """Who begins calls and never says which hides them from the gate, but not their threads.

        Of the connections without a call that the gate knows, the one that holds most goes first;
        the next only when the threads of the last have had time to end.
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
    """How many threads this process has; 0 where that is not told."""
    try:
        return len(os.listdir("/proc/self/task"))
    except FileNotFoundError:
        return 0
