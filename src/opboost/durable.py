"""Files that are whole or not there, and folders that one process works in at a time."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from opboost.errors import ConfigError, DataError


def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put ``data`` in the place of ``path``, all of it or none."""
    with writing(path, mode=mode) as file:
        file.write(data)


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Like :func:`write`, but a file that is there already, or comes first, stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), writing(path, mode=mode, place=os.link) as file:
        file.write(data)


@contextmanager
def writing(
    path: Path, *, mode: int = 0o644, place: Callable[[Path, Path], None] = os.replace
) -> Iterator[BinaryIO]:
    """A file to write to, which takes the place of ``path`` when the block ends well."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        place(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    flush(path.parent)


def read_json(path: Path, kind: Any) -> Any:
    """What a JSON file of one's own holds, as a value of ``kind``; a damaged one is refused.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sizes.json"
    ...     write(file, b'{"a": [1, 2]}')
    ...     read_json(file, dict[str, tuple[int, ...]])
    {'a': (1, 2)}
    """
    try:
        return _adapter(kind).validate_json(path.read_bytes(), strict=True)
    except (ValueError, RecursionError):
        raise damaged(path) from None


@lru_cache
def _adapter(kind: Any) -> Any:
    from pydantic import TypeAdapter  # a quarter of a second that not everybody needs

    return TypeAdapter(kind)


def damaged(path: Path) -> DataError:
    """The refusal of a file of one's own that holds something else than was written."""
    return DataError(
        f"{path} is damaged: it does not hold what was written there",
        hint="Bring back a copy of it, or begin a new job (--again).",
    )


def flush(path: Path) -> None:
    """Make a file, or the names in a folder, last."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Work in a folder as the only process; a second one is refused.  A kill lets go of it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o640)
    try:
        _lock(handle, folder)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(f"Another process already works in {folder}. Let it finish.") from None
