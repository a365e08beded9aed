"""A relay on loopback that counts what really goes over a connection, TLS and all."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class Relay:
    """Listens on a free port and hands bytes on to ``address``, counting both ways."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._target = host, int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.up = self.down = 0

    def __enter__(self) -> Relay:
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
        try:
            while data := source.recv(1 << 16):
                if upwards:
                    self.up += len(data)
                else:
                    self.down += len(data)
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                end.close()
