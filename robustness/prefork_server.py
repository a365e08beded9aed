"""Start parties as real processes quickly, by forking a process that has loaded the program.

A party needs seconds to load, but only tenths of a second for a small job.  So a server process
loads everything once.  Each party is a fork of it, with its own files and sockets, and runs a
whole command.
"""

import atexit
import importlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")


def waited(there: Callable[[], T], seconds: float, pause: float = 0.05) -> T:
    """Poll until the answer is true or time runs out; return the last answer."""
    end = time.monotonic() + seconds
    while not (found := there()) and time.monotonic() < end:
        time.sleep(pause)
    return found


class Process:
    """A party's process, with methods of ``subprocess.Popen``."""

    def __init__(self, pid: int, status: Path) -> None:
        self.pid, self._status = pid, status
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if self.returncode is None and self._status.exists():
            self.returncode = int(self._status.read_text())
            self._status.unlink()  # a later process may get the same ID
        return self.returncode

    def wait(self, timeout: float) -> int:
        waited(lambda: self.poll() is not None, timeout, 0.001)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("party", timeout)
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class PreforkServer:
    """The process that has loaded everything, and the folder to which it writes exit statuses."""

    def __init__(self, loaded: str = "robustness.preloaded") -> None:
        self._statuses = Path(tempfile.mkdtemp(prefix="opboost-statuses-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "robustness.prefork_server", loaded, str(self._statuses)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "COLUMNS": "80"},
            cwd=Path(__file__).parent.parent,
        )
        self._alone = threading.Lock()
        atexit.register(shutil.rmtree, self._statuses, ignore_errors=True)
        atexit.register(self._process.kill)

    def start(
        self,
        command: Sequence[str],
        said: Path,
        folder: Path | None = None,
        data: Path | None = None,
        absent: Sequence[str] = (),
    ) -> Process:
        """Run a command line, and append its messages and its output to files.

        Packages that are ``absent`` cannot be imported, as if they were not installed.
        """
        order = {
            "arguments": list(command),
            "said": str(said),
            "folder": str(folder or ""),
            "data": str(data or os.devnull),
            "absent": list(absent),
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._alone:
            self._process.stdin.write(json.dumps(order) + "\n")
            self._process.stdin.flush()
            pid = self._process.stdout.readline()
        if not pid:
            raise RuntimeError("No process was started.")
        return Process(int(pid), self._statuses / pid.strip())


@lru_cache(maxsize=1)
def prefork_server() -> PreforkServer:
    """Return the only server of this process."""
    return PreforkServer()


def _become(order: dict[str, Any]) -> None:
    """Run the command line in a child."""
    loaded = sys.modules.keys() & order["absent"]
    assert not loaded, f"loaded before they could be made absent: {loaded}"
    sys.modules.update(dict.fromkeys(order["absent"]))
    from opboost.budgets.release_counts import begin_anew
    from opboost.cli import main

    begin_anew()
    os.dup2(os.open(os.devnull, os.O_RDWR), 0)
    for number, name in ((1, "data"), (2, "said")):
        os.dup2(os.open(order[name], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644), number)
    if order["folder"]:
        os.chdir(order["folder"])
    sys.argv = ["opboost", *order["arguments"]]
    status = 1
    try:
        main()
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _note_ended(statuses: Path, *_: object) -> None:
    """Write the exit status of every ended child to a file named after its process ID."""
    with suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            part = statuses / f"{ended[0]}.part"
            part.write_text(str(os.waitstatus_to_exitcode(ended[1])))
            part.rename(part.with_suffix(""))


def _run(loaded: str, statuses: str) -> None:
    """Fork for every request that arrives."""
    importlib.import_module(loaded)
    signal.signal(signal.SIGCHLD, partial(_note_ended, Path(statuses)))
    while line := sys.stdin.readline():
        pid = os.fork()
        if not pid:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            _become(json.loads(line))
        print(pid, flush=True)


if __name__ == "__main__":
    _run(*sys.argv[1:])
