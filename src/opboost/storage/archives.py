"""Archives that somebody else may have made, whose size is checked before they are unpacked.

A file of a few kilobytes can claim to hold gigabytes: by compression, by an archive inside the
archive, by the shape in an array's header, or by a text that is small until it is parsed.
"""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opboost.errors import DataError

_MAX_UNPACKED_RATIO, _SMALL_FILE_BYTES = 64, 2**20
_MAX_PARSED_RATIO = 4
_ARCHIVES = (".npz", ".skops")
_WEIGHTS = {
    ".json": {b"{": 256, b"[": 64, b",": 64, b":": 96},
    ".txt": {b" ": 64, b"\n": 64},
}
"""By file type and character: the most bytes of memory for the value that it delimits."""


def allowance(size: int) -> int:
    """Return how many bytes may be unpacked from a file of ``size`` bytes."""
    return _MAX_UNPACKED_RATIO * max(size, _SMALL_FILE_BYTES)


def fits(size: int, members: Mapping[str, bytes]) -> bool:
    """Return whether a file of ``size`` bytes may hold these members, unpacked and parsed."""
    if sum(map(len, members.values())) > allowance(size):
        return False
    parsed = sum(parsed_bytes(*m) for m in members.items())
    return parsed <= _MAX_PARSED_RATIO * allowance(size)


def parsed_bytes(name: str, data: bytes) -> int:
    """Return the most bytes of memory that parsing a member takes, inner archives included."""
    if Path(name).suffix in _ARCHIVES:
        return sum(_parsed_text(*member) for member in read_inner_archive(data).items())
    return _parsed_text(name, data)


def _parsed_text(name: str, data: bytes) -> int:
    weights = _WEIGHTS.get(Path(name).suffix, {})
    return len(data) + sum(data.count(c) * weight for c, weight in weights.items())


def read_archive(path: Path) -> dict[str, bytes]:
    """Return the members of a zip file; refuse one that needs far more memory than its size."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        found = _members(archive, allowance(size), path.name)
    if not fits(size, found):
        raise _too_large(path.name)
    return found


def read_inner_archive(data: bytes) -> dict[str, bytes]:
    """Return the members of an archive within an archive; refuse one that is compressed."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if any(item.compress_type != zipfile.ZIP_STORED for item in archive.infolist()):
            raise DataError("The archive holds a compressed archive", hint="Do not load it.")
        return _members(archive, len(data), "An archive in the archive")


def _members(archive: zipfile.ZipFile, most: int, name: str) -> dict[str, bytes]:
    items = archive.infolist()
    if sum(item.file_size for item in items) > most:
        raise _too_large(name)
    found = {}
    for item in items:
        with archive.open(item) as file:
            # Without a length, everything would be unpacked, whatever size is declared.
            found[item.filename] = file.read(item.file_size)
    return found


def _too_large(name: str) -> DataError:
    return DataError(f"{name} would unpack to far more than its size", hint="Do not load it.")


def read_array(data: bytes) -> np.ndarray[Any, Any]:
    """Return the array of an ``.npy`` file; refuse one whose header declares a wrong size.

    >>> file = io.BytesIO()
    >>> np.save(file, np.array([1.0, 2.0]))
    >>> read_array(file.getvalue())
    array([1., 2.])
    """
    file = io.BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise _unreadable()
    shape, fortran, dtype = readers[version](file)
    start, count = file.tell(), math.prod(shape)
    if dtype.hasobject or not dtype.itemsize or any(n < 0 for n in shape):
        raise _unreadable()
    if count * dtype.itemsize != len(data) - start:
        raise _unreadable()
    flat = np.frombuffer(data, dtype, count, start) if count else np.empty(0, dtype)
    return flat.reshape(shape, order="F" if fortran else "C").copy()


def _unreadable() -> DataError:
    return DataError(
        "An array in the archive does not have the size that it declares", hint="Do not load it."
    )
