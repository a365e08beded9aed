"""Turns at the processor: the party that has had the least of it goes first."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple


class FairTurns:
    """Grants a few turns at a time; of the parties that wait, the one with the least work is next.

    Work counts whether or not it came to anything, so a party that sends what is refused goes
    behind the others.  A party waits for what others have brought already, never for their network.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._lock = threading.Lock()
        self._work: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    @contextmanager
    def turn(self, party: str, work: int) -> Iterator[None]:
        """Wait for a turn of this party, which counts as ``work``."""
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
        """Give free turns away; of two parties with as much work, to the one that waits longer."""
        while self._free and self._waiting:
            following = min(self._waiting, key=lambda asked: self._work[asked.party])
            self._waiting.remove(following)
            self._work[following.party] += following.work
            self._free -= 1
            following.granted.set()


class _Waiting(NamedTuple):
    """A turn that was asked for."""

    party: str
    work: int
    granted: threading.Event
