"""The label party's side of a job on disk: what each feature party sent, what it is asked.

A file is there when it is whole, so a job's phase is read off its folder and every step may be
repeated.  The gate writes what came in; the training process writes questions::

    state/JOB/job.json                 the job: number, hash, nonce, rows, digest of the IDs
    state/JOB/parties/NAME/schema      then 00000.arrow, 00001.arrow, ..., receipt, sent
    state/JOB/parties/NAME/query       the split query; answer: the values
    state/JOB/trained-*/               the model in codes
    state/JOB/manifest.json            the job is done
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from opboost import durable
from opboost.errors import PeerError
from opboost.ordinals import CodedColumn
from opboost.party.channel import read_column
from opboost.wire.columns import Head
from opboost.wire.messages import (
    Receipt,
    Schema,
    SplitQuery,
    SplitValues,
    Welcome,
    check_party,
    decode,
    encode,
)

Way = Literal["network", "bundles"]
"""How a job's messages travel."""

PAUSE = 0.02
"""Seconds between two looks at the folder."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What the gate has to know of a job."""

    job: str
    hash: str
    nonce: str
    rows: int
    ids: str
    label_party: str
    parties: tuple[str, ...]
    revoked: tuple[str, ...]
    receipts: bool
    columns: int
    run: int
    """Which run of any job in this state folder it is; clocks may go back, this does not."""
    way: Way = "network"

    @property
    def active(self) -> tuple[str, ...]:
        """The feature parties that take part: those that are not revoked."""
        return tuple(name for name in self.parties if name not in self.revoked)

    def save(self, folder: Path) -> None:
        """Begin the job's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        durable.write(folder / "job.json", json.dumps(asdict(self), indent=1).encode())

    @classmethod
    def load(cls, folder: Path) -> JobRecord:
        """The record of a folder."""
        found = json.loads((folder / "job.json").read_text())
        lists = {name: tuple(found[name]) for name in ("parties", "revoked")}
        return cls(**{**found, **lists})


def newest_receipt(state: Path, party: str) -> bytes:
    """The receipt with the highest entry that this party ever gave, sealed; empty if none."""
    newest, sealed = -1, b""
    for file in state.glob(f"*/parties/{check_party(party)}/receipt"):
        data = file.read_bytes()
        entry = decode(data, Receipt).entry
        if entry > newest:
            newest, sealed = entry, data
    return sealed


class Mailbox:
    """The folder of one party in one job."""

    def __init__(self, job: Path, party: str) -> None:
        self.folder = job / "parties" / check_party(party)

    def has(self, name: str) -> bool:
        """Whether a file is there, and so is whole."""
        return (self.folder / name).exists()

    def read(self, name: str) -> bytes:
        """A file's content."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put a file there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        durable.write(self.folder / name, data)

    def column(self, number: int) -> Path:
        """The file of a column."""
        return self.folder / f"{number:05d}.arrow"

    def columns(self) -> list[int]:
        """The columns that are there."""
        return sorted(int(f.stem) for f in self.folder.glob("[0-9]*.arrow"))

    def due(self) -> int:
        """How many columns the schema announces; 0 before it came."""
        return int(self.read("due")) if self.has("due") else 0

    def bytes(self) -> int:
        """Bytes of what the party sent."""
        sent = [f for f in self.folder.glob("[!.]*") if f.name != "query"]
        return sum(f.stat().st_size for f in sent)

    def phase(self) -> str:
        """How far this party is."""
        if not self.has("schema"):
            return "expected"
        if not self.has("sent"):
            return "sending"
        if not self.has("query"):
            return "released"
        return "answered" if self.has("answer") else "asked"


class InboxChannel:
    """The channel to a party whose messages arrive, or have arrived, in its mailbox."""

    def __init__(
        self, job: Path, party: str, *, wait: float, watch: Callable[[], None] = lambda: None
    ) -> None:
        self._box, self._party = Mailbox(job, party), party
        self._wait, self._watch = wait, watch

    @property
    def party(self) -> str:
        """The party's name, which its certificate proved to the gate."""
        return self._party

    def open(self, welcome: Welcome) -> Schema:
        """Wait for the whole release."""
        self._until(lambda: self._box.has("sent"), "its release")
        return decode(self._box.read("schema"), Schema)

    def columns(self) -> Iterator[tuple[Head, CodedColumn]]:
        """The columns from their files."""
        for number in self._box.columns():
            yield read_column(self._box.column(number))

    def ask(self, query: SplitQuery) -> None:
        """Leave the query for the party to fetch."""
        data = encode(query)
        if self._box.has("query") and self._box.read("query") != data:
            raise PeerError(
                "The model is another than the one whose split query was sent: the table or the "
                "booster's settings changed in mid-job. Bring them back, or begin anew (--again)."
            )
        self._box.write("query", data)

    def answer(self) -> SplitValues:
        """Wait for the answer."""
        self._until(lambda: self._box.has("answer"), "its split values")
        return decode(self._box.read("answer"), SplitValues)

    def close(self) -> None:
        """The job's manifest says it."""

    def _until(self, there: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + self._wait
        while not there():
            self._watch()
            if time.monotonic() > end:
                raise PeerError(
                    f"Party {self._party!r} did not send {what} within {self._wait:g} s. "
                    "Start serve again when it is ready: nothing that came in is lost."
                )
            time.sleep(PAUSE)


def jobs(state: Path) -> list[Path]:
    """The folders of all jobs, oldest first."""
    folders = [f.parent for f in state.glob("*/job.json")]
    return sorted(folders, key=lambda folder: JobRecord.load(folder).run)


def status(job: Path) -> dict[str, Any]:
    """Where a job stands, for people and metrics."""
    record = JobRecord.load(job)
    parties = {}
    for name in record.parties:
        box = Mailbox(job, name)
        parties[name] = {
            "phase": "revoked" if name in record.revoked else box.phase(),
            "columns": len(box.columns()),
            "columns_due": box.due(),
            "bytes": box.bytes(),
        }
    done = (job / "manifest.json").exists()
    trained = any(job.glob("trained-*"))
    phases = {p["phase"] for p in parties.values()}
    if done:
        phase = "done"
    elif trained:
        phase = "waiting for split values"
    elif phases <= {"released"}:
        phase = "training"
    else:
        phase = "waiting for releases"
    return {"job": record.job, "phase": phase, "rows": record.rows, "parties": parties}
