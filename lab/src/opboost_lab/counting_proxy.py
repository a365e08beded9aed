"""A proxy on loopback that counts the bytes of a connection, and can keep them."""

import socket
import threading
from contextlib import suppress
from typing import Self


class CountingProxy:
    """A proxy on a free port that forwards bytes to ``address`` and back, and counts them.

    With ``keep``, ``sent`` and ``received`` hold the bytes, one stream per connection.
    """

    def __init__(self, address: str, *, keep: bool = False) -> None:
        host, _, port = address.rpartition(":")
        self._target = host, int(port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._server.getsockname()[1]}"
        self.up = self.down = 0
        self.sent: list[bytearray] = []
        self.received: list[bytearray] = []
        self._keep = keep

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:  # closed
                return
            try:
                far = socket.create_connection(self._target)
            except OSError:  # nothing listens there yet; the caller will retry
                near.close()
                continue
            self.connected(near, far)

    def connected(self, near: socket.socket, far: socket.socket) -> None:
        """Forward bytes in both directions of a new connection."""
        for end in (near, far):  # as gRPC does; otherwise small messages wait 40 ms for an ACK
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink, upwards in ((near, far, True), (far, near, False)):
            ends = (source, sink, upwards)
            threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, upwards: bool) -> None:
        stream = bytearray()
        if self._keep:
            (self.sent if upwards else self.received).append(stream)
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
                with suppress(OSError):  # the other direction closed it
                    end.shutdown(socket.SHUT_RDWR)  # wakes a thread that still reads
                end.close()
