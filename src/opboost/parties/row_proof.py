"""A proof by two parties that they know the same rows, in which neither can test guesses.

Each party hashes its digest of the rows to a point of the curve, and sends that point raised by a
fresh secret.  Raised by both secrets, the two points are equal iff the digests are, and only a
party that sent the point of the right digest can compute the outcome.  This is a balanced
password-authenticated key exchange with the digest as the password: CPace (draft-irtf-cfrg-cpace).
A party that cheats must choose one digest before it sends its point, and learns only whether the
other party's digest is the same.  It cannot use what it received to test a second digest.  If the
parties compared digests under a common key instead, a party that cheats could test as many guesses
as it likes.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opboost.errors import PeerError
from opboost.protocol.messages import Claim
from opboost.psi.blinding import Secret
from opboost.psi.curve_points import POINT_BYTES
from opboost.storage import atomic_files
from opboost.storage.framing import framed

_DOMAIN = b"opboost rows in common 1"


@dataclass(frozen=True, slots=True)
class Agreed:
    """The outcome of an exchange: a proof by each side, and a key for the columns that are sent."""

    feature: bytes
    label: bytes
    lock: bytes

    @classmethod
    def of(cls, key: bytes) -> Agreed:
        """Derive the two proofs and the key from what both sides computed."""
        return cls(*(hmac.digest(key, use, "sha256") for use in (b"feature", b"label", b"lock")))


@dataclass(frozen=True, slots=True)
class RowProof:
    """One side's half: its secret for this exchange, and its digest of the rows.

    >>> ours, theirs = (
    ...     RowProof.of(Secret.fresh(), bytes(32)),
    ...     RowProof.of(Secret.fresh(), bytes(32)),
    ... )
    >>> job = "20260102T030405Z-01020304"
    >>> ours.with_feature(job, theirs.share) == theirs.with_label(job, ours.share)
    True
    """

    secret: Secret
    ids: bytes
    share: bytes
    """The point of the digest raised by the secret, which the other side receives."""

    @classmethod
    def of(cls, secret: Secret, ids: bytes) -> RowProof:
        """Build the half of a party whose rows have this digest."""
        return cls(secret, ids, secret.blinded(np.frombuffer(ids, np.uint8).reshape(1, 32)))

    def with_feature(self, job: str, theirs: bytes) -> Agreed:
        """Return the outcome at the label party, given the feature party's share."""
        return self._agreed(job, self.share, theirs, theirs)

    def with_label(self, job: str, theirs: bytes) -> Agreed:
        """Return the outcome at the feature party, given the label party's share."""
        return self._agreed(job, theirs, self.share, theirs)

    def _agreed(self, job: str, label: bytes, feature: bytes, theirs: bytes) -> Agreed:
        both = self.secret.raised(theirs)
        parts = framed((_DOMAIN, job.encode(), label, feature, both))
        return Agreed.of(hashlib.sha256(parts).digest())

    def answered(self, claim: Claim, rows: int) -> Agreed:
        """Return the outcome at the label party; refuse a feature party that fails the proof."""
        agreed = self.with_feature(claim.job, claim.share)
        if claim.rows != rows or not hmac.compare_digest(agreed.feature, claim.proof):
            raise differing_rows(claim.party)
        return agreed


def differing_rows(party: str) -> PeerError:
    """Return the error about a feature party that does not know the common rows."""
    return PeerError(
        f"Party {party!r} does not prove that it has the common rows: its table changed since the "
        "alignment began, or it does not follow the protocol. Begin a new job (--again)."
    )


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of columns that are sent by bundle, and this party's half of the proof."""

    share: bytes
    agreed: Agreed

    @property
    def claim(self) -> bytes:
        """The bytes that the label party needs to open the lock, if it knows the rows."""
        return self.share + self.agreed.feature

    def to_bytes(self) -> bytes:
        """Return the lock's file content."""
        return self.claim + self.agreed.label + self.agreed.lock

    @classmethod
    def from_bytes(cls, data: bytes, file: Path) -> Lock:
        """Read the lock from a file's content; refuse another length, naming the file."""
        if len(data) != POINT_BYTES + 3 * 32:
            raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY)
        feature, label, lock = (data[POINT_BYTES + i * 32 :][:32] for i in range(3))
        return cls(data[:POINT_BYTES], Agreed(feature, label, lock))
