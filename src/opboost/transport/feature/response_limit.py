"""A feature party's protection against answers that are too large for its memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from opboost.errors import PeerError
from opboost.transport.shared.open_connections import Address, connections, hang_up

POLL_SECONDS = 0.01
"""Seconds between two checks."""


class ResponseLimit:
    """Disconnects if a call receives more bytes than any answer may have.

    gRPC checks the size of a message only after receiving all of it.
    """

    def __init__(self, port: int, most: int) -> None:
        self._port, self._most = port, most

    @contextmanager
    def call(self) -> Iterator[None]:
        """Limit the size of the answer to the call in this block."""
        over, cut = threading.Event(), threading.Event()
        thread = threading.Thread(target=self._count, args=(over, cut), daemon=True)
        thread.start()
        try:
            yield
        except PeerError:
            if not cut.is_set():
                raise
        finally:
            over.set()
            thread.join()
        if cut.is_set():
            raise PeerError("The label party's answer is larger than allowed.")

    def _count(self, over: threading.Event, cut: threading.Event) -> None:
        before: dict[Address, int] | None = None
        while not over.wait(POLL_SECONDS):
            with suppress(OSError):
                there = list(self._received())
                before = dict(there) if before is None else before
                for address, received in there:
                    if received - before.get(address, 0) > self._most:
                        cut.set()
                        self._hang_up(address)

    def _received(self) -> Iterator[tuple[Address, int]]:
        for _, (received, _), end in connections(self._port, out=True):
            yield end.getsockname()[:2], received

    def _hang_up(self, address: Address) -> None:
        for _, _, end in connections(self._port, out=True):
            if end.getsockname()[:2] == address:
                hang_up(end)
