"""Connections that are cut, that go silent without being closed, and that are slow.

Each feature party reaches the label party through a proxy that causes the fault.  No party is
restarted, so the parties themselves have to notice the fault and continue.
"""

import random
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from itertools import chain

from opboost_lab.counting_proxy import CountingProxy
from robustness.faults.faults_harness import PARTIES, staged
from robustness.tally import Tally

ENOUGH = 30_000
"""The fault occurs within this many bytes, which is about what a party exchanges in a job."""


class Fate:
    """The fault of one connection: it ends or goes silent after some bytes, or it is slow."""

    def __init__(self, after: int | None = None, silent: bool = False, pace: float = 0.0) -> None:
        self._left, self.silent, self.pace = after, silent, pace
        self._lock, self.fallen = threading.Lock(), False

    def passed(self, data: bytes) -> bytes:
        """Return the part of the next bytes that gets through; the fault occurs if some do not."""
        with self._lock:
            passed = data[: self._left]
            if self._left is not None:
                self._left -= len(passed)
            self.fallen |= passed != data
            return passed


class Link(CountingProxy):
    """A proxy on loopback; ``fate`` returns the fault of each connection in turn."""

    def __init__(self, address: str, fate: Callable[[], Fate]) -> None:
        super().__init__(address)
        self._fate = fate
        self.fates: dict[socket.socket, Fate] = {}

    def __exit__(self, *error: object) -> None:
        """End every connection, including silent ones."""
        super().__exit__()
        _shut(*self.fates)

    def connected(self, near: socket.socket, far: socket.socket) -> None:
        self.fates[near] = self.fates[far] = self._fate()
        super().connected(near, far)

    def _carry(self, source: socket.socket, sink: socket.socket, upwards: bool) -> None:
        fate = self.fates[source]
        with source:
            with suppress(OSError):
                while data := source.recv(1 << 16):
                    if fate.pace:
                        time.sleep(len(data) / fate.pace)
                    sink.sendall(fate.passed(data))
                    if fate.fallen:
                        break
                while fate.fallen and fate.silent and source.recv(1 << 16):
                    pass  # received, acknowledged, never forwarded
            if not (fate.fallen and fate.silent):
                _shut(source, sink)


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def cut(count: int, seed: int, *, a_link: int = 4) -> Tally:
    """End connections at a random byte, several per party and job."""
    return _harmed("cut connection", count, seed, a_link, silent=False)


def half_open(count: int, seed: int) -> Tally:
    """Silence connections at a random byte without closing them, one per party and job."""
    return _harmed("half-open connection", count, seed, 1, silent=True)


def _harmed(kind: str, count: int, seed: int, a_link: int, *, silent: bool) -> Tally:
    rng = random.Random(f"{kind} {seed}")
    tally = Tally(kind)
    for _ in range(4 * count):
        if tally.tried >= count:
            break
        places = {p: [rng.randrange(1, ENOUGH) for _ in range(a_link)] for p in PARTIES}
        fates = {p: chain([Fate(n, silent) for n in places[p]], iter(Fate, None)) for p in PARTIES}
        tally = tally.after(f"after {places} bytes", *_job(fates))
    return tally


def slow(count: int, seed: int) -> Tally:
    """Run jobs whose parties exchange only 5 to 50 kB per second."""
    rng = random.Random(f"slow {seed}")
    tally = Tally("slow peer")
    for _ in range(count):
        pace = {p: rng.uniform(5e3, 5e4) for p in PARTIES}
        fates = {p: iter(partial(Fate, pace=pace[p]), None) for p in PARTIES}
        tally = tally.after(f"at {pace} bytes per second", 1, _job(fates)[1])
    return tally


def _job(fates: dict[str, Iterator[Fate]]) -> tuple[int, list[str]]:
    """Run a job over links with these fates; return how many faults occurred, and complaints."""
    with staged() as harness, ExitStack() as stack:
        links = {
            party: stack.enter_context(Link(harness.address, fate.__next__))
            for party, fate in fates.items()
        }
        harness.where = {party: link.address for party, link in links.items()}
        harness.be_patient()
        harness.start_all()
        complaints = harness.finished(180) or harness.complaints()
        harmed = {fate for link in links.values() for fate in link.fates.values() if fate.fallen}
        return len(harmed), complaints
