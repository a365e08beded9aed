"""A relay on loopback that counts, and on request keeps, what really goes over a connection."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType


class CountingProxy:
    """Listens on a free port and hands bytes on to ``address``, counting both ways.

    With ``keep`` the bytes themselves are in ``kept``, one stream a connection and direction.
    """

    def __init__(self, address: str, *, keep: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self._target = host, int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.up = self.down = 0
        self.kept: list[bytearray] = []
        self._keep = keep

    def __enter__(self) -> CountingProxy:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:  # closed
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # nobody there yet: the caller will try again
                near.close()
                continue
            for source, sink, upwards in ((near, far, True), (far, near, False)):
                threading.Thread(
                    target=self._carry, args=(source, sink, upwards), daemon=True
                ).start()

    def _carry(self, source: socket.socket, sink: socket.socket, upwards: bool) -> None:
        stream = bytearray()
        if self._keep:
            self.kept.append(stream)
        try:
            while data := source.recv(1 << 16):
                if self._keep:
                    stream += data
                if upwards:
                    self.up += len(data)
                else:
                    self.down += len(data)
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                with suppress(OSError):  # closed by the other direction
                    end.shutdown(socket.SHUT_RDWR)  # wakes whoever still reads from it
                end.close()
