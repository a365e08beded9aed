"""Fair scheduling of CPU work: the party that has used the least goes first."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class FairTurns:
    """A scheduler that grants a few turns at a time; the waiting party with least work goes first.

    Work counts even if its result is refused, so a party that sends refused data falls behind the
    others.  A party waits only for work on data that has arrived, never for another party's
    network.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._lock = threading.Lock()
        self._work: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    @contextmanager
    def turn(self, party: str, work: int) -> Iterator[None]:
        """Wait for a turn for this party; the turn adds ``work`` to what the party has used."""
        asked = _Waiting(party, work, threading.Event())
        with self._lock:
            self._waiting.append(asked)
            self._grant()
        asked.granted.wait()
        try:
            yield
        finally:
            with self._lock:
                self._free += 1
                self._grant()

    def _grant(self) -> None:
        """Grant the free turns; of parties with equal work, the longest waiting goes first."""
        while self._free and self._waiting:
            following = min(self._waiting, key=lambda asked: self._work[asked.party])
            self._waiting.remove(following)
            self._work[following.party] += following.work
            self._free -= 1
            following.granted.set()


class _Waiting(NamedTuple):
    """A requested turn."""

    party: str
    work: int
    granted: threading.Event
