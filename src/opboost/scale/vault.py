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
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from opboost import durable
from opboost._typing import Words
from opboost.errors import PrivacyError
from opboost.prf import SECRET_BYTES, derived, masked

SECRET = "secret"
ROWS = "part-{:05d}.rows"
PEOPLE = "part-{:05d}.people"
_NONCE = 12
_PEOPLE = pa.schema([("id", pa.large_binary())])
_NOBODY = pa.array([], pa.large_binary())


def make_secret(folder: Path) -> None:
    """A new secret for a release, unless it has one."""
    durable.write_new(folder / SECRET, secrets.token_bytes(SECRET_BYTES), mode=0o600)


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
        raise durable.damaged(path)
    return secret


def put_rows(folder: Path, number: int, secret: bytes, names: Sequence[Words]) -> None:
    """Put aside which rows a part holds, under names that only the secret ties to IDs."""
    whole = np.concatenate([np.empty((0, 2), dtype=np.uint64), *names])
    data = masked(derived(secret, "rows"), whole).astype("<u8").tobytes()
    durable.write(folder / ROWS.format(number), data, mode=0o600)


def rows_of(folder: Path, number: int) -> Words:
    """The rows of a part, by such names."""
    return np.frombuffer((folder / ROWS.format(number)).read_bytes(), dtype="<u8").reshape(-1, 2)


def put_people(
    folder: Path, number: int, secret: bytes, people: Sequence[pa.LargeBinaryArray]
) -> None:
    """Put aside the IDs of a part, sealed with the secret."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, _PEOPLE) as writer:
        for ids in people:
            writer.write_batch(pa.record_batch([ids], _PEOPLE))
    plain, nonce = stream.getvalue().to_pybytes(), secrets.token_bytes(_NONCE)
    sealed = AESGCM(derived(secret, "people")).encrypt(nonce, plain, b"%d" % number)
    durable.write(folder / PEOPLE.format(number), nonce + sealed, mode=0o600)


def people_of(folder: Path, number: int, secret: bytes) -> pa.LargeBinaryArray:
    """The IDs of a part."""
    path = folder / PEOPLE.format(number)
    data = path.read_bytes()
    try:
        plain = AESGCM(derived(secret, "people")).decrypt(
            data[:_NONCE], data[_NONCE:], b"%d" % number
        )
    except (InvalidTag, ValueError):
        raise durable.damaged(path) from None
    with pa.ipc.open_stream(plain) as stream:
        return pa.concat_arrays([_NOBODY, *stream.read_all().column("id").chunks])


def destroy(folder: Path) -> None:
    """Overwrite and remove the secret, then what it sealed; repeated, it does nothing."""
    path = folder / SECRET
    if path.exists():
        with path.open("r+b") as file:
            file.write(secrets.token_bytes(SECRET_BYTES))
            file.flush()
            os.fsync(file.fileno())
        path.unlink()
        durable.flush(folder)
    for pattern in ("part-*.rows", "part-*.people"):
        for left in folder.glob(pattern):
            left.unlink()
    durable.flush(folder)
