"""Other libraries, each installed into an environment of its own and timed there.

Their dependencies exclude each other (and ours), so they cannot share one environment.  A peer that
does not install is reported as FAILED, with the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from opboost.runtime.child_processes import python_command


@dataclass(frozen=True, slots=True)
class Peer:
    """A library to compare with: what to install, and the script that times it."""

    name: str
    requirements: tuple[str, ...]
    script: str

    def timed(self, request: dict[str, Any], timeout: float = 900) -> PeerTime:
        """CPU seconds of each repeat, or why there are none."""
        python, problem = self.environment()
        if problem:
            return PeerTime(self.name, problem=problem)
        script = resources.files("opboost_lab.bench") / "peer_scripts" / self.script
        try:
            done = subprocess.run(
                [str(python), str(script)],
                input=json.dumps(request),
                cwd=python.parent,  # Python processes of the peer's own keep off this one's
                capture_output=True,
                text=True,
                timeout=timeout,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return PeerTime(self.name, problem=f"no answer within {timeout:.0f} s")
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            return PeerTime(self.name, problem=last)
        answer = json.loads(done.stdout.strip().splitlines()[-1])
        return PeerTime(self.name, answer["version"], answer["seconds"], answer["values"])

    def environment(self, limit: float | None = None) -> tuple[Path, str]:
        """The interpreter of its own environment, made if it is not there, or why there is none.

        ``limit`` is how many seconds its installation may take.
        """
        home = _cache() / self.name
        python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
        ready = home / "ready"
        wanted = "\n".join(self.requirements)
        if ready.exists() and ready.read_text() == wanted:
            return python, ""
        for command in (
            python_command("-m", "venv", "--clear", str(home)),
            python_command(
                "-m", "pip", "install", "--quiet", *self.requirements, interpreter=python
            ),
        ):
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=limit
                )
            except subprocess.TimeoutExpired:
                return python, f"did not install within {limit:.0f} s"
            if done.returncode:
                lines = [line for line in done.stderr.splitlines() if "ERROR" in line]
                return python, (lines or done.stderr.strip().splitlines() or ["failed"])[-1]
        ready.write_text(wanted)
        return python, ""


@dataclass(frozen=True, slots=True)
class PeerTime:
    """What a peer took; ``problem`` says why there is no time."""

    name: str
    version: str = ""
    seconds: list[float] = field(default_factory=list)
    values: int = 0
    problem: str = ""


def _cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "opboost" / "bench"


SAMPLING = (
    Peer("opendp", ("opendp==0.16.0",), "opendp_laplace.py"),
    Peer("diffprivlib", ("diffprivlib==0.6.6", "scikit-learn<1.6"), "diffprivlib_truncated.py"),
    Peer("python-dp", ("python-dp==1.1.5",), "pydp_laplace.py"),
)
