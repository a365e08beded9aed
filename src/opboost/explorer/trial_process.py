"""A trial in a process of its own, which the page starts, follows and stops."""

from __future__ import annotations

import json
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from opboost.runtime.child_processes import python_command

SAMPLE_ROWS = 3000
"""The number of rows in the sample; a third of them is held out for measuring."""

Way = Literal["plain", "naive", "denoised"]


@dataclass(frozen=True, slots=True)
class TrialResult:
    """One model: how it was trained, at which level (None without noise), and its score."""

    way: Way
    epsilon: float | None
    score: float
    measure: str
    done: int
    of: int
    rows: int


State = Literal["idle", "running", "done", "stopped", "failed"]


@dataclass(frozen=True, slots=True)
class TrialProgress:
    """The progress of a trial; ``problem`` says why it failed."""

    state: State = "idle"
    results: tuple[TrialResult, ...] = ()
    problem: str = ""

    @property
    def share(self) -> float:
        """The share that is done, from 0 to 1."""
        return self.results[-1].done / self.results[-1].of if self.results else 0.0


@dataclass(slots=True)
class TrialProcess:
    """The page's trial; at most one runs at a time."""

    _process: subprocess.Popen[str] | None = None
    _progress: TrialProgress = TrialProgress()
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def start(self, table: Path, label: str, toml: str) -> None:
        """Start a trial; stop a running one first."""
        self.stop()
        process = subprocess.Popen(
            python_command("-m", "opboost.explorer.trial"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
        )
        with self._lock:
            self._process, self._progress = process, TrialProgress("running")
        assert process.stdin is not None
        process.stdin.write(json.dumps({"table": str(table), "label": label, "toml": toml}))
        process.stdin.close()
        threading.Thread(target=self._follow, args=(process,), daemon=True).start()

    def stop(self) -> None:
        """Stop the trial, if one is running."""
        with self._lock:
            process, self._process = self._process, None
            if process is not None and self._progress.state == "running":
                self._progress = TrialProgress("stopped", self._progress.results)
        if process is not None:
            process.kill()
            process.wait()

    def progress(self) -> TrialProgress:
        """Return the progress of the trial."""
        with self._lock:
            return self._progress

    def _follow(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                self._note(process, json.loads(line))
        failed = process.wait() != 0
        with self._lock:
            if self._process is not process or self._progress.state != "running":
                return
            now = self._progress.results
            words = "The trial ended early because of a defect of OpBoost."
            self._progress = (
                TrialProgress("failed", now, words) if failed else TrialProgress("done", now)
            )

    def _note(self, process: subprocess.Popen[str], line: dict[str, Any]) -> None:
        with self._lock:
            if self._process is not process:
                return
            if "problem" in line:
                self._progress = TrialProgress("failed", self._progress.results, line["problem"])
            else:
                results = (*self._progress.results, TrialResult(**line))
                self._progress = TrialProgress("running", results)
