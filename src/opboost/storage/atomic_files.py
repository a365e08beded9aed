"""Write files completely or not at all, and lock folders for one process at a time."""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from opboost.errors import ConfigError, DataError, PlatformWarning

_MARK = b"\n#sha256 "
CHECKSUM_BYTES = len(_MARK) + 64 + 1
"""The number of bytes that a checksum adds to a file."""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)
"""Error numbers of a disk or folder that cannot take a file, regardless of its content."""


def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace ``path`` with ``data`` atomically: all of it is written, or nothing."""
    with writing(path, mode=mode) as file:
        file.write(data)


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Write a file as :func:`write` does, unless the file exists; then keep the existing one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), writing(path, mode=mode, place=os.link) as file:
        file.write(data)


def with_checksum(data: bytes) -> bytes:
    """Return a file's content followed by its SHA-256 in a last line, to detect damage."""
    return data + _MARK + hashlib.sha256(data).hexdigest().encode() + b"\n"


def read_checked(path: Path, next_step: str) -> bytes:
    """Return the content of a file that ends with its checksum; refuse a damaged file by name.

    ``next_step`` tells the user what to do about the damage.
    """
    whole = path.read_bytes()
    data = whole[:-CHECKSUM_BYTES]
    if len(whole) < CHECKSUM_BYTES or with_checksum(data) != whole:
        raise damaged(path, next_step)
    return data


def add_checksum(path: Path, *, flushed: bool = True) -> None:
    """Append the checksum to a file that was written piece by piece, and flush the file to disk.

    With ``flushed=False``, the caller flushes the file, as :func:`placing` does.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with naming(path), path.open("ab") as file:
        file.write(_MARK + digest.encode() + b"\n")
        file.flush()
        if flushed:
            os.fsync(file.fileno())


def verify_checksum(path: Path, next_step: str) -> None:
    """Refuse a large file whose checksum is wrong, without loading it into memory."""
    if not checksum_holds(path):
        raise damaged(path, next_step)


def checksum_holds(path: Path) -> bool:
    """Return whether a file matches its checksum, without loading it into memory."""
    whole, left = hashlib.sha256(), max(0, path.stat().st_size - CHECKSUM_BYTES)
    with path.open("rb") as file:
        while left and (piece := file.read(min(left, 1 << 20))):
            whole.update(piece)
            left -= len(piece)
        return file.read() == _MARK + whole.hexdigest().encode() + b"\n"


AT_LABEL_PARTY = (
    "Restore it from a backup, or begin a new run (--again): what was released before is "
    "not charged again."
)
"""The next step if a file of the label party's job is damaged."""

AT_FEATURE_PARTY = (
    "Restore it from a backup, or ask the label party to begin a new run (--again): what was "
    "released before is not charged again."
)
"""The next step if a file of a feature party's job is damaged."""


def damaged(path: Path, next_step: str) -> DataError:
    """Return the error for a damaged file, with the next step for its owner."""
    return DataError(f"{path} is damaged", hint=next_step)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Add the file's name to an ``OSError`` that names none, as after a failed write."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from None


