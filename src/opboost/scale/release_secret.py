"""What must not outlive a release: its secret, and who its rows are about.

The secret is one file of mode 0600 in the release's folder.  Rows are put aside under names that
mean nothing without it, IDs are sealed with it.  :func:`destroy` ends all of that: from then on
nobody, the party itself included, can take the noise off again.

Overwriting reaches the bytes of a plain disk.  A journaling file system, a solid-state disk, a
snapshot or a backup may keep an older copy: keep the folder on an encrypted volume, and out of
backups, while a release runs (docs/scale.md).
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
    """The next step where something of a part is damaged."""
    receipt = folder / RECEIPT.format(number)
    return f"Remove {receipt} and run again: the part is made again with the same noise."


def give_up(folder: Path) -> str:
    """The next step where something is damaged that cannot be made again."""
    return (
        f"Bring back a copy of it, or remove {folder} to give the release up and begin again: "
        "nothing of it was sent."
    )


def make_secret(folder: Path) -> None:
    """A new secret for a release, unless it has one."""
    atomic_files.write_new(folder / SECRET, secrets.token_bytes(SECRET_BYTES), mode=0o600)


def has_secret(folder: Path) -> bool:
    """Whether the release's secret still is."""
    return (folder / SECRET).exists()


def read_secret(folder: Path) -> bytes:
    """The secret of a release that is not yet whole."""
    path = folder / SECRET
    if not path.exists():
        raise PrivacyError(
            f"The secret of the release in {folder} is destroyed: it is whole, or was given up. "
            "Nothing can be added. Read what is stored, or begin another release."
        )
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise PrivacyError(f"The secret {path} can be read by others. Run: chmod 600 {path}")
    secret = path.read_bytes()
    if len(secret) != SECRET_BYTES:
        raise atomic_files.damaged(path, give_up(folder))
    return secret


class RowSideFile:
    """Who the rows of a part are about, put aside piece by piece while the part is made.

    Rows stand under names that only the secret ties to IDs; IDs, where a ledger will ask for them,
    are sealed with it.  The files appear when the block ends well.
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
        """Put aside some more rows."""
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
    """The rows of a part by their names, a piece at a time."""
    with (folder / ROWS.format(number)).open("rb") as file:
        while data := file.read(_PIECE):
            yield np.frombuffer(data, dtype="<u8").reshape(-1, 2)


def people_of(folder: Path, number: int, secret: bytes) -> Iterator[pa.LargeBinaryArray]:
    """The IDs of a part, a piece at a time, as they were put aside."""
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
    """Overwrite and remove the secret, then what it sealed; repeated, it does nothing."""
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
