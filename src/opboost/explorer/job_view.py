"""The state of a job, read from its folder: parties, phase, rows, bytes, curve, split queries."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opboost.boosting.training_curve import Curve
from opboost.errors import ConfigError, DataError, OpBoostError, WireError
from opboost.explorer.record_words import RECORD, record_words
from opboost.explorer.remaining_budget import LedgerView
from opboost.plots.svg import short
from opboost.promises import Joint
from opboost.promises.composition import plus
from opboost.protocol.messages import Schema, SplitQuery, SplitValues, decode
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import JobRecord, PartyFolder, jobs, status
from opboost.transport.label.party_totals import HELLO, told

PHASES = {
    "aligning": "Finding the rows that all parties have.",
    "waiting for releases": "Waiting for the feature parties' desensitised columns.",
    "training": "All columns are here; the model is being trained.",
    "predicting": "All columns are here; rows are being predicted.",
    "waiting for split values": "Waiting for the values at the model's split points.",
    "done": "The job is done.",
}
"""The meaning of each phase, in a sentence."""


@dataclass(frozen=True, slots=True)
class AskedColumn:
    """How many cuts a party was asked for in one of its columns, and whether it answered."""

    column: str
    cuts: int
    answered: bool


@dataclass(frozen=True, slots=True)
class Party:
    """One feature party in this job."""

    name: str
    phase: str
    refusal: str
    """The kind of the party's reason to refuse a release; empty if it does not refuse."""
    columns: int
    columns_due: int
    bytes: int
    aligned: float
    total: float | None
    """The most that it reveals about one person; None until it has stated this total."""
    questions: tuple[AskedColumn, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the label party's journal."""

    at: str
    words: str


@dataclass(frozen=True, slots=True)
class JobRun:
    """The state of a job."""

    job: str
    phase: str
    rows: int
    parties: tuple[Party, ...]
    share: float
    eta: float | None
    """Seconds until the phase ends; None if that cannot be estimated."""
    curve: Curve | None
    events: tuple[Event, ...]
    manifest: dict[str, Any] | None
    entries: tuple[dict[str, Any], ...]
    """The ledger's lines, those of this job first."""
    limit: float = 0.0
    """The job file's limit on what all feature parties together reveal; 0 if it sets none."""

    @property
    def over(self) -> bool:
        """Whether the job has ended."""
        return self.manifest is not None

    @property
    def total(self) -> float | None:
        """The most revealed about one person over all parties; None until every party states it."""
        if self.manifest is not None and "total" in self.manifest:
            found = self.manifest["total"]
            return float(found) if isinstance(found, int | float) else math.inf
        totals = [party.total for party in self.parties if party.phase != "revoked"]
        return None if None in totals else plus(*(t for t in totals if t is not None))

    @property
    def person(self) -> str:
        """The total for one person as one figure."""
        if self.total is not None:
            return short(self.total)
        return f"{short(self.limit)} (limit)" if self.limit else "not known yet"

    @property
    def meaning(self) -> str:
        """The total for one person, then the phase in a sentence."""
        phase = PHASES.get(self.phase, self.phase)
        if self.total is not None:
            return f"{record_words(self.total)} {phase}"
        if self.limit:
            return f"{RECORD}: at most {short(self.limit)}, the job's limit. {phase}"
        return f"{RECORD}: not every feature party has stated its total yet. {phase}"

    @property
    def bytes(self) -> int:
        """The number of bytes that all parties have sent."""
        return sum(party.bytes for party in self.parties)


@dataclass(frozen=True, slots=True)
class RunView:
    """A view of a job's folder (or a state folder's newest job), and perhaps of a ledger."""

    folder: Path
    ledger: LedgerView | None = None

    @classmethod
    def of(cls, folder: Path, ledger: LedgerView | None = None) -> RunView:
        """Return the view of a folder; refuse a folder without a job."""
        view = cls(folder, ledger)
        view.job()
        return view

    def job(self) -> Path:
        """Return the job's own folder."""
        if (self.folder / "job.json").exists():
            return self.folder
        known = jobs(self.folder)
        if not known:
            raise ConfigError(
                f"There is no job in {self.folder}. Name the label party's state folder, or a "
                "job's folder in it (the one with job.json)."
            )
        return known[-1]

    def look(self, now: datetime | None = None) -> JobRun:
        """Return the current state of the job."""
        job = self.job()
        where, record = status(job), JobRecord.load(job)
        events = _events(job / "label.jsonl")
        boxes = {name: PartyFolder(job, name) for name in record.parties}
        parties = tuple(
            Party(name, total=_total(boxes[name]), questions=_questions(boxes[name]), **facts)
            for name, facts in where["parties"].items()
        )
        share = _share(str(where["phase"]), parties)
        manifest = job / "manifest.json"
        lines: list[dict[str, Any]] = [] if self.ledger is None else _entries(self.ledger)
        return JobRun(
            record.job,
            str(where["phase"]),
            int(where["rows"]),
            parties,
            share,
            eta(events, str(where["phase"]), share, now or datetime.now(UTC)),
            _curve(job),
            tuple(Event(line["at"], _words(line)) for line in events),
            atomic_files.read_json(manifest, dict[str, Any], atomic_files.AT_LABEL_PARTY)
            if manifest.exists()
            else None,
            tuple(sorted(lines, key=lambda line: line["job"] != record.job)),
            record.record,
        )


def _entries(ledger: LedgerView) -> list[dict[str, Any]]:
    with suppress(OpBoostError):
        return list(ledger.summary()["releases"])
    return []


def _events(journal: Path) -> list[dict[str, Any]]:
    """Return the journal's events; ignore a last line that is still being written."""
    if not journal.exists():
        return []
    found = []
    for line in journal.read_text(encoding="utf-8", errors="replace").splitlines():
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, dict) and isinstance(event.get("at"), str):
                found.append(event)
    return found


