"""What both kinds of party do when rows are aligned: show points, raise the other's, match.

The label party meets each feature party alone, with a secret for each, and alone learns the
pairwise intersections; see the order of messages in ``protocol/messages.py``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from opboost._typing import IntArray
from opboost.errors import PeerError, WireError
from opboost.protocol.messages import Aligned, Points, Step
from opboost.psi.align_rules import AlignRules
from opboost.psi.blinding import Secret, at_once
from opboost.psi.common_rows import packed
from opboost.psi.curve_points import check_on_curve, piece_count, piece_of
from opboost.psi.point_matching import PointList, common_places
from opboost.psi.row_keys import Digests
from opboost.storage import atomic_files


def kept_secret(folder: Path | None, next_step: str = atomic_files.AT_LABEL_PARTY) -> Secret:
    """The secret of a folder, made at first use for its owner's eyes alone; without one, a new.

    ``next_step`` is what the owner is told to do about one that is damaged.
    """
    if folder is None:
        return Secret.fresh()
    file = folder / "secret"
    atomic_files.write_new(file, atomic_files.with_checksum(Secret.fresh().key), mode=0o600)
    return Secret(atomic_files.read_checked(file, next_step))


class PsiPeer:
    """One party's keys as it shows them to one peer, and what it does with the peer's."""

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
        """This party's blinded keys, all pieces but those that the peer has."""
        missing = [n for n in range(piece_count(self.total)) if n not in have]
        return at_once(self._piece, missing)

    def _piece(self, number: int) -> Points:
        points = self._secret.blinded(self._digests[self.order[piece_of(number, self.total)]])
        return Points(self.job, self._step, self.tag, self.total, number, points)

    def check(self, theirs: Points) -> None:
        """Refuse points of another job or step, of a second secret, or of too large a set."""
        expected = "feature" if self._step == "label" else "label"
        if theirs.job != self.job or theirs.step != expected:
            raise WireError("Points came that belong to another job or step.")
        self._rules.check_theirs(theirs.total)
        self._theirs = self._theirs or (theirs.tag, theirs.total)
        if self._theirs != (theirs.tag, theirs.total):
            raise WireError("Points of two secrets came in one job.")

    def forget_theirs(self) -> None:
        """Let the peer begin again, with another secret."""
        self._theirs = None

    def raised(self, theirs: Points, *, checked: bool = False) -> Points:
        """Return a piece of the peer's points, raised: what a feature party sends back.

        ``checked`` says that the points were found to lie on the curve.
        """
        self.check(theirs)
        points = self._secret.raised(theirs.points, checked=checked)
        return Points(self.job, "raised", self.tag, theirs.total, theirs.piece, points)

    def doubled(self, theirs: Points) -> bytes:
        """A piece of the peer's points, raised: what the label party compares."""
        self.check(theirs)
        return self._secret.raised(theirs.points)

    def met(self, raised: PointList, doubled: PointList) -> Match:
        """Return what is common to one's own points, raised by the peer, and the peer's doubled."""
        if self._theirs is None:
            raise WireError("No points came.")
        left, right = common_places(raised, doubled)
        return Match(self.order[left], right, *self._theirs)


@dataclass(frozen=True, slots=True)
class Match:
    """Rows that the label party shares with one peer, and where they stand in its points."""

    rows: IntArray
    places: IntArray
    tag: bytes
    total: int

    def told(self, job: str, rows: IntArray, share: bytes) -> Aligned:
        """What this peer is told when ``rows`` are common to all parties."""
        places = self.places[np.isin(self.rows, rows)]
        bitmap = packed(places, self.total)
        return Aligned(job, self.tag, self.total, len(places), bitmap, share)


def common_to_all(matches: Sequence[Match]) -> IntArray:
    """The label party's rows that every peer has."""
    return reduce(np.intersect1d, [match.rows for match in matches])


@dataclass(frozen=True, slots=True)
class Shown:
    """A whole set of points that a label party showed, told from any other by its digests."""

    total: int
    pieces: tuple[bytes, ...]

    @classmethod
    def of(
        cls, job: str, theirs: Iterable[Points], rules: AlignRules, aside: Path | None = None
    ) -> Shown:
        """Look at all pieces in their order, before any of them is raised.

        Too many are refused, and points of two sets, of no curve, or that stand twice.  ``aside``
        is a folder for what is compared, 40 bytes per point.
        """
        with PointList(aside) as seen:
            return cls._of(job, theirs, rules, seen)

    @classmethod
    def _of(cls, job: str, theirs: Iterable[Points], rules: AlignRules, seen: PointList) -> Shown:
        digests: list[bytes] = []
        first: Points | None = None
        for points in theirs:
            if (points.job, points.step) != (job, "label"):
                raise WireError("Points came that belong to another job or step.")
            rules.check_theirs(points.total)
            first = first or points
            if (points.tag, points.total) != (first.tag, first.total):
                raise WireError("Points of two secrets came in one job.")
            if points.piece != len(digests):
                raise WireError("Points stand in another's place.")
            check_on_curve(points.points)
            seen.add(points.points)
            digests.append(_digest(points))
        if first is None or len(digests) != piece_count(first.total):
            raise WireError("Some of the label party's points are lacking.")
        seen.check_distinct()
        return cls(first.total, tuple(digests))

    @property
    def digest(self) -> str:
        """One digest of the whole set."""
        return hashlib.sha256(b"".join(self.pieces)).hexdigest()

    def check(self, points: Points) -> None:
        """Refuse a piece that is not the one of this set."""
        if self.pieces[points.piece : points.piece + 1] != (_digest(points),):
            raise WireError("Points came that differ from those that were shown before.")


def _digest(points: Points) -> bytes:
    place = f"{points.total} {points.piece}\0".encode()
    return hashlib.sha256(place + points.tag + points.points).digest()


def check_aligned(aligned: Aligned, side: PsiPeer) -> None:
    """Refuse an answer to other points than this side's."""
    if (aligned.job, aligned.tag, aligned.total) != (side.job, side.tag, side.total):
        raise PeerError(
            "The alignment is one of other points: this party's state of the job was lost. Let "
            "the label party begin a new job (--again)."
        )
