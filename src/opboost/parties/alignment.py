"""The steps of private set intersection that both kinds of party share.

Each party sends its row keys as blinded points on a curve, and raises the peer's points by its own
secret (see ``psi/blinding.py``).  The label party matches the results.  It runs a separate exchange
with each feature party, with a different secret for each, and is the only one to learn the pairwise
intersections.  ``protocol/messages.py`` gives the order of messages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opboost._typing import IntArray
from opboost.errors import PeerError, WireError
from opboost.protocol.messages import Aligned, Points, Step
from opboost.psi.align_rules import AlignRules
from opboost.psi.blinding import Secret, at_once
from opboost.psi.common_rows import marked, packed
from opboost.psi.curve_points import check_on_curve, piece_count, piece_of
from opboost.psi.point_matching import PointList, common_places
from opboost.psi.row_keys import Digests
from opboost.storage import atomic_files


def kept_secret(folder: Path | None, next_step: str = atomic_files.AT_LABEL_PARTY) -> Secret:
    """Return the secret kept in a folder, created on first use and readable by its owner only.

    Without a folder, return a fresh secret.  ``next_step`` tells the owner what to do about a
    damaged secret file.
    """
    if folder is None:
        return Secret.fresh()
    file = folder / "secret"
    atomic_files.write_new(file, atomic_files.with_checksum(Secret.fresh().key), mode=0o600)
    return Secret(atomic_files.read_checked(file, next_step))


class PsiPeer:
    """One party's side of an exchange with one peer: its keys, and work on the peer's points."""

    def __init__(
        self, job: str, step: Step, secret: Secret, digests: Digests, rules: AlignRules
    ) -> None:
        rules.check_own(len(digests))
        self.job, self.total, self.tag = job, len(digests), secret.tag
        self._step, self._secret, self._rules = step, secret, rules
        self.order = secret.order(digests)
        self._digests = digests
        self._theirs: tuple[bytes, int] | None = None

    def pieces(self, have: Collection[int] = ()) -> Iterator[Points]:
        """Yield this party's blinded keys in pieces, without those that the peer already has."""
        missing = [n for n in range(piece_count(self.total)) if n not in have]
        return at_once(self._piece, missing)

    def _piece(self, number: int) -> Points:
        points = self._secret.blinded(self._digests[self.order[piece_of(number, self.total)]])
        return Points(self.job, self._step, self.tag, self.total, number, points)

    def check(self, theirs: Points) -> None:
        """Refuse points of another job or step, under a second secret, or of too large a set."""
        expected = "feature" if self._step == "label" else "label"
        if theirs.job != self.job or theirs.step != expected:
            raise WireError("These points belong to another job or step.")
        self._rules.check_theirs(theirs.total)
        self._theirs = self._theirs or (theirs.tag, theirs.total)
        if self._theirs != (theirs.tag, theirs.total):
            raise WireError("Points under two secrets arrived in one job.")

    def forget_theirs(self) -> None:
        """Let the peer start again with another secret."""
        self._theirs = None

    def raised(self, theirs: Points, *, checked: bool = False) -> Points:
        """Return one piece of the peer's points, raised by this feature party's secret.

        ``checked`` says that the points are already known to lie on the curve.
        """
        self.check(theirs)
        points = self._secret.raised(theirs.points, checked=checked)
        return Points(self.job, "raised", self.tag, theirs.total, theirs.piece, points)

    def doubled(self, theirs: Points) -> bytes:
        """Return one piece of the peer's points, raised by this label party's secret, as bytes."""
        self.check(theirs)
        return self._secret.raised(theirs.points)

    def met(self, raised: PointList, doubled: PointList) -> Match:
        """Match this party's points, raised by the peer, with the peer's, raised by this party."""
        if self._theirs is None:
            raise WireError("No points arrived.")
        left, right = common_places(raised, doubled)
        return Match(self.order[left], right, *self._theirs)


@dataclass(frozen=True, slots=True)
class Match:
    """Rows that the label party shares with one peer, and their places in the peer's points."""

    rows: IntArray
    places: IntArray
    tag: bytes
    total: int

    def told(self, job: str, rows: IntArray, share: bytes) -> Aligned:
        """Return the message that tells this peer which rows are common to all parties.

        ``rows`` are the label party's common rows.
        """
        places = self.places[np.isin(self.rows, rows)]
        bitmap = packed(places, self.total)
        return Aligned(job, self.tag, self.total, len(places), bitmap, share)


def common_to_all(matches: Sequence[Match], total: int) -> IntArray:
    """Return which of the label party's ``total`` rows every peer has, in ascending order."""
    common = np.ones(total, dtype=np.bool_)
    for match in matches:
        common &= marked(match.rows, total)
    return np.flatnonzero(common)


@dataclass(frozen=True, slots=True)
class Shown:
    """The complete set of points that a label party sent, identified by its pieces' digests."""

    total: int
    pieces: tuple[bytes, ...]

    @classmethod
    def of(
        cls, job: str, theirs: Iterable[Points], rules: AlignRules, aside: Path | None = None
    ) -> Shown:
        """Read and check all pieces in order, before any of them is raised.

        Refuse too many points, points of two sets, points off the curve, and duplicates.  ``aside``
        is a folder for temporary files of 40 bytes per point.
        """
        with PointList(aside) as seen:
            return cls._of(job, theirs, rules, seen)

    @classmethod
    def _of(cls, job: str, theirs: Iterable[Points], rules: AlignRules, seen: PointList) -> Shown:
        digests: list[bytes] = []
        first: Points | None = None
        for points in theirs:
            if (points.job, points.step) != (job, "label"):
                raise WireError("These points belong to another job or step.")
            rules.check_theirs(points.total)
            first = first or points
            if (points.tag, points.total) != (first.tag, first.total):
                raise WireError("Points under two secrets arrived in one job.")
            if points.piece != len(digests):
                raise WireError("A piece of points is out of order.")
            check_on_curve(points.points)
            seen.add(points.points)
            digests.append(_digest(points))
        if first is None or len(digests) != piece_count(first.total):
            raise WireError("Some of the label party's points are missing.")
        seen.check_distinct()
        return cls(first.total, tuple(digests))

    @property
    def digest(self) -> str:
        """The digest of the whole set."""
        return hashlib.sha256(b"".join(self.pieces)).hexdigest()

    def check(self, points: Points) -> None:
        """Refuse a piece that does not belong to this set."""
        if self.pieces[points.piece : points.piece + 1] != (_digest(points),):
            raise WireError("These points differ from those that were shown before.")


def _digest(points: Points) -> bytes:
    place = f"{points.total} {points.piece}\0".encode()
    return hashlib.sha256(place + points.tag + points.points).digest()


def check_aligned(aligned: Aligned, side: PsiPeer) -> None:
    """Refuse an alignment result for points other than this party's."""
    if (aligned.job, aligned.tag, aligned.total) != (side.job, side.tag, side.total):
        raise PeerError(
            "The alignment is about other points: this party lost its state of the job. Ask the "
            "label party to begin a new job (--again)."
        )
