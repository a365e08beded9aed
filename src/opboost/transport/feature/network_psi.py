"""The feature party's side of a networked alignment: fetch points, and send missing ones."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Protocol, TypeVar

from opboost.errors import PeerError
from opboost.parties.feature.feature_psi import FeaturePsi
from opboost.protocol.messages import Ack, Aligned, Points, PointsQuery, Poll, Proof
from opboost.psi.curve_points import POINT_BYTES, piece_count, piece_of
from opboost.psi.point_matching import MAX_BYTES_IN_MEMORY

M = TypeVar("M")


POLL_SECONDS = 0.5
"""The least time between two polls, in case the label party answers them at once."""


def rest(asked: float) -> None:
    """Sleep until ``POLL_SECONDS`` have passed since ``asked``, the time of the last poll."""
    time.sleep(max(0.0, asked + POLL_SECONDS - time.monotonic()))


class Ask(Protocol):
    """A function that sends one message and returns one of the expected kinds."""

    def __call__(self, step: str, message: object, *expected: type[M]) -> M:
        """Call the label party."""
        ...


class PsiClient:
    """An alignment with the label party over a connection that may break at any point."""

    def __init__(
        self,
        psi_session: FeaturePsi,
        job: str,
        ask: Ask,
        *,
        wait: float,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._psi_session, self._job, self._ask, self._progress = psi_session, job, ask, progress
        self._end = time.monotonic() + wait

    def align(self) -> Aligned:
        """Send points until the label party has all of them; save and return the common rows.

        All of the label party's points arrive before any point is sent, so that it cannot choose
        its points by the answers to earlier ones.
        """
        with KeptPoints(self._psi_session.aside) as theirs:
            return self._aligned(theirs)

    def _aligned(self, theirs: KeptPoints) -> Aligned:
        asked_for: set[str] = set()
        while time.monotonic() < self._end:
            asked = time.monotonic()
            said: object = self._ask("aligned", Poll(self._job), Aligned, Ack)
            if isinstance(said, Aligned):
                claim = self._psi_session.claim(said)
                self._psi_session.finish(said, self._ask("prove", claim, Proof))
                return said
            assert isinstance(said, Ack)
            if not theirs.whole:
                self._psi_session.begin(self._all_fetched(theirs))
            if said.step == "feature":
                self._show("IDs blinded", self._psi_session.pieces(said.columns))
            elif said.step == "raised":
                missing = (n for n in range(len(theirs)) if n not in said.columns)
                raised = self._psi_session.raised(map(theirs.piece, missing))
                self._show("IDs of the label party raised", raised)
            if said.step in asked_for:
                rest(asked)
            asked_for.add(said.step)
        raise PeerError("The other parties did not join in time. Join again later.")

    def _all_fetched(self, kept: KeptPoints) -> Iterator[Points]:
        """Fetch and keep all of the label party's points; yield them piece by piece."""
        while not kept.whole:
            points = self._fetched(len(kept))
            yield points  # the caller may refuse them here
            kept.add(points)

    def _fetched(self, number: int) -> Points:
        """Wait for a piece of the label party's points, and return it."""
        while time.monotonic() < self._end:
            asked = time.monotonic()
            said: object = self._ask("want", PointsQuery(self._job, number), Points, Ack)
            if isinstance(said, Points):
                if said.piece != number:
                    raise PeerError(
                        "The label party sent a piece of points that was not requested."
                    )
                return said
            rest(asked)
        raise PeerError("The label party's points did not arrive in time. Join again later.")

    def _show(self, what: str, pieces: Iterator[Points]) -> None:
        for piece in pieces:
            self._ask("points", piece, Ack)
            self._progress(what, piece.piece + 1, piece_count(piece.total))


class KeptPoints:
    """The label party's points, kept until they are raised; in a temporary file if there are many.

    Law: ``piece(n)`` equals the n-th of the pieces that were added.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.SpooledTemporaryFile(MAX_BYTES_IN_MEMORY, dir=str(folder))  # noqa: SIM115
        self._first: Points | None = None
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def whole(self) -> bool:
        """Whether all pieces have arrived."""
        return self._first is not None and self._count == piece_count(self._first.total)

    def add(self, points: Points) -> None:
        """Keep the next piece."""
        self._first = self._first or points
        self._file.seek(0, 2)
        self._file.write(points.points)
        self._count += 1

    def piece(self, number: int) -> Points:
        """Return a piece again."""
        assert self._first is not None
        place = piece_of(number, self._first.total)
        self._file.seek(place.start * POINT_BYTES)
        points = self._file.read((place.stop - place.start) * POINT_BYTES)
        return replace(self._first, piece=number, points=points)

    def __enter__(self) -> KeptPoints:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()