def _words(event: dict[str, Any]) -> str:
    if event.get("event") == "phase":
        return f"phase: {event.get('phase')}"
    facts = {k: v for k, v in event.items() if k not in ("at", "event", "job")}
    told = "; ".join(f"{k.replace('_', ' ')}: {_fact(v)}" for k, v in facts.items())
    return f"{event.get('event', '')} ({told})" if told else str(event.get("event", ""))


def _fact(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, dict):
        return ", ".join(f"{k} {_fact(v)}" for k, v in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)


def _total(box: PartyFolder) -> float | None:
    """Return a party's total for one person, from its schema or its hello; None before either."""
    with suppress(WireError, DataError, OSError):
        if box.has("schema"):
            schema = decode(box.read("schema"), Schema)
            parts = {c.name: c.guarantee() for c in schema.private()}
            return Joint(parts, schema.columns_per_row or None).total
        if box.has(HELLO):
            return told(box) or None
    return None


def _questions(box: PartyFolder) -> tuple[AskedColumn, ...]:
    """Return how many cuts a party was asked for in each column, never which."""
    if not box.has("query"):
        return ()
    try:
        query, schema = decode(box.read("query"), SplitQuery), decode(box.read("schema"), Schema)
        answered = set()
        if box.has("answer"):
            answer = decode(box.read("answer"), SplitValues)
            answered = {values.column for values in answer.columns}
        names = [str(n) for c in schema.private() for n in c.release_names()]
    except (WireError, DataError, OSError):
        return ()
    return tuple(
        AskedColumn(names[c.column], len(c.codes), c.column in answered)
        for c in query.columns
        if c.column < len(names)
    )


def _curve(job: Path) -> Curve | None:
    files = sorted(job.glob("trained-*/curve.json"), key=lambda file: file.stat().st_mtime)
    with suppress(DataError, OSError):
        return Curve.load(files[-1]) if files else None
    return None


def _share(phase: str, parties: Sequence[Party]) -> float:
    """Return how much of a phase is done, as far as the files show."""
    active = [p for p in parties if p.phase != "revoked"]
    if phase == "done":
        return 1.0
    if not active:
        return 0.0
    if phase == "aligning":
        return sum(p.aligned for p in active) / len(active)
    if phase == "waiting for releases":
        return sum(p.columns / p.columns_due if p.columns_due else 0.0 for p in active) / len(
            active
        )
    if phase == "waiting for split values":
        return sum(p.phase == "answered" for p in active) / len(active)
    return 0.0


def eta(events: Sequence[dict[str, Any]], phase: str, share: float, now: datetime) -> float | None:
    """Return the seconds until a phase ends if it continues at its pace so far; None if unknown.

    >>> begun = [{"at": "2026-01-01T00:00:00+00:00", "event": "phase", "phase": "aligning"}]
    >>> eta(begun, "aligning", 0.25, datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    180.0
    """
    begins = [e["at"] for e in events if e.get("event") == "phase" and e.get("phase") == phase]
    if not begins or not 0.02 <= share < 1:
        return None
    try:
        spent = (now - datetime.fromisoformat(begins[-1])).total_seconds()
    except (ValueError, TypeError):
        return None
    return max(0.0, spent * (1 - share) / share)
