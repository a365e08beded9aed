"""Event logs: one JSON object per line, never a raw value or a row ID."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

LINES_PER_MINUTE = 120
"""The most lines per minute for one event, party and step, in a log that peers can fill."""


class Log:
    """A file to which events are appended.

    With ``a_minute``, at most this many lines per minute are written for one event, party and step,
    so that a peer that repeats a refused call does not fill the disk.  A later line says how many
    were left out.
    """

    def __init__(self, path: Path, *, a_minute: int | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._most = path, a_minute
        self._lock = threading.Lock()
        self._counts: dict[tuple[object, ...], tuple[int, int]] = {}

    def write(self, event: str, **facts: object) -> None:
        """Write one event: counts, names of parties and jobs, public messages."""
        if self._most is not None:
            about: dict[str, object] = {
                name: facts[name] for name in ("party", "step") if name in facts
            }
            key = (event, *about.values())
            with self._lock:
                minute, count = self._counts.get(key, (0, 0))
                now = int(time.monotonic() // 60)
                known = count if now == minute else 0
                self._counts[key] = now, known + 1
            if now != minute and count > self._most:
                self._append(event, {**about, "left_out": count - self._most})
            if known >= self._most:
                return
        self._append(event, facts)

    def _append(self, event: str, facts: dict[str, object]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, "event": event, **facts}, ensure_ascii=False) + "\n"
        with suppress(OSError):  # a full disk stops the job itself, with its own message
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)


def resumed(job: str, phase: str, half_written: int, damaged: Sequence[str] = ()) -> str:
    """Return the message for an operator who restarts a party in the middle of a job."""
    more = f" {half_written} half-written files were removed." if half_written else ""
    more += f" Damaged, and made again: {', '.join(damaged)}." if damaged else ""
    return f"Resuming job {job} ({phase}).{more}"
