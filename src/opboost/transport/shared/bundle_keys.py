"""Encryption keys for bundles, and the public key files that peers hold.

A party's encryption key differs from its certificate's key, because a key should serve one
purpose.  The party signs its public half with its certificate's key and sends it as a small file.
Anyone with the authority's certificate can verify whose key it is, however the file arrived.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from opboost.errors import ConfigError, PeerError, WireError
from opboost.protocol.messages import check_party
from opboost.storage import atomic_files
from opboost.transport.shared.tls import (
    UNREADABLE,
    Identity,
    alternative_names,
    check_certificate,
    verify,
)

SUITE = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_256_GCM)
"""RFC 9180 in base mode, which does not authenticate a sender: the bundle's signature does."""

OVERHEAD_BYTES = 48
"""Bytes that encryption adds to a piece: the encapsulated key and the tag."""

FORMAT = "opboost public key 1"
MAX_KEY_FILE_BYTES = 2**16
"""The largest public key file that is read."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """The key with which bundles for a party are encrypted."""

    party: str
    raw: bytes

    def encrypt(self, data: bytes, info: bytes) -> bytes:
        """Encrypt data so that only this party can read it, and only with the same ``info``."""
        return SUITE.encrypt(data, X25519PublicKey.from_public_bytes(self.raw), info)


@dataclass(frozen=True, slots=True)
class PrivateKey:
    """A party's own key for opening bundles."""

    pem: bytes

    def public(self, party: str) -> PublicKey:
        """Return the public half."""
        return PublicKey(party, self._key().public_key().public_bytes_raw())

    def decrypt(self, data: bytes, info: bytes) -> bytes:
        """Decrypt what was encrypted with the same ``info``; raise PeerError for anything else."""
        try:
            return SUITE.decrypt(data, self._key(), info)
        except InvalidTag:
            raise PeerError("It was encrypted to another key, or for another place.") from None

    def _key(self) -> X25519PrivateKey:
        key = serialization.load_pem_private_key(self.pem, None)
        if not isinstance(key, X25519PrivateKey):
            raise ValueError("not an X25519 key")
        return key


def new_key(path: Path) -> PrivateKey:
    """Make a key, unless there is one already; return it."""
    made = X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    atomic_files.write_new(path, made, mode=0o600)
    return read_key(path)


def read_key(path: Path) -> PrivateKey:
    """Read this party's own key."""
    try:
        if os.name == "posix" and path.stat().st_mode & 0o077:
            raise ConfigError(f"The key {path} can be read by others. Run: chmod 600 {path}")
        key = PrivateKey(path.read_bytes())
    except OSError as error:
        raise ConfigError(
            f"The encryption key {path} cannot be read: {error.strerror}. "
            "Make one with: opboost certs encryption KIT"
        ) from None
    try:
        key.public("self")
    except UNREADABLE:
        raise ConfigError(f"{path} does not hold an X25519 key in PEM form.") from None
    return key


def certify(key: PublicKey, identity: Identity) -> bytes:
    """Return the content of a public key file: the key, signed by its party."""
    plain = {
        "format": FORMAT,
        "party": key.party,
        "key": key.raw.hex(),
        "certificate": identity.cert.decode(),
        "signature": identity.signature(_signed(key)).hex(),
    }
    return json.dumps(plain, indent=1).encode() + b"\n"


def read_public(path: Path, party: str, ca: bytes) -> PublicKey:
    """Read a peer's key; refuse it unless the peer signed it with a certificate of ``ca``."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_KEY_FILE_BYTES)
    except OSError as error:
        raise ConfigError(
            f"The public key of {party!r}, {path}, cannot be read: {error.strerror}. Ask that "
            f"party for its file {party}.public and put it there, or give its path: "
            f'[peers.{party}] public = "...".'
        ) from None
    try:
        plain = json.loads(data)
        form, said, raw, certificate, signature = (
            plain[name] for name in ("format", "party", "key", "certificate", "signature")
        )
        key = PublicKey(check_party(said), bytes.fromhex(raw))
        X25519PublicKey.from_public_bytes(key.raw)
        given, signed = certificate.encode(), bytes.fromhex(signature)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, WireError):
        raise PeerError(f"{path.name} is not the public key of an OpBoost party.") from None
    if form != FORMAT:
        raise PeerError(f"{path.name} does not have the format {FORMAT!r}.")
    signer = check_certificate(given, path.name, ca)
    try:
        verify(signer, signed, _signed(key))
    except InvalidSignature:
        raise PeerError(f"{path.name} was altered: its signature does not match.") from None
    if key.party != party:
        raise PeerError(f"{path.name} is the key of {key.party!r}, not of {party!r}.")
    (by,) = alternative_names(signer)
    if by != party:
        raise PeerError(f"{path.name} is signed by {by!r}, not by {party!r}.")
    return key


def _signed(key: PublicKey) -> bytes:
    return f"{FORMAT}\n{key.party}\n{key.raw.hex()}".encode()
