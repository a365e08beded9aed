"""The gate as a process of the label party's: started at once, opened when the job is known."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from opboost.errors import PeerError
from opboost.service.logs import Log

DISK = 28
"""How the gate's process ends when the disk takes nothing more."""


class _DiedAtOnce(PeerError):
    """The gate's process ended before it was open."""


class GateProcess:
    """The gate's process; started again if it dies.  It loads while the table is read."""

    def __init__(self) -> None:
        self._setting: dict[str, object] = {}
        self._ended = threading.Event()
        self._process = self._started()

    def __enter__(self) -> GateProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def _started(self) -> subprocess.Popen[str]:
        # Arrow's own allocator maps more than it uses, which a memory limit would count.
        environment = {**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system", "PYTHONWARNINGS": ""}
        return subprocess.Popen(
            [sys.executable, "-m", "opboost.service.gate"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            text=True,
        )

    def open(self, setting: dict[str, object]) -> str:
        """Let parties in; returns the address.  ``setting`` is that of ``gate.Setting``."""
        self._setting = dict(setting)
        self._log = Log(Path(str(setting["job"])) / "label.jsonl")
        address = self._opened()
        threading.Thread(target=self._keep, daemon=True).start()
        return address

    def _opened(self) -> str:
        """Start it again, a few times, if it was killed before it was open."""
        for _ in range(3):
            with suppress(_DiedAtOnce):
                return self._say()
            self._log.write("gate died", status=self._process.poll())
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
        if "error" in said:
            raise PeerError(f"{listen} cannot be served: {said['error']}.")
        host = str(listen).rpartition(":")[0]
        self._setting["listen"] = f"{host}:{said['port']}"
        return str(self._setting["listen"])

    def check(self) -> None:
        """Raise if the gate stopped because what comes in cannot be stored."""
        if self._process.poll() == DISK:
            inside = Path(str(self._setting["job"])) / "parties"
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(inside))

    def _keep(self) -> None:
        """Start it again whenever it dies, more slowly if it dies often."""
        deaths: list[float] = []
        while not self._ended.wait(0.1):
            code = self._process.poll()
            if code is None or code == DISK:
                continue
            now = time.monotonic()
            deaths = [d for d in deaths if now - d < 60] + [now]
            self._log.write("gate died", status=code, deaths_in_a_minute=len(deaths))
            if self._ended.wait(min(5.0, 0.1 * 2 ** (len(deaths) - 1))):
                return
            self._close()
            self._process = self._started()
            with suppress(PeerError, OSError):
                self._say()

    def stop(self) -> None:
        """End it."""
        self._ended.set()
        self._close()

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
