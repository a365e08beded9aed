"""The label server's process, which starts at once and opens its port when the job is known."""

from __future__ import annotations

import errno
import json
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from opboost.errors import PeerError
from opboost.runtime.child_processes import python_command
from opboost.transport.shared.logs import LINES_PER_MINUTE, Log

STACK_BYTES = 2**19
"""Bytes of each thread's stack in the label server, which has a thread per call."""

_HANDSHAKE = re.compile(r"Handshake failed with .*?error:[0-9A-F]+:[^:]*:[^:]*:(.*)")

DISK_FULL_STATUS = 28
"""The exit status of the label server when the disk is full."""


MAX_STARTS = 10
"""How often the label server may die before it has opened; then the label party gives up."""


class _DiedAtOnce(PeerError):
    """The label server's process ended before it had opened."""


class LabelServerProcess:
    """The label server's process, restarted if it dies.  It loads while the table is read."""

    def __init__(self) -> None:
        self._setting: dict[str, object] = {}
        self._log: Log | None = None
        self._ended = threading.Event()
        self._process = self._started()

    def __enter__(self) -> LabelServerProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _started(self) -> subprocess.Popen[str]:
        environment = {
            **os.environ,
            # Arrow's own allocator maps memory that it does not use, which the limit would count.
            "ARROW_DEFAULT_MEMORY_POOL": "system",
            # The memory of a large message is returned to the system at once.
            "MALLOC_ARENA_MAX": "2",
            "MALLOC_MMAP_THRESHOLD_": "1048576",
            "MALLOC_TRIM_THRESHOLD_": "1048576",
            "PYTHONWARNINGS": "",
            "GRPC_VERBOSITY": "INFO",  # failed handshakes are reported only here
        }
        with _small_stacks():
            return subprocess.Popen(
                python_command("-m", "opboost.transport.label.label_server"),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                text=True,
                errors="replace",
            )

    def open(self, setting: dict[str, object]) -> str:
        """Open the server and return its address; ``setting`` is a ``flight_server.Setting``."""
        self._setting = dict(setting)
        job = Path(str(setting["job"]))
        self._log = Log(job / "label.jsonl")
        self._refused = Log(job / "gate.jsonl", a_minute=LINES_PER_MINUTE)
        address = self._opened()
        threading.Thread(target=self._keep, daemon=True).start()
        return address

    def _opened(self) -> str:
        """Open the server, and restart it if it was killed before it had opened."""
        for _ in range(MAX_STARTS - 1):
            with suppress(_DiedAtOnce):
                return self._say()
            self._tell(self._process.poll())
            self._close()
            self._process = self._started()
        return self._say()

    def _say(self) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        listen = self._setting["listen"]
        try:
            self._process.stdin.write(json.dumps(self._setting) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except OSError:
            line = ""
        if not line:
            raise _DiedAtOnce(f"{listen} cannot be served: the process for it ended at once.")
        said = json.loads(line)
        if "error" in said and _is_taken(str(listen)):
            host, _, port = str(listen).rpartition(":")
            raise PeerError(
                f"Port {port} of {host} is in use: another process listens there, perhaps another "
                "opboost serve. End it, or write another port as listen under [party], and tell "
                "the feature parties, which name it as connect."
            )
        if "error" in said:
            raise PeerError(f"{listen} cannot be served: {said['error']}.")
        threading.Thread(target=self._listen, args=(self._process.stderr,), daemon=True).start()
        host = str(listen).rpartition(":")[0]
        self._setting["listen"] = f"{host}:{said['port']}"
        return str(self._setting["listen"])

    def check(self) -> None:
        """Raise an error if the server stopped because the disk is full."""
        if self._process.poll() == DISK_FULL_STATUS:
            inside = Path(str(self._setting["job"])) / "parties"
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(inside))

    def _keep(self) -> None:
        """Restart the server whenever it dies, more slowly if it dies often."""
        deaths: list[float] = []
        while not self._ended.wait(0.1):
            code = self._process.poll()
            if code is None or code == DISK_FULL_STATUS:
                continue
            now = time.monotonic()
            deaths = [d for d in deaths if now - d < 60] + [now]
            self._tell(code, deaths_in_a_minute=len(deaths))
            if self._ended.wait(min(5.0, 0.1 * 2 ** (len(deaths) - 1))):
                return
            self._close()
            self._process = self._started()
            with suppress(PeerError, OSError):
                self._say()

    def _listen(self, said: IO[str]) -> None:
        """Log failed handshakes, which gRPC reports only on standard error."""
        with suppress(ValueError):  # closed
            for line in said:
                found = _HANDSHAKE.search(line)
                if found:
                    why = f"A TLS handshake failed: {found[1].strip()[:100]}."
                    self._refused.write("refused", party="?", step="tls", why=why)

    def stop(self) -> None:
        """Stop the server; if it was killed just before, log that, too."""
        self._ended.set()
        self._close()
        if self._process.returncode not in (0, DISK_FULL_STATUS):
            self._tell(self._process.returncode)

    def _tell(self, status: int | None, **more: int) -> None:
        if self._log is not None:
            self._log.write("gate died", status=status, **more)

    def _close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()


def _is_taken(address: str) -> bool:
    """Return whether another process listens on an address."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        family, _, _, _, place = found[0]
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # ignore one that ended
            probe.bind(place)
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False


@contextmanager
def _small_stacks() -> Iterator[None]:
    """Give small thread stacks to a process that is started in this context."""
    try:
        import resource
    except ImportError:
        yield
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    known = [limit for limit in (soft, hard, STACK_BYTES) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_STACK, (min(known), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (soft, hard))
