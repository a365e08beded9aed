"""What must not outlive a release: its secret, and the files that link rows to people.

The secret is one file of mode 0600 in the release's folder.  Side files list rows under names that
mean nothing without the secret, and IDs encrypted with it.  :func:`destroy` removes all of that:
from then on nobody, not even the party itself, can remove the noise.

On a plain disk, overwriting erases the bytes.  A journaling file system, a solid-state disk, a
snapshot or a backup may keep an older copy: while a release runs, keep the folder on an encrypted
volume and out of backups (docs/scale.md).
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from opboost._typing import Words
from opboost.errors import PrivacyError
from opboost.randomness.per_person_rng import SECRET_BYTES, derived, masked
from opboost.storage import atomic_files
from opboost.storage.framing import framed

SECRET = "secret"
ROWS = "part-{:05d}.rows"
PEOPLE = "part-{:05d}.people"
RECEIPT = "part-{:05d}.json"
_NONCE = 12
_PEOPLE = pa.schema([("id", pa.large_binary())])
_PIECE = 1 << 24


def remake(folder: Path, number: int) -> str:
    """Return the next step for a damaged part."""
    receipt = folder / RECEIPT.format(number)
    return f"Remove {receipt} and run again: the part is made again with the same noise."


def abandon(folder: Path) -> str:
    """Return the next step for damage that cannot be repaired by making a part again."""
    return (
        f"Restore a copy of it, or remove {folder} to abandon the release and begin again: nothing "
        "of it was sent."
    )


def make_secret(folder: Path) -> None:
    """Make a new secret for a release, unless it has one."""
    atomic_files.write_new(folder / SECRET, secrets.token_bytes(SECRET_BYTES), mode=0o600)


def has_secret(folder: Path) -> bool:
    """Return whether the release's secret still exists."""
    return (folder / SECRET).exists()


def read_secret(folder: Path) -> bytes:
    """Return the secret of a release that is not yet complete."""
    path = folder / SECRET
    if not path.exists():
        raise PrivacyError(
            f"The secret of the release in {folder} is destroyed, because the release is complete "
            "or was abandoned. Nothing can be added. Read what is stored, or begin another release."
        )
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise PrivacyError(f"The secret {path} can be read by others. Run: chmod 600 {path}")
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise atomic_files.damaged(path, abandon(folder))
    return secret


class RowSideFile:
    """Files that record whom the rows of a part are about, piece by piece while it is made.

    Rows have names that only the secret links to IDs.  If a ledger will need the IDs, they are
    encrypted with the secret.  The files appear once the block ends without an error.
    """

    def __init__(self, folder: Path, number: int, secret: bytes, people: bool) -> None:
        self._folder, self._number, self._people = folder, number, people
        self._rows_key = derived(secret, "rows")
        self._box = AESGCM(derived(secret, "people"))
        self._pieces = 0

    def __enter__(self) -> RowSideFile:
        with ExitStack() as stack:
            rows, people = (self._folder / kind.format(self._number) for kind in (ROWS, PEOPLE))
            self._rows = stack.enter_context(atomic_files.writing(rows, mode=0o600))
            if self._people:
                self._encrypted = stack.enter_context(atomic_files.writing(people, mode=0o600))
            self._files = stack.pop_all()
        return self

    def add(self, ids: pa.LargeBinaryArray, names: Words) -> None:
        """Record the next rows."""
        self._rows.write(masked(self._rows_key, names).astype("<u8").tobytes())
        if self._people:
            stream = pa.BufferOutputStream()
            with pa.ipc.new_stream(stream, _PEOPLE) as writer:
                writer.write_batch(pa.record_batch([ids], _PEOPLE))
            nonce, about = secrets.token_bytes(_NONCE), _about(self._number, self._pieces)
            sealed = self._box.encrypt(nonce, stream.getvalue().to_pybytes(), about)
            self._encrypted.write(framed([nonce + sealed]))
        self._pieces += 1

    def __exit__(self, *error: Any) -> None:
        self._files.__exit__(*error)


def _about(part: int, piece: int) -> bytes:
    return b"%d %d" % (part, piece)


def rows_of(folder: Path, number: int) -> Iterator[Words]:
    """Yield the names of a part's rows, piece by piece."""
    with (folder / ROWS.format(number)).open("rb") as file:
        while data := file.read(_PIECE):
            yield np.frombuffer(data, dtype="<u8").reshape(-1, 2)


def people_of(folder: Path, number: int, secret: bytes) -> Iterator[pa.LargeBinaryArray]:
    """Yield the recorded IDs of a part, piece by piece."""
    path, box = folder / PEOPLE.format(number), AESGCM(derived(secret, "people"))
    with path.open("rb") as file:
        for piece in count():
            if not (size := file.read(4)):
                return
            data = file.read(int.from_bytes(size, "big"))
            try:
                plain = box.decrypt(data[:_NONCE], data[_NONCE:], _about(number, piece))
            except (InvalidTag, ValueError):
                raise atomic_files.damaged(path, remake(folder, number)) from None
            with pa.ipc.open_stream(plain) as stream:
                yield stream.read_next_batch().column(0)


def destroy(folder: Path) -> None:
    """Overwrite and remove the secret, then remove the side files; a second call does nothing."""
    path = folder / SECRET
    if path.exists():
        with path.open("r+b") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        atomic_files.flush(folder)
    for pattern in ("part-*.rows", "part-*.people"):
        for left in folder.glob(pattern):
            left.unlink()
    atomic_files.flush(folder)
