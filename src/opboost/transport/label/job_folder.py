"""The label party's side of a job on disk: what each feature party sent, what it is asked.

A file is there when it is whole, so a job's phase is read off its folder and every step may be
repeated.  The gate writes what came in; the training process writes questions::

    state/JOB/job.json                 the job: number, hash, nonce, rows, digest of the IDs
    state/JOB/parties/NAME/visited     it has logged in at least once
    state/JOB/parties/NAME/declined    the kind of reason for which it refuses to release, if so
    state/JOB/parties/NAME/hello       how it introduced itself; only if the job limits the total
    state/JOB/parties/NAME/terms       what the job needs of its columns; only if that is something
    state/JOB/parties/NAME/agreed      where rows are given: it has compared the terms with its plan
    state/JOB/align/NAME/              while rows are aligned: a secret, points for the party
    state/JOB/parties/NAME/points      and 00000.feature, 00000.raised, ...: its points; aligned
    state/JOB/parties/NAME/claim       its proof that it knows the common rows; proved: the answer
    state/JOB/stopped                  why there are no common rows to go on with
    state/JOB/known/NAME               only with rows = "mine": which rows the party has
    state/JOB/common                   which of the label party's rows the job is about
    state/JOB/parties/NAME/pilot/      the same of its pilot, and weights: the answer to it
    state/JOB/parties/NAME/score       the score that it is asked for, or columns: none is wanted;
                                       declined: it does not release one
    state/JOB/parties/NAME/schema      then 00000.arrow, 00001.arrow, ..., receipt, sent
    state/JOB/parties/NAME/query       the split query; answer: the values
    state/JOB/trained-*/               the model in codes
    state/JOB/manifest.json            the job is done
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from opboost.errors import PeerError, Refusal, WireError
from opboost.parties.row_proof import RowProof
from opboost.protocol.messages import (
    MAX_POINTS,
    check_job,
    check_party,
    decode_receipt,
    encode,
)
from opboost.psi.align_rules import RowChoice
from opboost.psi.blinding import Secret
from opboost.psi.common_rows import Common
from opboost.psi.curve_points import piece_count
from opboost.storage import atomic_files

Way = Literal["network", "bundles"]
"""How a job's messages travel."""

STEPS = ("feature", "raised")
PILOT = "pilot"
REFUSAL = "declined"
"""The note of why a party refuses to release; gone when the party comes back."""

TERMS, AGREED = "terms", "agreed"
"""What the job needs of a party, and that the party has compared it with its plan."""

VISITED = "visited"
"""The note that a party has logged in at least once."""

_OWN = (
    "pilot", "weights", "score", "columns", "score-declined", "query", "aligned", "expected",
    "refused", "points", "due", "proved", TERMS, AGREED,
    REFUSAL, VISITED,
)  # fmt: skip

HOLD_SECONDS = 5.0
"""Seconds for which a question "is there something to do?" is held before the answer "not yet"."""

LOOK_SECONDS = 0.005
"""Seconds between two looks at the folder, in which gate and training process meet."""


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
    align: str = "given"
    most_rows: int = 0
    """The largest set of points that a party may bring."""
    way: Way = "network"
    purpose: str = "train"
    record: float = 0.0
    """The most that all parties together may reveal about one person; 0: no limit."""
    kept: RowChoice = "common"
    """Which rows the job is about: those common to all parties, or all of the label party's."""

    @property
    def active(self) -> tuple[str, ...]:
        """The feature parties that take part: those that are not revoked."""
        return tuple(name for name in self.parties if name not in self.revoked)

    def save(self, folder: Path) -> None:
        """Begin the job's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        plain = json.dumps(asdict(self), indent=1).encode()
        atomic_files.write(folder / "job.json", atomic_files.with_checksum(plain))

    @classmethod
    def load(cls, folder: Path) -> JobRecord:
        """The record of a folder."""
        file = folder / "job.json"
        found: JobRecord = atomic_files.read_json(
            file, cls, atomic_files.AT_LABEL_PARTY, checksum=True
        )
        try:
            check_job(found.job)
            for name in (found.label_party, *found.parties, *found.revoked):
                check_party(name)
            sizes = [len(bytes.fromhex(h)) for h in (found.hash, found.nonce, found.ids)]
        except (WireError, ValueError):
            raise atomic_files.damaged(file, atomic_files.AT_LABEL_PARTY) from None
        bounded = 0 <= found.record < math.inf
        if sizes != [32, 32, 32] or not 0 < found.rows < 2**31 or not bounded:
            raise atomic_files.damaged(file, atomic_files.AT_LABEL_PARTY)
        return found


def newest_receipt(state: Path, party: str) -> bytes:
    """The receipt with the highest entry that this party ever gave, sealed; empty if none."""
    newest, sealed = -1, b""
    name = check_party(party)
    of_pilots = state.glob(f"*/parties/{name}/{PILOT}/receipt")
    for file in (*state.glob(f"*/parties/{name}/receipt"), *of_pilots):
        try:
            receipt = decode_receipt(file.read_bytes())
        except WireError:
            raise atomic_files.damaged(
                file,
                "Bring back a copy of it. Without one, remove it: if the party then comes with an "
                "older copy of its ledger, that may not be noticed.",
            ) from None
        if receipt.entry > newest:
            newest, sealed = receipt.entry, encode(receipt)
    return sealed


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is kept of a party's points."""

    tag: str
    total: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Expected:
    """What a party's release must have, and the label party's secret for the proof of its rows."""

    rows: int
    ids: str
    secret: str


