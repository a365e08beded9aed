"""What happened, a JSON object a line; never a raw value or a row ID."""

from __future__ import annotations

import json
import os
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

LINES = 120
"""Lines that a log which peers can make grow takes in a minute, of one kind and about one party."""


class Log:
    """A file that events are appended to.

    With ``a_minute``, so many of one event about one party are written in a minute, so that who
    repeats a refused call does not fill the disk; how many were left out is told afterwards.
    """

    def __init__(self, path: Path, *, a_minute: int | None = None) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._most = path, a_minute
        self._lock = threading.Lock()
        self._counts: dict[tuple[str, object], tuple[int, int]] = {}

    def write(self, event: str, **facts: object) -> None:
        """One event: counts, names of parties and jobs, public messages."""
        if self._most is not None:
            party = facts.get("party")
            with self._lock:
                minute, count = self._counts.get((event, party), (0, 0))
                now = int(time.monotonic() // 60)
                known = count if now == minute else 0
                self._counts[event, party] = now, known + 1
            if now != minute and count > self._most:
                self._append(event, {"party": party, "left_out": count - self._most})
            if known >= self._most:
                return
        self._append(event, facts)

    def _append(self, event: str, facts: dict[str, object]) -> None:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, "event": event, **facts}, ensure_ascii=False) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
