"""Other libraries, each installed and run in its own environment, with a time limit.

Their dependencies conflict with each other and with ours, so they cannot share an environment.  A
peer that cannot be installed is reported as FAILED, with the reason.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from opboost.runtime.child_processes import python_command

SCRIPTS = resources.files("opboost_lab.bench") / "peer_scripts"


class PeerError(Exception):
    """A peer could not be installed, did not finish or gave no readable answer."""


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with: what to install, and the script that times it."""

    name: str
    requirements: tuple[str, ...]
    script: str
    version: str = ""
    """The version of Python that it needs, if not this one."""

    def timed(self, request: dict[str, Any], timeout: float = 900) -> PeerTime:
        """Return the CPU seconds of each repeat, or why there are none."""
        try:
            python = self.environment()
            command = [str(python), str(SCRIPTS / self.script)]
            answer = answered(command, request, timeout, python.parent)
        except PeerError as error:
            return PeerTime(self.name, problem=str(error))
        return PeerTime(self.name, answer["version"], answer["seconds"], answer["values"])

    def environment(self, limit: float | None = None) -> Path:
        """Return the peer's own interpreter; installing its packages may take ``limit`` seconds."""
        home = _cache() / self.name
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        ready = home / "ready"
        wanted = "\n".join(self.requirements)
        if ready.exists() and ready.read_text() == wanted:
            return python
        first = [interpreter(self.version), "-I"] if self.version else python_command()
        for command in (  # -I ignores the working directory in every version of Python
            [*first, "-m", "venv", "--clear", str(home)],
            [str(python), "-I", "-m", "pip", "install", "--quiet", *self.requirements],
        ):
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=limit
                )
            except subprocess.TimeoutExpired:
                raise PeerError(f"did not install within {limit:.0f} s") from None
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if "ERROR" in line]
                raise PeerError(_last(lines or done.stderr.splitlines()).removeprefix("ERROR: "))
        ready.write_text(wanted)
        return python


def interpreter(version: str) -> str:
    """Return a working Python of a version such as "3.10".

    The variable ``OPBOOST_PYTHON_3_10`` names it; without it, the path and pyenv are searched.
    """
    variable = "OPBOOST_PYTHON_" + version.replace(".", "_")
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    installed = map(str, sorted(pyenv.glob(f"{version}.*/bin/python")))
    found = [shutil.which(f"python{version}") or "", *installed]
    same = f"import ensurepip, sys; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
    for python in [os.environ[variable]] if variable in os.environ else found:
        with contextlib.suppress(OSError):  # absent, or it cannot be run
            if not subprocess.run([python, "-I", "-c", same], capture_output=True).returncode:
                return python
    raise PeerError(f"needs Python {version}, which is not here; {variable} can name one")


@dataclass(frozen=True, slots=True)
class PeerTime:
    """The times of a peer; ``problem`` says why there are none."""

    name: str
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    values: int = 0
    problem: str = ""


def answered(command: list[str], request: dict[str, Any], limit: float, home: Path) -> Any:
    """Return a command's answer to a request: the last line that it prints, as JSON.

    After ``limit`` seconds, it is killed with all processes that it started.  It runs in ``home``,
    so that Python processes that it starts import nothing from the current folder.
    """
    family = Family(f"OPBOOST_PEER={secrets.token_hex(8)}")
    with contextlib.ExitStack() as stack:  # files: a leftover process would hold a pipe open
        asked, out, err = (
            stack.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace"))
            for _ in range(3)
        )
        asked.write(json.dumps(request))
        asked.seek(0)
        env = os.environ | dict([family.mark.split("=")])
        process = subprocess.Popen(command, stdin=asked, stdout=out, stderr=err, cwd=home, env=env)
        try:
            status = process.wait(limit)
        except subprocess.TimeoutExpired:
            raise PeerError(f"did not finish within {limit:.0f} s") from None
        finally:
            family.end()
            process.kill()
            process.wait()
        for file in (out, err):
            file.seek(0)
        said, errors = out.read(), err.read()
    if status:
        raise PeerError(_last(errors.splitlines() or [f"status {status}"]))
    try:
        return json.loads(said.strip().splitlines()[-1])
    except (ValueError, IndexError):
        raise PeerError(f"gave no answer that can be read: {_last(said.splitlines())}") from None


@dataclass(frozen=True, slots=True)
class Family:
    """The processes of any session that inherited a mark in their environment; needs ``/proc``."""

    mark: str

    def members(self) -> list[int]:
        """Return their process IDs."""
        found = []
        for place in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # ended, or somebody else's
                if self.mark.encode() in (place / "environ").read_bytes():
                    found.append(int(place.name))
        return found

    def end(self) -> None:
        """Kill those that are left."""
        for member in self.members():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(member, signal.SIGKILL)


def _last(lines: list[str]) -> str:
    """Return the last line that is not blank, cut to 200 characters."""
    return " ".join(next((n for n in reversed(lines) if n.strip()), "no message").split())[:200]


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "opboost" / "bench"


SAMPLING = (
    Peer("opendp", ("opendp==0.16.0",), "sampling.py"),
    Peer("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.6"), "sampling.py"),
    Peer("python-dp", ("python-dp==1.1.5",), "sampling.py"),
)