class PartyFolder:
    """The folder of one party in one job."""

    def __init__(self, job: Path, party: str) -> None:
        self.party, self.folder = party, job / "parties" / check_party(party)

    def pilot(self) -> PilotFolder:
        """The folder of what the party's pilot released."""
        return PilotFolder(self)

    def has(self, name: str) -> bool:
        """Whether a file is there, and so is whole."""
        return (self.folder / name).exists()

    def read(self, name: str) -> bytes:
        """A file's content."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Put a file there."""
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write(self.folder / name, data)

    def note(self, name: str, plain: Any) -> None:
        """Put down something of one's own about the party."""
        self.write(name, atomic_files.with_checksum(json.dumps(plain).encode()))

    def noted(self, name: str, kind: Any) -> Any:
        """What was put down, as a value of ``kind``; None if nothing was."""
        if not self.has(name):
            return None
        return atomic_files.read_json(
            self.folder / name, kind, atomic_files.AT_LABEL_PARTY, checksum=True
        )

    def column(self, number: int) -> Path:
        """The file of a column."""
        return self.folder / f"{number:05d}.arrow"

    def columns(self) -> list[int]:
        """The columns that are there."""
        return sorted(int(f.stem) for f in self.folder.glob("[0-9]*.arrow"))

    def piece(self, step: str, number: int) -> Path:
        """The file of a piece of points."""
        return self.folder / f"{number:05d}.{step}"

    def pieces(self, step: str) -> list[int]:
        """The pieces of points that are there."""
        return piece_numbers(self.folder, step)

    def points(self) -> dict[str, Any]:
        """What is known of the party's points: their secret's tag, how many, later their bytes."""
        known: _Shown | None = self.noted("points", _Shown)
        if known is None:
            return {}
        if not 0 < known.total <= MAX_POINTS or known.bytes < 0:
            raise atomic_files.damaged(self.folder / "points", atomic_files.AT_LABEL_PARTY)
        return asdict(known)

    def take_refusal(self) -> str:
        """Why the label party refused what came; empty if it did not.

        Points that could not be used go with it; once rows are aligned it is about columns.
        """
        if not self.has("refused"):
            return ""
        why = self.read("refused").decode(errors="replace")
        self.forget_points()
        for name in ("refused",) if self.has("aligned") else ("points", "refused"):
            (self.folder / name).unlink(missing_ok=True)
        return why

    def note_refusal(self, reason: str) -> None:
        """Keep the kind of reason for which the party refuses to release."""
        if reason not in get_args(Refusal):
            raise PeerError("A party refuses for a cap, its declaration or its rows.")
        self.note(REFUSAL, reason)

    def party_refusal(self) -> str:
        """The kind of reason for which the party refuses to release; empty if it does not."""
        found: str | None = None if self.has("sent") else self.noted(REFUSAL, str)
        return found if found is not None and found in get_args(Refusal) else ""

    def begin_visit(self) -> None:
        """Note that the party logged in; what it refused for, or agreed to, may have changed."""
        for name in (REFUSAL, AGREED):
            (self.folder / name).unlink(missing_ok=True)
        self.write(VISITED, b"")

    def forget_points(self) -> None:
        """Take the points away, and keep how many they were."""
        files = [f for step in STEPS for f in self.folder.glob(f"[0-9]*.{step}")]
        if not files:
            return
        if self.has("points"):
            size = sum(f.stat().st_size for f in files) + self.points().get("bytes", 0)
            self.note("points", self.points() | {"bytes": size})
        for file in files:
            file.unlink(missing_ok=True)

    def expected(self, record: JobRecord) -> tuple[int, bytes]:
        """How many rows the party's release must have, and the digest of their IDs."""
        if record.align == "given":
            return record.rows, bytes.fromhex(record.ids)
        rows, proof = self.row_proof()
        return rows, proof.ids

    def expect(self, rows: int, proof: RowProof) -> None:
        """Note how many rows the party's release must have, and this side's half of the proof."""
        expected = _Expected(rows, proof.ids.hex(), proof.secret.key.hex())
        self.note("expected", asdict(expected))

    def row_proof(self) -> tuple[int, RowProof]:
        """How many rows are common, and the label party's half of the proof that both know them."""
        known: _Expected | None = self.noted("expected", _Expected)
        if known is None:
            raise PeerError("Rows came before they were aligned.")
        try:
            ids, secret = bytes.fromhex(known.ids), Secret(bytes.fromhex(known.secret))
            return known.rows, RowProof.of(secret, ids)
        except (ValueError, RuntimeError):
            raise atomic_files.damaged(
                self.folder / "expected", atomic_files.AT_LABEL_PARTY
            ) from None

    def due(self) -> int:
        """How many columns the schema announces; 0 before it came."""
        known: int | None = self.noted("due", int)
        return max(0, known or 0)

    def bytes(self) -> int:
        """Bytes of what the party sent."""
        sent = [f for f in self.folder.glob("[!.]*") if f.name not in _OWN]
        checksums = atomic_files.CHECKSUM_BYTES * len(self.columns())
        size = sum(f.stat().st_size for f in sent) - checksums
        if self.has(PILOT):
            size += self.pilot().bytes()
        return size + int(self.points().get("bytes", 0))

    def phase(self) -> str:
        """How far this party is."""
        if self.party_refusal():
            return "refused"
        if not self.has("schema"):
            if self.has(PILOT):
                return "pilot"
            if self.has("aligned"):
                return "aligned"
            return "aligning" if self.has("points") else "expected"
        if not self.has("sent"):
            return "sending"
        if not self.has("query"):
            return "released"
        return "answered" if self.has("answer") else "asked"


