"""What happened, a JSON object a line; never a raw value or a row ID."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


class Log:
    """A file that events are appended to."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path

    def write(self, event: str, **facts: object) -> None:
        """One event: counts, names of parties and jobs, public messages."""
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"at": at, "event": event, **facts}, ensure_ascii=False) + "\n"
        with suppress(OSError):  # a full disk stops the work itself, with words of its own
            handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
            try:
                os.write(handle, line.encode())
            finally:
                os.close(handle)


def taken_up(job: str, phase: str, half_written: int, damaged: Sequence[str] = ()) -> str:
    """What an operator is told who starts a party again in mid-job."""
    more = f" {half_written} half-written files were taken away." if half_written else ""
    more += f" Damaged, and made again: {', '.join(damaged)}." if damaged else ""
    return f"Taking up job {job} ({phase}).{more}"
