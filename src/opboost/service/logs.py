"""What happened, a JSON object a line; never a raw value or a row ID."""

from __future__ import annotations

import json
import os
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
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)
