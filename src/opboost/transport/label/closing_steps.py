"""The label server's steps after a release: split query and farewell."""

from __future__ import annotations

import time

from opboost.errors import PeerError
from opboost.protocol.messages import Ack, Farewell, Poll, decode, encode
from opboost.transport.label.job_folder import HOLD_SECONDS, LOOK_SECONDS, is_done
from opboost.transport.label.receive_columns import check_split_values
from opboost.transport.label.served_job import ServedJob


class ClosingSteps:
    """The steps ``poll`` (for a split query), ``answer``, ``heard`` and ``refuse``.

    With ``heard``, a party confirms that it knows that the job is done.  With ``refuse``, it says
    that it does not release, and why.
    """

    def __init__(self, job: ServedJob) -> None:
        self._job = job

    def poll(self, party: str, data: bytes) -> bytes:
        """Return the split query, or a farewell when the job is done."""
        self._job.check_job(decode(data, Poll).job)
        box = self._job.box(party)
        end = time.monotonic() + HOLD_SECONDS
        while time.monotonic() < end:
            if is_done(self._job.folder):
                return encode(Farewell(self._job.record.job))
            self._job.check_refusal(box)
            if box.has("query") and not box.has("answer"):
                return box.read("query")
            time.sleep(LOOK_SECONDS)
        return self._job.ack("wait")

    def answer(self, party: str, data: bytes) -> bytes:
        """Store the values behind the cuts of the split query."""
        box = self._job.box(party)
        query = check_split_values(self._job.record, box, data)
        box.write("answer", data)
        self._job.log.write("answered", party=party, cuts=sum(len(c.codes) for c in query.columns))
        return self._job.ack("answer")

    def refuse(self, party: str, data: bytes) -> bytes:
        """Note that the party refuses to release, and why; the job waits for its return."""
        said, box = decode(data, Ack), self._job.box(party)
        self._job.check_job(said.job)
        if box.has("sent"):
            raise PeerError("The release has already arrived.")
        box.note_refusal(said.step)
        self._job.log.write("party refused", party=party, reason=said.step)
        return self._job.ack("refuse")

    def heard(self, party: str, data: bytes) -> bytes:
        """Note that the party knows that the job is done, so the server need not wait for it."""
        self._job.check_job(decode(data, Ack).job)
        if not is_done(self._job.folder):
            raise PeerError("The job is not done yet.")
        self._job.box(party).write("farewell", b"")
        return self._job.ack("heard")
