"""The ledger's keys, which name people, encrypt the names, and choose the columns to send.

A key file holds one key per line, in hex, newest first, outside the ledger's folder.

* The **oldest** key names people (a keyed function of the ID) and samples their columns.  It never
  changes, so that each person keeps one name.
* The **newest** key encrypts the stored names and authenticates new entries.  To rotate keys, add a
  new line at the top: the next release re-encrypts all stored names.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opboost._typing import IntArray, Words
from opboost.errors import ConfigError
from opboost.randomness.per_person_rng import row_names
from opboost.storage.atomic_files import write_new
from opboost.storage.framing import framed

HANDLE_BYTES = 16


@dataclass(frozen=True, slots=True)
class Key:
    """One secret, and its name in entries."""

    secret: bytes

    @property
    def name(self) -> str:
        """A public name, the first digits of a hash; it differs from the name in version 0.1."""
        return hashlib.sha256(b"opboost ledger 2 key name\n" + self.secret).hexdigest()[:16]

    def derived(self, *purpose: str) -> bytes:
        """Return a separate key for each purpose."""
        return hmac.digest(self.secret, framed(p.encode() for p in purpose), "sha256")

    def people(self, ids: pa.LargeBinaryArray) -> Words:
        """Return each person's name: two words, a keyed one-way function of the ID.

        An ID of up to 15 bytes is one block x; a longer one becomes 15 bytes of keyed BLAKE2b.  The
        name is AES[key](x) xor x, the compression function of Matyas, Meyer and Oseas.  Without
        the key it is pseudo-random; with the key it is as hard to invert as the ID is to guess
        (decision 20).
        """
        key = self.derived("person")
        blocks = row_names(key, ids)
        return np.asarray(_permuted(key, blocks) ^ blocks)

    def handles(self, people: Words) -> Words:
        """Return the encrypted names of people, as they are stored."""
        return _permuted(self.derived("handle"), people)

    def people_behind(self, handles: Words) -> Words:
        """Return the names of people from their handles: the inverse of :meth:`handles`."""
        return _permuted(self.derived("handle"), handles, back=True)

    def sampling_words(self, people: Words, attribute: str, period: int) -> Words:
        """Return a uniform word per person for an attribute and period, independent of values."""
        key = self.derived("columns", attribute, str(period))
        return np.ascontiguousarray(_permuted(key, people)[:, 0])

    def tags(self, attribute: str, mechanism: str, people: Words, states: IntArray) -> Words:
        """Return a word per person that identifies a cell's value (``changed = "redraw"`` only)."""
        blocks = people.copy()
        blocks[:, 0] ^= states.astype(np.uint64)
        key = self.derived("cell", attribute, mechanism)
        return np.ascontiguousarray(_permuted(key, blocks)[:, 0])


def _permuted(key: bytes, blocks: Words, *, back: bool = False) -> Words:
    """Return each pair of words after AES-256 or its inverse, a permutation of 128 bits."""
    cipher = Cipher(algorithms.AES256(key), modes.ECB())
    context = cipher.decryptor() if back else cipher.encryptor()
    made = context.update(np.ascontiguousarray(blocks, dtype="<u8").tobytes())
    return np.frombuffer(made, dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True, slots=True)
class KeyFile:
    """All keys of a ledger, newest first."""

    path: Path
    keys: tuple[Key, ...]

    @property
    def newest(self) -> Key:
        """The key that encrypts names and authenticates new entries."""
        return self.keys[0]

    @property
    def oldest(self) -> Key:
        """The key that names people."""
        return self.keys[-1]

    def named(self, name: str) -> Key | None:
        """Return the key with this name, or None."""
        return next((key for key in self.keys if key.name == name), None)

    @staticmethod
    def check_place(path: Path, folder: Path) -> None:
        """Refuse a key inside the folder that it protects."""
        if path.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"The ledger's key {path} lies inside the ledger's folder {folder}. "
                "A copy of the folder must not contain the key: keep it elsewhere."
            )

    @classmethod
    def read(cls, path: Path, folder: Path, *, new: bool) -> KeyFile:
        """Read the keys of the ledger in ``folder``; with ``new``, create a missing file."""
        if not path.exists():
            if not new:
                raise ConfigError(
                    f"The ledger in {folder} exists, but its key {path} does not. Without it "
                    "nobody can be recognised. Restore the key."
                )
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_new(path, (secrets.token_hex(32) + "\n").encode(), mode=0o600)
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ConfigError(f"The key {path} can be read by others. Run: chmod 600 {path}")
        lines = path.read_bytes().decode(errors="replace").split()
        if not lines:
            raise ConfigError(
                f"{path} is empty: it holds no key. Without it nobody can be recognised. "
                "Restore the key."
            )
        return cls(path, tuple(_key(line, path) for line in lines))


def _key(line: str, path: Path) -> Key:
    try:
        secret = bytes.fromhex(line)
    except ValueError:
        secret = b""
    if len(secret) != 32:
        raise ConfigError(f"{path} is not a key file: each line must hold 64 hex digits.")
    return Key(secret)
