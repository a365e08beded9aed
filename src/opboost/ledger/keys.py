"""Row IDs as handles: HMAC-SHA256 under a key that is kept outside the ledger's folder.

A key file holds one key a line, in hex.  The first line is used for new entries; the others still
find what was written under them.  To rotate, add a new line on top (docs/ledger.md).
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from opboost._typing import BoolArray, IntArray, Words
from opboost.durable import write_new
from opboost.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Key:
    """One secret, and the name under which entries speak of it."""

    secret: bytes

    @property
    def name(self) -> str:
        """A public name: the first digits of a hash."""
        return hashlib.sha256(b"opboost key name\n" + self.secret).hexdigest()[:16]

    def derived(self, *purpose: str) -> bytes:
        """A key of its own for a purpose."""
        words = b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in purpose)
        return hmac.digest(self.secret, words, "sha256")

    def persons(self, ids: Sequence[bytes]) -> Persons:
        """The handles of people."""
        key = self.derived("row id")
        digests = b"".join([hmac.digest(key, i, "sha256") for i in ids])
        return Persons(np.frombuffer(digests, dtype="<u8").reshape(-1, 4))

    def cells(self, attribute: str, mechanism: str, persons: Persons, states: IntArray) -> Words:
        """A handle for what each person's cell is: two words a row, different for each state.

        AES on (person XOR state) under a key for attribute and mechanism.  Persons are 128
        pseudo-random bits, so that two rows never meet in one block but by chance of 2**-64.
        """
        blocks = persons.words[:, :2].copy()
        blocks[:, 0] ^= states.astype(np.uint64)
        cipher = Cipher(algorithms.AES256(self.derived("cell", attribute, mechanism)), modes.ECB())
        sealed = cipher.encryptor().update(blocks.astype("<u8").tobytes())
        return np.frombuffer(sealed, dtype="<u8").reshape(-1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class Persons:
    """Handles of people under one key: four words a row."""

    words: Words

    def __len__(self) -> int:
        return len(self.words)

    @property
    def charged(self) -> Words:
        """The word under which a person is charged."""
        return np.ascontiguousarray(self.words[:, 2])

    def where(self, rows: BoolArray) -> Persons:
        """Some of them."""
        return Persons(self.words[rows])


def check_place(path: Path, folder: Path) -> None:
    """Refuse a key that lies with what it protects."""
    if path.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(
            f"The ledger's key {path} lies inside the ledger's folder {folder}. "
            "Whoever copies the folder must not get the key: keep it elsewhere."
        )


def read_keys(path: Path, folder: Path, *, new: bool) -> list[Key]:
    """The keys of a file, newest first; with ``new`` a first one is made if there is none."""
    if not path.exists():
        if not new:
            raise ConfigError(
                f"The ledger in {folder} exists, but its key {path} does not. Without it "
                "no one can be recognised. Bring the key back."
            )
        write_new(path, (secrets.token_hex(32) + "\n").encode(), mode=0o600)
    if os.name == "posix" and path.stat().st_mode & 0o077:
        raise ConfigError(f"The key {path} can be read by others. Run: chmod 600 {path}")
    keys = []
    for line in path.read_text(encoding="utf-8", errors="replace").split():
        try:
            secret = bytes.fromhex(line)
        except ValueError:
            secret = b""
        if len(secret) != 32:
            raise ConfigError(f"{path} is no key file: each line holds 64 hex digits.")
        keys.append(Key(secret))
    if not keys:
        raise ConfigError(f"{path} holds no key.")
    return keys
