"""A running networked job of the label party: its label server, and channels to the parties."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import LOOK_SECONDS, JobRecord, PartyFolder, status
from opboost.transport.label.job_folder_channel import JobFolderChannel
from opboost.transport.label.label_job import current
from opboost.transport.label.label_server_process import LabelServerProcess
from opboost.transport.shared.job_integrity import check
from opboost.transport.shared.logs import Log, resumed
from opboost.transport.shared.tls import Identity, check_loopback, read_identity

LINGER_SECONDS = 60.0
"""Seconds for which the label server stays up after a job, so that parties learn it is done."""

Watch = Callable[[dict[str, Any]], None]
"""A callback that receives the job's status, at most about ten times per second."""

Opened = Callable[[str], None]
"""A callback that receives the address at which the label server listens."""

Say = Callable[[str], None]
"""A callback that receives messages for the operator."""


def checked_identity(config: LabelConfig, *, insecure_plaintext: bool) -> Identity | None:
    """Return the label party's identity, or None in plaintext; require an address to listen on."""
    if config.party.listen is None:
        raise ConfigError('Add listen = "0.0.0.0:8815" to [party], where feature parties connect.')
    if insecure_plaintext:
        check_loopback(config.party.listen)
        return None
    return read_identity(config.tls, config.party.name)


@dataclass(frozen=True, slots=True)
class NetworkJob:
    """A job of the label party, from opening its server until every party knows that it is done."""

    folder: Path
    record: JobRecord
    log: Log

    @classmethod
    def of(cls, config: LabelConfig, folder: Path) -> NetworkJob:
        """Load a folder's job, updated with the current settings of the label party's file."""
        record = replace(JobRecord.load(folder), **current(config))
        record.save(folder)
        return cls(folder, record, Log(folder / "label.jsonl"))

    def channels(self, wait: float, watch: Watch) -> list[JobFolderChannel]:
        """Return a channel to each party that takes part; each waits up to ``wait`` seconds."""
        look = _watching(self.folder, self.record, self.log, watch)
        return [
            JobFolderChannel(self.folder, name, wait=wait, watch=look)
            for name in self.record.active
        ]

    def report_resumed(self, half_written: int, say: Say) -> None:
        """Report that the job is resumed, in which phase, and what a killed run left behind."""
        lost = check(self.folder, atomic_files.AT_LABEL_PARTY, ("*.label", "*.doubled"))
        phase = str(status(self.folder)["phase"])
        self.log.write(
            "resumed", job=self.record.job, phase=phase, half_written=half_written, damaged=lost
        )
        say(resumed(self.record.job, phase, half_written, lost))

    def open(
        self, label_server: LabelServerProcess, config: LabelConfig, identity: Identity | None
    ) -> str:
        """Open the label server to the parties and return its address."""
        record = self.record
        self.log.write("serving", job=record.job, rows=record.rows, parties=list(record.parties))
        return label_server.open(
            {
                "job": str(self.folder),
                "listen": config.party.listen,
                "ca": identity and identity.ca.decode(),
                "cert": identity and identity.cert.decode(),
                "key": identity and identity.key.decode(),
                "memory_mb": config.limits.memory_mb,
            }
        )

    def goodbye(
        self,
        label_server: LabelServerProcess,
        config: LabelConfig,
        identity: Identity | None,
        say: Say,
    ) -> None:
        """If a job was killed before all parties knew that it was done, reopen its label server."""
        if self.record.way != "network" or (self.folder / "ended").exists():
            return
        names = ", ".join(self.unaware()) or "no party"
        say(f"Job {self.record.job} is done; {names} has yet to learn that.")
        if self.unaware():
            self.open(label_server, config, identity)
        self.end()

    def end(self) -> None:
        """Wait until every party knows that the job is done, but at most ``LINGER_SECONDS``."""
        self.log.write("done", job=self.record.job)
        end = time.monotonic() + LINGER_SECONDS
        while self.unaware() and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        atomic_files.clear(self.folder)
        atomic_files.write(self.folder / "ended", b"")

    def unaware(self) -> list[str]:
        """Return the parties that do not know yet that the job is done."""
        return [n for n in self.record.active if not PartyFolder(self.folder, n).has("farewell")]


def _watching(folder: Path, record: JobRecord, log: Log, watch: Watch) -> Callable[[], None]:
    last, phase = 0.0, ""

    def look() -> None:
        nonlocal last, phase
        if time.monotonic() - last > 0.1:
            last, where = time.monotonic(), status(folder)
            if where["phase"] != phase:
                phase = where["phase"]
                log.write("phase", job=record.job, phase=phase)
            watch(where)

    return look