@contextmanager
def writing(
    path: Path, *, mode: int = 0o644, place: Callable[[Path, Path], None] = os.replace
) -> Iterator[BinaryIO]:
    """Yield an open file, which replaces ``path`` if the block ends without an error.

    ``place`` is the function that moves the complete file to ``path``.
    """
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with naming(path), open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        place(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    flush(path.parent)


@contextmanager
def placing(path: Path, *, folder: bool = False, alone: bool = False) -> Iterator[Path]:
    """Yield the path of a temporary file to write, which then replaces ``path``.

    If the block raises an error, ``path`` stays as it was.  With ``folder=True``, the temporary
    path is that of a new folder.  With ``alone=True``, the caller promises that nobody else writes
    ``path`` at the same time: the temporary path is then the same each time, so this removes what a
    killed process left there.
    """
    token = "" if alone else f".{secrets.token_hex(8)}"
    partial = path.with_name(f".{path.name}{token}.part")
    if alone:
        _remove(partial)
    try:
        if folder:
            partial.mkdir()
        yield partial
        for file in sorted(partial.iterdir()) if folder else []:
            flush(file)
        flush(partial)
        os.replace(partial, path)
    finally:
        _remove(partial)
    flush(path.parent)


def move(moves: Iterable[tuple[Path, Path]]) -> None:
    """Rename files or folders in the given order, and flush the new names to disk."""
    touched: dict[Path, None] = {}
    for source, target in moves:
        os.replace(source, target)
        touched |= {source.parent: None, target.parent: None}
    for folder in touched:
        flush(folder)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def read_json(path: Path, kind: Any, next_step: str, *, checksum: bool = False) -> Any:
    """Return the content of a JSON file that OpBoost wrote, as a value of ``kind``.

    Refuse a damaged file.  With ``checksum=True``, the file ends with its checksum.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sizes.json"
    ...     write(file, b'{"a": [1, 2]}')
    ...     read_json(file, dict[str, tuple[int, ...]], "Write it again.")
    {'a': (1, 2)}
    """
    try:
        data = read_checked(path, next_step) if checksum else path.read_bytes()
        return json_reader(kind).validate_json(data, strict=True)
    except (ValueError, RecursionError):
        raise damaged(path, next_step) from None


@lru_cache
def json_reader(kind: Any) -> Any:
    """Return a reader for JSON values of ``kind``."""
    from pydantic import TypeAdapter  # importing it takes 0.25 s; many commands do not need it

    return TypeAdapter(kind)


def flush(path: Path) -> None:
    """Flush a file to disk; for a folder, flush the names of its files."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wipe(path: Path) -> None:
    """Overwrite a file with zeros, then remove it.

    If the file has other hard links, only remove this name and leave the content intact. On a plain
    disk overwriting destroys the content. A journaling file system, a solid-state disk, a snapshot
    or a backup may keep an older copy.
    """
    about = path.stat()
    left = about.st_size if about.st_nlink == 1 else 0
    with naming(path), path.open("r+b") as file:
        while left > 0:
            left -= file.write(bytes(min(left, _WIPE_CHUNK_BYTES)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    flush(path.parent)


_WIPE_CHUNK_BYTES = 1 << 20
"""The number of bytes that are overwritten at a time."""


@contextmanager
def alone(folder: Path) -> Iterator[int]:
    """Lock a folder during the block, and refuse if another process holds the lock.

    The system releases the lock of a killed process.  This removes the half-written files that such
    a process left in the folder, and yields their number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _lock(handle, folder)
        yield clear(folder)
    finally:
        os.close(handle)


@contextmanager
def waiting(file: Path) -> Iterator[None]:
    """Lock a file during the block; first wait while another process holds the lock."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _flock(handle)
        yield
    finally:
        os.close(handle)


def clear(folder: Path) -> int:
    """Remove all half-written files below a folder, and return their number.

    The caller makes sure that nobody is still writing them.
    """
    left = list(folder.rglob(".*.part"))
    for path in left:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    return len(left)


def _lock(handle: int, folder: Path) -> None:
    try:
        _flock(handle, wait=False)
    except BlockingIOError:
        raise ConfigError(
            f"Another process is already working in {folder}. Wait until it has finished."
        ) from None


NO_LOCKS = (
    "This system has no folder locks (Python's module fcntl), so nothing stops a second process "
    "from working in the same folder. Start one process per folder at a time."
)
"""The warning that a user sees once if folders cannot be locked, as on Windows."""


def has_locks() -> bool:
    """Return whether this system can lock a folder."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


@lru_cache(maxsize=1)
def _warn_of_locks() -> None:
    """Warn that folders cannot be locked; once per process."""
    warnings.warn(NO_LOCKS, PlatformWarning, stacklevel=3)


def _flock(handle: int, *, wait: bool = True) -> None:
    """Lock an open file; if the system cannot, warn and continue."""
    try:
        import fcntl
    except ImportError:
        _warn_of_locks()
        return
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