class PilotFolder(PartyFolder):
    """The folder of what a party's pilot released, within the party's; the rows are the same."""

    def __init__(self, whole: PartyFolder) -> None:
        self.party, self.folder, self._whole = whole.party, whole.folder / PILOT, whole

    def expected(self, record: JobRecord) -> tuple[int, bytes]:
        """How many rows the pilot's release must have, and the digest of their IDs."""
        return self._whole.expected(record)


def piece_numbers(folder: Path, suffix: str) -> list[int]:
    """The pieces of points that a folder has under a suffix."""
    return sorted(int(f.stem) for f in folder.glob(f"[0-9]*.{suffix}"))


def jobs(state: Path) -> list[Path]:
    """The folders of all jobs, oldest first."""
    folders = [f.parent for f in state.glob("*/job.json")]
    return sorted(folders, key=lambda folder: JobRecord.load(folder).run)


def is_done(job: Path) -> bool:
    """Whether a job is done."""
    return (job / "manifest.json").exists()


def status(job: Path) -> dict[str, Any]:
    """Where a job stands, for people and metrics."""
    record = JobRecord.load(job)
    parties = {}
    for name in record.parties:
        box = PartyFolder(job, name)
        parties[name] = {
            "phase": "revoked" if name in record.revoked else box.phase(),
            "refusal": box.party_refusal(),
            "columns": len(box.columns()),
            "columns_due": box.due(),
            "bytes": box.bytes(),
            "aligned": aligned_share(job, record, box),
        }
    trained = any(job.glob("trained-*"))
    phases = {p["phase"] for p in parties.values()}
    if is_done(job):
        phase = "done"
    elif trained:
        phase = "waiting for split values"
    elif phases <= {"released", "revoked"}:
        phase = "training" if record.purpose == "train" else "predicting"
    elif record.align == "psi" and not (job / "common").exists():
        stopped = job / "stopped"
        words = stopped.read_text(errors="replace") if stopped.exists() else ""
        phase = f"stopped: {words}" if stopped.exists() else "aligning"
    else:
        phase = "waiting for releases"
    return {"job": record.job, "phase": phase, "rows": _rows(job, record), "parties": parties}


def _rows(job: Path, record: JobRecord) -> int:
    """Rows that are trained on, as far as they are known."""
    common = job / "common"
    if not common.exists():
        return record.rows
    return Common.from_bytes(atomic_files.read_checked(common, atomic_files.AT_LABEL_PARTY)).size


def aligned_share(job: Path, record: JobRecord, box: PartyFolder) -> float:
    """How much of the alignment with a party is done: blinding and raising, on both sides."""
    if record.align == "given" or box.has("aligned"):
        return 1.0
    ours = job / "align" / box.folder.name
    total = box.points().get("total", record.rows)
    due = 2 * piece_count(record.rows) + 2 * piece_count(total)
    done = sum(len(piece_numbers(ours, kind)) for kind in ("label", "doubled"))
    return min(0.99, (done + sum(len(box.pieces(step)) for step in STEPS)) / due)
