"""What processes of this machine use, from ``/proc``."""

from __future__ import annotations

import re
from pathlib import Path


def peak_mb(process: int) -> float:
    """The most memory that a process had resident; 0 if it is gone."""
    try:
        text = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", text)
    return int(found[1]) / 1000 if found else 0.0


def child_of(process: int, words: str) -> int | None:
    """The child of a process whose command holds these words."""
    try:
        children = [file.read_text() for file in Path(f"/proc/{process}/task").glob("*/children")]
        for number in " ".join(children).split():
            if words.encode() in Path(f"/proc/{number}/cmdline").read_bytes():
                return int(number)
    except OSError:
        pass
    return None
