"""The results of runs as one compressed file, from which another machine can report or resume.

Times belong to the machine that took them, so they are not in the file.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from pathlib import Path

from opboost.errors import DataError
from opboost.storage import atomic_files
from opboost_lab.reproduce.task import Json, Store, Task


def unpack(file: Path, store: Store, tasks: Sequence[Task]) -> int:
    """Give the store those results of the file that it lacks, and return how many.

    A result counts for a task only if the code that measures it is still the same.
    """
    known = {line["key"]: line["result"] for line in _lines(file)}
    lacking = [task for task in tasks if task.key() in known and store.get(task) is None]
    for task in lacking:
        store.put(task, known[task.key()])
    return len(lacking)


def pack(file: Path, store: Store, tasks: Sequence[Task]) -> None:
    """Put what the store has of these tasks into the file; results of other tasks stay in it.

    The same results give the same bytes.
    """
    ours = {(task.function, task.settings) for task in tasks}
    lines = [line for line in _lines(file) if (line["task"], line["settings"]) not in ours]
    for task in tasks:
        result = None if task.alone else store.get(task)
        if result is not None:
            key = {"task": task.function, "settings": task.settings, "key": task.key()}
            lines.append({**key, "result": result})
    text = "\n".join(sorted(json.dumps(line, ensure_ascii=False) for line in lines))
    atomic_files.write(file, lzma.compress(text.encode(), preset=9))


def _lines(file: Path) -> list[dict[str, Json]]:
    """The file's results, each with its task; none if there is no file."""
    if not file.exists():
        return []
    try:
        lines = [json.loads(line) for line in lzma.decompress(file.read_bytes()).splitlines()]
        if all({"task", "settings", "key", "result"} <= set(line) for line in lines):
            return lines
    except (lzma.LZMAError, ValueError, TypeError):
        pass
    raise DataError(f"{file} holds no results of a reproduction. Remove it, or name another file.")
