"""Files that are whole or not there: written under another name, flushed, then renamed."""

from __future__ import annotations

import os
from pathlib import Path


def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put ``data`` in the place of ``path``, all of it or none."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with open(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    flush(path.parent)


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Like :func:`write`, but a file that is there already stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise FileExistsError(f"{path} exists already and is left as it is.")
    write(path, data, mode=mode)


def flush(path: Path) -> None:
    """Make a file, or the names in a folder, last."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
