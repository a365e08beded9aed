"""Parties as real processes that start at once: forked from one that has loaded the program.

Loading takes a party seconds and its work on a small job tenths of one.  A process that has loaded
everything and done nothing waits for commands, and each party is a fork of it: a process of its
own, with files and sockets of its own, that runs the command line from its first argument on.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any


class Process:
    """A party's process, spoken of as ``subprocess.Popen`` does."""

    def __init__(self, pid: int, ended: dict[int, int]) -> None:
        self.pid, self._ended = pid, ended
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self.pid in self._ended:
            self.returncode = self._ended.pop(self.pid)
        return self.returncode

    def wait(self, timeout: float) -> int:
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("party", timeout)
            time.sleep(0.001)
        assert self.returncode is not None
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class PreforkServer:
    """The process that has loaded everything, and what it tells of its children."""

    def __init__(self, loaded: str = "robustness.preloaded") -> None:
        command = [sys.executable, "-m", "robustness.prefork_server", loaded]
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "COLUMNS": "80"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=Path(__file__).parent.parent,
        )
        self._ended: dict[int, int] = {}
        self._started: list[int] = []
        self._news = threading.Condition()
        threading.Thread(target=self._listen, daemon=True).start()
        atexit.register(self._process.kill)

    def start(
        self,
        command: Sequence[str],
        said: Path,
        folder: Path | None = None,
        data: Path | None = None,
        absent: Sequence[str] = (),
    ) -> Process:
        """Run the command line; its words, and where it is given its data, are added to files.

        Packages that are ``absent`` cannot be imported, as if they were not installed.
        """
        assert self._process.stdin is not None
        with self._news:
            order = {
                "arguments": list(command),
                "said": str(said),
                "folder": str(folder or ""),
                "data": str(data or os.devnull),
                "absent": list(absent),
            }
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            if not self._news.wait_for(lambda: self._started, 60):
                raise RuntimeError("No process was started.")
            return Process(self._started.pop(), self._ended)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            news = json.loads(line)
            with self._news:
                if "status" in news:
                    self._ended[news["pid"]] = news["status"]
                else:
                    self._started.append(news["pid"])
                self._news.notify_all()


@lru_cache(maxsize=1)
def prefork_server() -> PreforkServer:
    """The one of this process."""
    return PreforkServer()


def _tell(news: dict[str, int]) -> None:
    os.write(1, (json.dumps(news) + "\n").encode())


def _become(order: dict[str, Any]) -> None:
    """The command line, in a child."""
    loaded = sys.modules.keys() & order["absent"]
    assert not loaded, f"loaded before they could be made absent: {loaded}"
    sys.modules.update(dict.fromkeys(order["absent"]))
    from opboost.budgets.release_counts import begin_anew
    from opboost.cli import main

    begin_anew()
    null = os.open(os.devnull, os.O_RDWR)
    data, said = (
        os.open(str(order[name]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for name in ("data", "said")
    )
    for number, handle in ((0, null), (1, data), (2, said)):
        os.dup2(handle, number)
    if order["folder"]:
        os.chdir(str(order["folder"]))
    sys.argv = ["opboost", *order["arguments"]]
    status = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _run(loaded: str) -> None:
    """Fork for every line that comes in, and tell of every child that ends."""
    importlib.import_module(loaded)
    while True:
        ready, _, _ = select.select([0], [], [], 0.002)
        if ready:
            line = sys.stdin.buffer.raw.readline()  # type: ignore[union-attr]
            if not line:
                return
            pid = os.fork()
            if not pid:
                _become(json.loads(line))
            _tell({"pid": pid})
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if not pid:
                break
            _tell({"pid": pid, "status": os.waitstatus_to_exitcode(status)})


if __name__ == "__main__":
    _run(sys.argv[1])
