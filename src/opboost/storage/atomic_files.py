"""Files that are whole or not there, and folders that one process works in at a time."""

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
"""Bytes that a seal adds to a file."""


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO)
"""Why a file cannot be written, through no fault of what was to be written."""


def write(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Put ``data`` in the place of ``path``, all of it or none."""
    with writing(path, mode=mode) as file:
        file.write(data)


def write_new(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Like :func:`write`, but a file that is there already, or comes first, stays as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError), writing(path, mode=mode, place=os.link) as file:
        file.write(data)


def with_checksum(data: bytes) -> bytes:
    """A file's content with its digest in a last line, so that damage does not go unseen."""
    return data + _MARK + hashlib.sha256(data).hexdigest().encode() + b"\n"


def read_checked(path: Path, next_step: str) -> bytes:
    """The content of a sealed file; one that is damaged is refused by name."""
    whole = path.read_bytes()
    data = whole[:-CHECKSUM_BYTES]
    if len(whole) < CHECKSUM_BYTES or with_checksum(data) != whole:
        raise damaged(path, next_step)
    return data


def add_checksum(path: Path, *, flushed: bool = True) -> None:
    """Put the seal behind a file that was written piece by piece, and make it last.

    With ``flushed=False`` its writer makes it last, as :func:`placing` does.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with naming(path), path.open("ab") as file:
        file.write(_MARK + digest.encode() + b"\n")
        file.flush()
        if flushed:
            os.fsync(file.fileno())


def verify_checksum(path: Path, next_step: str) -> None:
    """Refuse a large sealed file that is damaged, without having it in memory."""
    if not checksum_holds(path):
        raise damaged(path, next_step)


def checksum_holds(path: Path) -> bool:
    """Return whether a file is what was sealed, without having it in memory."""
    whole, left = hashlib.sha256(), max(0, path.stat().st_size - CHECKSUM_BYTES)
    with path.open("rb") as file:
        while left and (piece := file.read(min(left, 1 << 20))):
            whole.update(piece)
            left -= len(piece)
        return file.read() == _MARK + whole.hexdigest().encode() + b"\n"


AT_LABEL_PARTY = (
    "Bring back a copy of it, or begin a new run (--again): what was released before costs nothing."
)
"""The next step where a file of the label party's job is damaged."""

AT_FEATURE_PARTY = (
    "Bring back a copy of it, or ask the label party to begin a new run (--again): what was "
    "released before costs nothing."
)
"""The next step where a file of a feature party's job is damaged."""


def damaged(path: Path, next_step: str) -> DataError:
    """Return the refusal of a file that is not what was written, with its owner's next step."""
    return DataError(f"{path} is damaged", hint=next_step)


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let an error of the system name the file, which a failed write alone does not."""
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
    """A file to write to, which takes the place of ``path`` when the block ends well."""
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
    """A name to write a file under, which takes the place of ``path`` when the block ends well.

    ``folder`` makes a folder instead.  ``alone`` says that nobody else writes ``path`` meanwhile:
    the name is then the same each time, and what a kill left under it is removed first.
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
    """Rename whole files or folders, each onto its new name, in this order, and make that last."""
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
    """What a JSON file of one's own holds, as a value of ``kind``; a damaged one is refused.

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
    """Load what reads values of ``kind``, and return it."""
    from pydantic import TypeAdapter  # a quarter of a second that not everybody needs

    return TypeAdapter(kind)


def flush(path: Path) -> None:
    """Make a file, or the names in a folder, last."""
    if path.is_dir() and os.name != "posix":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wipe(path: Path) -> None:
    """Overwrite a file with zeros, then remove it; one with other names (hard links) is left whole.

    This reaches the bytes of a plain disk.  A journaling file system, a solid-state disk, a
    snapshot or a backup may keep an older copy.
    """
    about = path.stat()
    left = about.st_size if about.st_nlink == 1 else 0
    with naming(path), path.open("r+b") as file:
        while left > 0:
            left -= file.write(bytes(min(left, _WIPED_BYTES)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    flush(path.parent)


_WIPED_BYTES = 1 << 20
"""Bytes that are overwritten at a time."""


@contextmanager
def alone(folder: Path) -> Iterator[int]:
    """Work in a folder as the only process; a second one is refused.  A kill lets go of it.

    What a kill left half-written is taken away; given is how many files that were.
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
    """Hold a lock for a moment, and wait for whoever holds it before."""
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        _flock(handle)
        yield
    finally:
        os.close(handle)


def clear(folder: Path) -> int:
    """Take away what was left half-written, where nobody writes any more; how many files."""
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
        raise ConfigError(f"Another process already works in {folder}. Let it finish.") from None


NO_LOCKS = (
    "This system has no folder locks (Python's module fcntl), so nothing stops a second process "
    "from working in the same folder. Start one process per folder at a time."
)
"""What a user reads once where a folder cannot be locked, as on Windows."""


def has_locks() -> bool:
    """Return whether this system can lock a folder."""
    try:
        import fcntl  # noqa: F401
    except ImportError:
        return False
    return True


@lru_cache(maxsize=1)
def _warn_of_locks() -> None:
    """Warn once per process, however many folders are worked in."""
    warnings.warn(NO_LOCKS, PlatformWarning, stacklevel=3)


def _flock(handle: int, *, wait: bool = True) -> None:
    """Lock an open file; where the system cannot, warn and go on."""
    try:
        import fcntl
    except ImportError:
        _warn_of_locks()
        return
    fcntl.flock(handle, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
