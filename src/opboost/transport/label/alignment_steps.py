"""The steps of a private alignment, as the label server executes them."""

from __future__ import annotations

from opboost.errors import PeerError
from opboost.protocol.messages import Points, PointsQuery, Poll, decode
from opboost.psi.curve_points import piece_count
from opboost.transport.label.job_folder import PartyFolder
from opboost.transport.label.receive_columns import answered_claim, check_their_points
from opboost.transport.label.served_job import ServedJob


class AlignmentSteps:
    """The steps that exchange points, the common rows, and the proofs that both sides know them."""

    def __init__(self, job: ServedJob) -> None:
        self._job = job

    def want(self, party: str, data: bytes) -> bytes:
        """Return a piece of the label party's points, or a request to wait until it is ready."""
        query = decode(data, PointsQuery)
        self._job.check_job(query.job)
        piece = self._job.folder / "align" / party / f"{query.piece:05d}.label"
        if self._job.held(piece.exists):
            return piece.read_bytes()
        return self._job.ack("wait")

    def points(self, party: str, data: bytes) -> bytes:
        """Store a piece of the party's points, or of the label party's points raised by it."""
        points, box = decode(data, Points), self._job.box(party)
        self._job.check_job(points.job)
        self._job.check_refusal(box)
        check_their_points(self._job.record, points)
        if box.has("aligned"):
            known = box.points()
            if known.get("tag") != points.tag.hex():
                raise PeerError("These points are not expected.")
            # All pieces were stored, but the answer was lost.  Confirm them again.
            whole = range(piece_count(points.total))
            return self._job.ack(points.step, tuple(whole))
        with self._job.lock:
            _take_points(points, data, box)
        return self._job.ack(points.step, tuple(box.pieces(points.step)))

    def aligned(self, party: str, data: bytes) -> bytes:
        """Return which rows are common, or which pieces have arrived if that is not known yet."""
        self._job.check_job(decode(data, Poll).job)
        box, record = self._job.box(party), self._job.record
        if record.align == "given":
            raise PeerError("Rows are given in this job, not aligned.")
        for step, total in (("feature", box.points().get("total")), ("raised", record.rows)):
            have = box.pieces(step)
            if not box.has("aligned") and (total is None or len(have) < piece_count(total)):
                self._job.check_refusal(box)
                return self._job.ack(step, tuple(have))
        if self._job.held(lambda: box.has("aligned") or box.has("refused")):
            self._job.check_refusal(box)
            self._job.log.write("aligned", party=party, rows=box.points()["total"])
            return box.read("aligned")
        return self._job.ack("wait")

    def prove(self, party: str, data: bytes) -> bytes:
        """Check the party's proof that it knows the common rows; return the label party's proof."""
        with self._job.lock:
            return answered_claim(self._job.record, self._job.box(party), data)


def _take_points(points: Points, data: bytes, box: PartyFolder) -> None:
    known = box.points()
    if known and known["tag"] != points.tag.hex():
        raise PeerError(
            "Points under another secret have already arrived: the party lost its state of this "
            "job. Begin a new job (--again)."
        )
    if points.step == "feature":
        if known.get("total", points.total) != points.total:
            raise PeerError("Points of another set have already arrived.")
        if not known:
            about = {"tag": points.tag.hex(), "total": points.total}
            box.note("points", about)
    elif not known:
        raise PeerError("Raised points arrived before the party's own.")
    file = box.piece(points.step, points.piece)
    if not file.exists():
        box.write(file.name, data)
    elif file.read_bytes() != data:
        raise PeerError(f"Piece {points.piece} arrived again with different points.")
