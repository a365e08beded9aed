"""One bundle: a file for one recipient, signed by its sender.

::

    OPBOOST BUNDLE 3                        format and version
    8 bytes, then the header                sender, recipient, job, step, what it answers, items
    the items, encrypted piece by piece     HPKE; each piece decrypts only in its own place
    8 bytes, then the certificate           of the sender
    8 bytes, then the signature             over everything before it

Anyone who carries the file can read the header: names of parties, the job, sizes.  Items may be
locked with a second key, which the recipient computes from the header's ``claim``.  A bundle is
opened in two passes.  The first checks form, certificate and signature, and decrypts nothing;
``bundle_chain.py`` then decides whether the bundle is due.  The second decrypts, and finally
compares the digest again, so that a file that changed in between is refused, too.  Neither pass
holds more than one piece in memory.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import BinaryIO

from cryptography.exceptions import InvalidSignature

from opboost.errors import ConfigError, PeerError, WireError
from opboost.protocol.messages import check_job, check_party
from opboost.storage import atomic_files
from opboost.transport.shared.bundle_keys import OVERHEAD_BYTES, PrivateKey, PublicKey
from opboost.transport.shared.tls import Identity, alternative_names, check_certificate, verify

FAMILY = b"OPBOOST BUNDLE "
VERSION = "3"
MARK = FAMILY + VERSION.encode() + b"\n"
PIECE_BYTES = 2**24
"""The number of bytes that are encrypted at once."""

MAX_HEADER_BYTES, MAX_SIGNATURE_BYTES = 2**22, 2**16
_ITEM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_DIGEST = re.compile(r"[0-9a-f]{64}")
_STEP = re.compile(r"[a-z-]{1,32}")
_CLAIM = re.compile(r"([0-9a-f]{128})?")

Source = Path | bytes
"""The file or bytes that an item is read from."""


@dataclass(frozen=True, slots=True)
class Item:
    """A message or a column's stream, by name and size."""

    name: str
    size: int

    def pieces(self) -> Iterator[int]:
        """Yield the sizes of the item's pieces; an empty item is one empty piece."""
        left = self.size
        while left > PIECE_BYTES:
            yield PIECE_BYTES
            left -= PIECE_BYTES
        yield left

    def bundle_size(self) -> int:
        """Return the item's size in the file."""
        return self.size + OVERHEAD_BYTES * max(1, -(-self.size // PIECE_BYTES))


@dataclass(frozen=True, slots=True)
class Header:
    """What is known about a bundle before it is opened."""

    sender: str
    recipient: str
    job_hash: str
    job: str
    number: int
    step: str
    previous: str
    """The digest of the bundle that this one answers; empty for the first of a job."""
    items: tuple[Item, ...] = ()
    claim: str = ""
    """The sender's half of the proof of rows, under which the items are locked; empty if none."""

    def to_bytes(self) -> bytes:
        """Return the only valid encoding of this header."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Header:
        """Return the header with this encoding; raise ValueError for any other bytes."""
        plain = json.loads(data)
        if not isinstance(plain, dict) or set(plain) != set(cls.__dataclass_fields__):
            raise ValueError("other fields")
        items = tuple(Item(**item) for item in plain.pop("items"))
        header = cls(**plain, items=items)
        header._check()
        if header.to_bytes() != data:
            raise ValueError("another form")
        return header

    def _check(self) -> None:
        check_party(self.sender)
        check_party(self.recipient)
        check_job(self.job)
        names = [item.name for item in self.items]
        sizes = [item.size for item in self.items]
        numbers = [self.number, *sizes]
        if not all(type(n) is int and 0 <= n < 2**53 for n in numbers):
            raise ValueError("sizes")
        if not all(_ITEM.fullmatch(name) for name in names) or len(set(names)) < len(names):
            raise ValueError("names")
        if not _STEP.fullmatch(self.step) or not _DIGEST.fullmatch(self.job_hash):
            raise ValueError("step")
        if self.previous != "" and not _DIGEST.fullmatch(self.previous):
            raise ValueError("previous")
        if not _CLAIM.fullmatch(self.claim):
            raise ValueError("claim")

    def bundle_size(self) -> int:
        """Return the size of all items in the file."""
        return sum(item.bundle_size() for item in self.items)


@dataclass(frozen=True, slots=True)
class Bundle:
    """A complete bundle that its sender signed; nothing of it has been decrypted yet."""

    path: Path
    header: Header
    digest: str

    def extract(self, key: PrivateKey, folder: Path, lock: bytes = b"") -> None:
        """Decrypt every item into a file of its name; the caller deletes the folder if this fails.

        ``lock`` is the second key, which a bundle with a claim needs.
        """
        header = self.header
        start = header_bytes(header)
        whole, binding = hashlib.sha256(start), hashlib.sha256(start).digest()
        with self.path.open("rb") as file:
            file.seek(len(start))
            for number, item in enumerate(header.items):
                with (folder / item.name).open("xb") as out:
                    for place, size in enumerate(item.pieces()):
                        sealed = file.read(size + OVERHEAD_BYTES)
                        whole.update(sealed)
                        out.write(
                            self._decrypted(key, sealed, piece_info(binding, number, place) + lock)
                        )
        if whole.hexdigest() != self.digest:
            raise WireError(f"{self.path.name} changed while it was read.")

    def _decrypted(self, key: PrivateKey, sealed: bytes, info: bytes) -> bytes:
        try:
            return key.decrypt(sealed, info)
        except PeerError:
            raise PeerError(
                f"{self.path.name} is addressed to {self.header.recipient!r} but was encrypted to "
                "another key. Send its sender the current public key file."
            ) from None


def write_bundle(
    path: Path,
    header: Header,
    sources: Mapping[str, Source],
    identity: Identity,
    recipient: PublicKey,
    lock: bytes = b"",
) -> str:
    """Write a bundle of these items, completely or not at all; return its digest.

    With a ``lock``, the recipient also needs that key: the key of each piece is derived from it.
    """
    if recipient.party != header.recipient or identity.name != header.sender:
        raise ValueError("A bundle is written by its sender, for its recipient's key.")
    items = tuple(Item(name, _size(source)) for name, source in sources.items())
    header = replace(header, items=items)
    header._check()
    start = header_bytes(header)
    whole, binding = hashlib.sha256(start), hashlib.sha256(start).digest()
    with atomic_files.writing(path) as out:
        out.write(start)
        for number, (item, source) in enumerate(zip(items, sources.values(), strict=True)):
            for place, piece in enumerate(_pieces(item, source)):
                sealed = recipient.encrypt(piece, piece_info(binding, number, place) + lock)
                whole.update(sealed)
                out.write(sealed)
        signature = identity.signature(signed_text(whole.digest(), identity.cert))
        out.write(with_length(identity.cert) + with_length(signature))
    return whole.hexdigest()


def open_bundle(path: Path, ca: bytes) -> Bundle:
    """Check a bundle's form, certificate and signature; decrypt and write nothing."""
    try:
        with path.open("rb") as file:
            header, digest, certificate, signature = _read(file, path)
    except OSError as error:
        raise ConfigError(f"The bundle {path} cannot be read: {error.strerror}.") from None
    signer = check_certificate(certificate, path.name, ca)
    try:
        verify(signer, signature, signed_text(digest, certificate))
    except InvalidSignature:
        raise WireError(
            f"{path.name} was altered after it was signed: its signature does not match."
        ) from None
    (by,) = alternative_names(signer)
    if by != header.sender:
        raise PeerError(f"{path.name} says that it is from {header.sender!r}; {by!r} signed it.")
    return Bundle(path, header, digest.hex())


def _read(file: BinaryIO, path: Path) -> tuple[Header, bytes, bytes, bytes]:
    size = file.seek(0, 2)
    file.seek(0)
    mark = file.read(len(MARK))
    if mark[: len(FAMILY)] != FAMILY:
        raise WireError(f"{path.name} is not an OpBoost bundle.")
    if mark != MARK:
        raise WireError(
            f"{path.name} is a bundle of version {version_of(mark)!r}; this release reads version "
            f"{VERSION!r}. Run the same release at both parties, and begin a new run (--again)."
        )
    header = _header(_sized(file, MAX_HEADER_BYTES, path), path)
    start = header_bytes(header)
    whole, left = hashlib.sha256(start), header.bundle_size()
    if len(start) + left + 8 > size:
        raise _cut(path)
    while left:
        part = file.read(min(left, 2**20))
        if not part:
            raise _cut(path)
        whole.update(part)
        left -= len(part)
    certificate, signature = (
        _sized(file, MAX_SIGNATURE_BYTES, path),
        _sized(file, MAX_SIGNATURE_BYTES, path),
    )
    if file.read(1):
        raise WireError(f"{path.name} continues after its end: bytes were added to it.")
    return header, whole.digest(), certificate, signature


def version_of(head: bytes) -> str:
    """Return the version of a bundle that begins with these bytes; empty for other bytes."""
    line = head[: len(MARK)].partition(b"\n")[0]
    return line[len(FAMILY) :].decode(errors="replace") if line.startswith(FAMILY) else ""


def _header(data: bytes, path: Path) -> Header:
    try:
        return Header.from_bytes(data)
    except (ValueError, TypeError, AttributeError, RecursionError, WireError):
        raise WireError(f"{path.name} has no readable header: it was altered.") from None


def _sized(file: BinaryIO, most: int, path: Path) -> bytes:
    length = file.read(8)
    if len(length) < 8:
        raise _cut(path)
    count = int.from_bytes(length, "big")
    if count > most:
        raise WireError(f"{path.name} has a part of {count:,} bytes; at most {most:,} are allowed.")
    data = file.read(count)
    if len(data) < count:
        raise _cut(path)
    return data


def _cut(path: Path) -> WireError:
    return WireError(f"{path.name} is cut short. Ask for it again.")


def header_bytes(header: Header) -> bytes:
    """Return the beginning of a bundle: its mark and its header."""
    return MARK + with_length(header.to_bytes())


def with_length(data: bytes) -> bytes:
    """Return the length of data in eight bytes, then the data."""
    return len(data).to_bytes(8, "big") + data


def piece_info(binding: bytes, item: int, piece: int) -> bytes:
    """Return what binds a piece to its place: the bundle's header, the item and the piece."""
    return b"opboost bundle 3\n" + binding + item.to_bytes(8, "big") + piece.to_bytes(8, "big")


def signed_text(digest: bytes, certificate: bytes) -> bytes:
    """Return what a sender signs: the digests of everything before it and of the certificate."""
    return b"opboost bundle 3\n" + digest + hashlib.sha256(certificate).digest()


def _size(source: Source) -> int:
    return len(source) if isinstance(source, bytes) else source.stat().st_size


def _pieces(item: Item, source: Source) -> Iterator[bytes]:
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        for size in item.pieces():
            piece = file.read(size)
            if len(piece) < size:
                raise OSError(f"An item {item.name!r} changed while it was read.")
            yield piece
