"""A proof by two parties that they know the same rows; it offers neither anything to guess against.

Each hashes its digest of the rows to a point of the curve and sends that point raised by a fresh
secret.  Raised by both secrets, the two are equal iff the digests are, and only a party that sent
the point of the right digest can compute the outcome.  This is a balanced password-authenticated
key exchange, in which the digest is the password: CPace (draft-irtf-cfrg-cpace).  A party that
cheats chooses one digest before it sends its point and learns whether the other's is the same; what
it got lets it test no second one.  A digest under a key that both know would let it test as many as
it likes.
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
    """What follows from an exchange: a proof by each side, and a key for what is sent."""

    feature: bytes
    label: bytes
    lock: bytes

    @classmethod
    def of(cls, key: bytes) -> Agreed:
        """The three digests of what both sides computed."""
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
    """What the other side gets: the point of the digest, raised by the secret."""

    @classmethod
    def of(cls, secret: Secret, ids: bytes) -> RowProof:
        """The half of a party whose rows have this digest."""
        return cls(secret, ids, secret.blinded(np.frombuffer(ids, np.uint8).reshape(1, 32)))

    def with_feature(self, job: str, theirs: bytes) -> Agreed:
        """The outcome at the label party, of the feature party's share."""
        return self._agreed(job, self.share, theirs, theirs)

    def with_label(self, job: str, theirs: bytes) -> Agreed:
        """The outcome at the feature party, of the label party's share."""
        return self._agreed(job, theirs, self.share, theirs)

    def _agreed(self, job: str, label: bytes, feature: bytes, theirs: bytes) -> Agreed:
        both = self.secret.raised(theirs)
        parts = framed((_DOMAIN, job.encode(), label, feature, both))
        return Agreed.of(hashlib.sha256(parts).digest())

    def answered(self, claim: Claim, rows: int) -> Agreed:
        """The outcome at the label party, if the feature party proves that it knows the rows."""
        agreed = self.with_feature(claim.job, claim.share)
        if claim.rows != rows or not hmac.compare_digest(agreed.feature, claim.proof):
            raise differing_rows(claim.party)
        return agreed


def differing_rows(party: str) -> PeerError:
    """What is said of a feature party that does not know the common rows."""
    return PeerError(
        f"Party {party!r} does not prove that it has the rows which are common: its table changed "
        "since the alignment began, or it does not follow it. Begin a new job (--again)."
    )


@dataclass(frozen=True, slots=True)
class Lock:
    """What locks the columns that are sent by bundle, and this party's half of the proof."""

    share: bytes
    agreed: Agreed

    @property
    def claim(self) -> bytes:
        """What the label party needs to open it, if it knows the rows."""
        return self.share + self.agreed.feature

    def to_bytes(self) -> bytes:
        """As a file holds it."""
        return self.claim + self.agreed.label + self.agreed.lock

    @classmethod
    def from_bytes(cls, data: bytes, file: Path) -> Lock:
        """From a file; one of another length is refused by its name."""
        if len(data) != POINT_BYTES + 3 * 32:
            raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY)
        feature, label, lock = (data[POINT_BYTES + i * 32 :][:32] for i in range(3))
        return cls(data[:POINT_BYTES], Agreed(feature, label, lock))
