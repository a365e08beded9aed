"""The feature party's side of a networked alignment: it asks what is lacking, and sends that."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from opboost.errors import PeerError
from opboost.parties.feature.feature_psi import FeaturePsi
from opboost.protocol.messages import Ack, Aligned, Points, PointsQuery, Poll, Proof
from opboost.psi.curve_points import piece_count

M = TypeVar("M")


POLL_SECONDS = 0.5
"""Seconds between two questions "is there something to do?", which the label party should hold."""


def rest(asked: float) -> None:
    """Wait a little if the last question was answered at once: an answer may be "not yet"."""
    time.sleep(max(0.0, asked + POLL_SECONDS - time.monotonic()))


class Ask(Protocol):
    """One message out, one of the expected kinds back."""

    def __call__(self, step: str, message: object, *expected: type[M]) -> M:
        """Call the label party."""
        ...


class PsiClient:
    """A meeting with the label party over a connection that may break at any point."""

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
        """Send points until the label party has all, and take note of the common rows.

        All of the label party's points are here before the first leaves: it cannot choose later
        ones by what came back.
        """
        theirs: list[Points] = []
        asked_for: set[str] = set()
        while time.monotonic() < self._end:
            asked = time.monotonic()
            said: object = self._ask("aligned", Poll(self._job), Aligned, Ack)
            if isinstance(said, Aligned):
                claim = self._psi_session.claim(said)
                self._psi_session.finish(said, self._ask("prove", claim, Proof))
                return said
            assert isinstance(said, Ack)
            if not theirs:
                self._psi_session.begin(self._all_fetched(theirs))
            if said.step == "feature":
                self._show("IDs blinded", self._psi_session.pieces(said.columns))
            elif said.step == "raised":
                missing = [points for points in theirs if points.piece not in said.columns]
                raised = self._psi_session.raised(missing)
                self._show("IDs of the label party raised", raised)
            if said.step in asked_for:
                rest(asked)
            asked_for.add(said.step)
        raise PeerError("The other parties did not come in time. Join again later.")

    def _all_fetched(self, kept: list[Points]) -> Iterator[Points]:
        """All of the label party's points, one piece after the other."""
        while not kept or len(kept) < piece_count(kept[0].total):
            kept.append(self._fetched(len(kept)))
            yield kept[-1]

    def _fetched(self, number: int) -> Points:
        """A piece of the label party's points, when it is made."""
        while time.monotonic() < self._end:
            asked = time.monotonic()
            said: object = self._ask("want", PointsQuery(self._job, number), Points, Ack)
            if isinstance(said, Points):
                if said.piece != number:
                    raise PeerError("The label party sent another piece of points than asked for.")
                return said
            rest(asked)
        raise PeerError("The label party's points did not come in time. Join again later.")

    def _show(self, what: str, pieces: Iterator[Points]) -> None:
        for piece in pieces:
            self._ask("points", piece, Ack)
            self._progress(what, piece.piece + 1, piece_count(piece.total))
