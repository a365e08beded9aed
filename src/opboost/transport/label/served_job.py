"""The job that a label server serves: its folder, and what all steps use."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from opboost.errors import PeerError
from opboost.protocol.messages import Ack, encode
from opboost.runtime.threads import most_threads
from opboost.transport.label.fair_turns import FairTurns
from opboost.transport.label.job_folder import (
    HOLD_SECONDS,
    LOOK_SECONDS,
    JobRecord,
    PartyFolder,
)
from opboost.transport.shared.logs import Log


@dataclass(frozen=True, slots=True)
class ServedJob:
    """A running job, as the label server sees it."""

    folder: Path
    record: JobRecord
    log: Log
    ca: bytes | None
    """The authority that signs the parties' certificates; None in plaintext on loopback."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    turns: FairTurns = field(default_factory=lambda: FairTurns(most_threads()))

    def box(self, party: str) -> PartyFolder:
        """Return the folder of a party."""
        return PartyFolder(self.folder, party)

    def ack(self, step: str, there: tuple[int, ...] = ()) -> bytes:
        """Return the answer that a step is done or must wait, and which parts have arrived."""
        return encode(Ack(self.record.job, step, there))

    def check_job(self, job: str) -> None:
        """Refuse a message from another job."""
        if job != self.record.job:
            raise PeerError("The label party works on another job now. Join again.")

    def check_refusal(self, box: PartyFolder) -> None:
        """Tell a party, once, why the label party refused what it sent or ended the job."""
        with self.lock:
            why = box.take_refusal()
        if why:
            raise PeerError(why)

    def held(self, there: Callable[[], bool]) -> bool:
        """Wait up to ``HOLD_SECONDS`` for a condition, and return whether it holds."""
        end = time.monotonic() + HOLD_SECONDS
        while not there():
            if time.monotonic() > end:
                return False
            time.sleep(LOOK_SECONDS)
        return True
