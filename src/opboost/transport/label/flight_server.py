"""The label party's Flight server, which checks incoming messages and writes them to disk.

When it refuses a call, it returns a sentence to the sender and writes a line to the log.  The other
parties do not notice.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.flight as flight

from opboost.errors import WireError
from opboost.protocol.envelope import MAX_MESSAGE_BYTES
from opboost.transport.label.alignment_steps import AlignmentSteps
from opboost.transport.label.call_admission import (
    HEADERS,
    MAX_CALLS,
    CallAdmission,
    HeaderFactory,
)
from opboost.transport.label.closing_steps import ClosingSteps
from opboost.transport.label.connection_limits import ConnectionLimits
from opboost.transport.label.job_folder import PILOT, JobRecord
from opboost.transport.label.login_steps import LoginSteps
from opboost.transport.label.logins import Logins
from opboost.transport.label.release_steps import ReleaseSteps, remove_partial_columns
from opboost.transport.label.served_job import ServedJob
from opboost.transport.shared.logs import LINES_PER_MINUTE, Log

_NUMBER = re.compile(r"[0-9]{1,9}")

Step = Callable[[str, bytes], bytes]
"""A function from a party's name and its message to the answer."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The label server's settings, which the training process passes as JSON."""

    job: Path
    listen: str
    ca: str | None
    cert: str | None
    key: str | None
    memory_mb: int


class LabelServer(flight.FlightServerBase):  # type: ignore[misc]
    """The Flight server of one job, which admits calls and passes each to its step."""

    def __init__(self, setting: Setting) -> None:
        log = Log(setting.job / "gate.jsonl", a_minute=LINES_PER_MINUTE)
        ca = None if setting.ca is None else setting.ca.encode()
        job = self._job = ServedJob(setting.job, JobRecord.load(setting.job), log, ca)
        remove_partial_columns(setting.job)
        self.limits = ConnectionLimits(
            log,
            held=setting.memory_mb * 2**20 // 4,
            calls=2 * MAX_CALLS * len(job.record.parties),  # before and after a login
        )
        logins = Logins()
        self._admission = CallAdmission(job, logins, self.limits)
        self._logging_in = LoginSteps(job, logins, (setting.cert or "").encode())
        self._release, self._pilot = ReleaseSteps(job), ReleaseSteps(job, pilot=True)
        self._steps = _steps(AlignmentSteps(job), self._release, self._pilot, ClosingSteps(job))
        reading = {HEADERS: HeaderFactory()}
        if setting.ca is None:
            super().__init__(f"grpc+tcp://{setting.listen}", middleware=reading)
            return
        super().__init__(
            f"grpc+tls://{setting.listen}",
            tls_certificates=[(setting.cert, setting.key)],
            verify_client=True,
            root_certificates=setting.ca,
            middleware=reading,
        )

    def shutdown(self) -> None:
        """Refuse new calls, wait for open ones, and stop watching connections."""
        super().shutdown()
        self.limits.stop()

    def do_action(
        self, context: flight.ServerCallContext, action: flight.Action
    ) -> Iterator[flight.Result]:
        """Take one small message and return its answer."""
        peer = context.peer()
        steps: dict[str, Step] = {
            "hello": partial(self._logging_in.hello, peer),
            "login": partial(self._logging_in.login, peer),
            **self._steps,
        }
        self.limits.took(peer, action.body.size)
        step = action.type if action.type in steps else "?"
        with self._admission.call(context, step, action.body) as party:
            if step == "?":
                raise WireError("There is no such step.")
            if action.body.size > MAX_MESSAGE_BYTES:
                raise WireError(f"A message of {action.body.size:,} bytes is too large.")
            out = steps[step](party, action.body.to_pybytes())
            # The call counts until its answer is sent, so a client that never reads soon reaches
            # its limit.
            yield flight.Result(pa.py_buffer(out))

    def do_put(
        self,
        context: flight.ServerCallContext,
        descriptor: flight.FlightDescriptor,
        reader: flight.MetadataRecordBatchReader,
        writer: flight.FlightMetadataWriter,
    ) -> None:
        """Receive the stream of one column."""
        with self._admission.call(context, "codes") as party:
            path = [part.decode(errors="replace") for part in descriptor.path or ()]
            job = self._job.record.job
            named = len(path) == 2 or (len(path) == 3 and path[2] == PILOT)
            if not named or path[0] != job or not _NUMBER.fullmatch(path[1]):
                raise WireError("A column's stream must name this job and the column's number.")
            release = self._release if len(path) == 2 else self._pilot
            notes = reader.schema.metadata or {}
            took = partial(self.limits.took, context.peer())
            took(sum(map(len, notes.values())))
            release.column(party, int(path[1]), reader, took)


def _steps(
    alignment: AlignmentSteps, release: ReleaseSteps, pilot: ReleaseSteps, closing: ClosingSteps
) -> dict[str, Step]:
    """Return the steps that a logged-in party may call, by name."""
    return {
        "want": alignment.want,
        "points": alignment.points,
        "aligned": alignment.aligned,
        "prove": alignment.prove,
        "rows": release.rows,
        "pilot schema": pilot.schema,
        "pilot receipt": pilot.receipt,
        "pilot sent": pilot.sent,
        "weights": pilot.weights,
        "score": release.score,
        "declined": release.declined,
        "schema": release.schema,
        "receipt": release.receipt,
        "sent": release.sent,
        "poll": closing.poll,
        "answer": closing.answer,
        "heard": closing.heard,
        "refuse": closing.refuse,
    }
