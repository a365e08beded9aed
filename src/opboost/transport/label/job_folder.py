"""The label party's job folder: what each feature party sent, and what it is asked for.

A file appears only when it is complete, so the files show a job's phase, and every step can be
repeated.  The label server writes what arrives; the training process writes what is asked for.
The points of a private alignment are explained in ``psi/blinding.py``: a party *raises* another
party's points with its own secret::

    state/JOB/job.json         the job: number, hash, nonce, rows, digest of the IDs
    state/JOB/align/NAME/      during an alignment: the label party's secret and points, and the
                               feature party's points, raised by the label party
    state/JOB/common           which of the label party's rows the job is about
    state/JOB/known/NAME       which rows the party has; only with rows = "mine"
    state/JOB/stopped          why the job cannot continue with the common rows
    state/JOB/trained-*/       the model in codes
    state/JOB/bundles/         in a job by bundles: see shared/bundle_chain.py
    state/JOB/manifest.json    the job is done
    state/JOB/ended            the job is done, and its label server need not be reopened
    state/JOB/label.jsonl      the log of the job
    state/JOB/gate.jsonl       the log of the label server

A feature party's folder, ``state/JOB/parties/NAME/``, holds::

    visited             it has logged in at least once
    hello               how it introduced itself; only if the job limits the total
    terms               what the job needs of its columns; only if it needs anything
    agreed              it has compared the terms with its plan; only if rows are given
    declined            the kind of reason for which it refuses to release
    refused             why the label party refused its points or ended the job; deleted when read
    points              the tag and number of its points, and the size of deleted pieces in bytes
    00000.feature ...   its points
    00000.raised ...    the label party's points, raised by this party
    aligned             which of its rows are common
    expected            how many rows its release must have, the digest of their IDs, and the label
                        party's secret for the proof that both parties know them
    claim               its proof that it knows the common rows
    proved              the label party's proof that it knows them
    pilot/              the release of its pilot: the same files as for the full release
    weights             the column weights that answer the pilot
    score               the score that it is asked for
    score-declined      it declines to release that score
    columns             it is asked for columns, not for a score
    schema              the columns of its release and their promises
    due                 how many columns the schema announces
    receipt             the signed head of its ledger
    00000.arrow ...     the columns
    sent                everything that the schema announces has arrived
    query               the split query
    answer              its answer to the split query
    farewell            it knows that the job is done
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
"""The file with the reason why a party refuses to release; deleted when the party returns."""

TERMS, AGREED = "terms", "agreed"
"""The file with the job's terms for a party, and the file noting that the party compared them."""

VISITED = "visited"
"""The file that says that a party has logged in at least once."""

_OWN = (
    "pilot", "weights", "score", "columns", "score-declined", "query", "aligned", "expected",
    "refused", "points", "due", "proved", TERMS, AGREED,
    REFUSAL, VISITED,
)  # fmt: skip

HOLD_SECONDS = 5.0
"""How long the server holds a poll before it answers "not yet"."""

LOOK_SECONDS = 0.005
"""Seconds between two looks into the folder that server and training process share."""


@dataclass(frozen=True, slots=True)
class JobRecord:
    """What the label server needs to know about a job."""

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
    """The number of this run; later runs have higher numbers even if the clock is set back."""
    align: str = "given"
    most_rows: int = 0
    """The largest set of points that a party may send."""
    way: Way = "network"
    purpose: str = "train"
    record: float = 0.0
    """The most that all parties together may reveal about one person; 0: no limit."""
    kept: RowChoice = "common"
    """Whether the job is about the rows that all parties have, or all of the label party's."""

    @property
    def active(self) -> tuple[str, ...]:
        """The feature parties that take part: those that are not revoked."""
        return tuple(name for name in self.parties if name not in self.revoked)

    def save(self, folder: Path) -> None:
        """Create the job's folder."""
        folder.mkdir(parents=True, exist_ok=True)
        plain = json.dumps(asdict(self), indent=1).encode()
        atomic_files.write(folder / "job.json", atomic_files.with_checksum(plain))

    @classmethod
    def load(cls, folder: Path) -> JobRecord:
        """Return the record in a folder."""
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
    """Return the party's signed receipt with the highest entry, from all jobs; empty if none."""
    newest, sealed = -1, b""
    name = check_party(party)
    of_pilots = state.glob(f"*/parties/{name}/{PILOT}/receipt")
    for file in (*state.glob(f"*/parties/{name}/receipt"), *of_pilots):
        try:
            receipt = decode_receipt(file.read_bytes())
        except WireError:
            raise atomic_files.damaged(
                file,
                "Restore a copy of it. Without one, remove it; it may then go unnoticed if the "
                "party uses an older copy of its ledger.",
            ) from None
        if receipt.entry > newest:
            newest, sealed = receipt.entry, encode(receipt)
    return sealed


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the note ``points`` holds."""

    tag: str
    total: int
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class _Expected:
    """What the note ``expected`` holds: a release's rows, and a secret for the proof of them."""

    rows: int
    ids: str
    secret: str


class PartyFolder:
    """The folder of one party in one job."""

    def __init__(self, job: Path, party: str) -> None:
        self.party, self.folder = party, job / "parties" / check_party(party)

    def pilot(self) -> PilotFolder:
        """Return the folder of the party's pilot."""
        return PilotFolder(self)

    def has(self, name: str) -> bool:
        """Return whether a file exists; it is then complete."""
        return (self.folder / name).exists()

    def read(self, name: str) -> bytes:
        """Return a file's content."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        """Write a file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write(self.folder / name, data)

    def note(self, name: str, plain: Any) -> None:
        """Write one of the label party's own notes about the party."""
        self.write(name, atomic_files.with_checksum(json.dumps(plain).encode()))

    def noted(self, name: str, kind: Any) -> Any:
        """Return a note as a value of ``kind``; None if there is none."""
        if not self.has(name):
            return None
        return atomic_files.read_json(
            self.folder / name, kind, atomic_files.AT_LABEL_PARTY, checksum=True
        )

    def column(self, number: int) -> Path:
        """Return the path of a column's file."""
        return self.folder / f"{number:05d}.arrow"

    def columns(self) -> list[int]:
        """Return the numbers of the stored columns."""
        return sorted(int(f.stem) for f in self.folder.glob("[0-9]*.arrow"))

    def piece(self, step: str, number: int) -> Path:
        """Return the path of a piece of points."""
        return self.folder / f"{number:05d}.{step}"

    def pieces(self, step: str) -> list[int]:
        """Return the numbers of the stored pieces of points."""
        return piece_numbers(self.folder, step)

    def points(self) -> dict[str, Any]:
        """Return the note about the party's points; empty if there is none."""
        known: _Shown | None = self.noted("points", _Shown)
        if known is None:
            return {}
        if not 0 < known.total <= MAX_POINTS or known.bytes < 0:
            raise atomic_files.damaged(self.folder / "points", atomic_files.AT_LABEL_PARTY)
        return asdict(known)

    def take_refusal(self) -> str:
        """Return and delete the reason why the label party refused the party; empty if it did not.

        Before rows are aligned, the refused points are deleted, too.
        """
        if not self.has("refused"):
            return ""
        why = self.read("refused").decode(errors="replace")
        self.forget_points()
        for name in ("refused",) if self.has("aligned") else ("points", "refused"):
            (self.folder / name).unlink(missing_ok=True)
        return why

    def note_refusal(self, reason: str) -> None:
        """Note the kind of reason for which the party refuses to release."""
        if reason not in get_args(Refusal):
            raise PeerError("A party refuses because of a cap, its declaration or its rows.")
        self.note(REFUSAL, reason)

    def party_refusal(self) -> str:
        """Return the kind of reason for which the party refuses to release; empty if none."""
        found: str | None = None if self.has("sent") else self.noted(REFUSAL, str)
        return found if found is not None and found in get_args(Refusal) else ""

    def begin_visit(self) -> None:
        """Note that the party logged in; forget an earlier refusal or agreement."""
        for name in (REFUSAL, AGREED):
            (self.folder / name).unlink(missing_ok=True)
        self.write(VISITED, b"")

    def forget_points(self) -> None:
        """Delete the points, and add their size in bytes to the note about them."""
        files = [f for step in STEPS for f in self.folder.glob(f"[0-9]*.{step}")]
        if not files:
            return
        if self.has("points"):
            size = sum(f.stat().st_size for f in files) + self.points().get("bytes", 0)
            self.note("points", self.points() | {"bytes": size})
        for file in files:
            file.unlink(missing_ok=True)

    def expected(self, record: JobRecord) -> tuple[int, bytes]:
        """Return how many rows the party's release must have, and the digest of their IDs."""
        if record.align == "given":
            return record.rows, bytes.fromhex(record.ids)
        rows, proof = self.row_proof()
        return rows, proof.ids

    def expect(self, rows: int, proof: RowProof) -> None:
        """Note which rows the party must release, and the label party's half of their proof."""
        expected = _Expected(rows, proof.ids.hex(), proof.secret.key.hex())
        self.note("expected", asdict(expected))

    def row_proof(self) -> tuple[int, RowProof]:
        """Return how many rows are common, and the label party's half of the proof about them."""
        known: _Expected | None = self.noted("expected", _Expected)
        if known is None:
            raise PeerError("Rows arrived before they were aligned.")
        try:
            ids, secret = bytes.fromhex(known.ids), Secret(bytes.fromhex(known.secret))
            return known.rows, RowProof.of(secret, ids)
        except (ValueError, RuntimeError):
            raise atomic_files.damaged(
                self.folder / "expected", atomic_files.AT_LABEL_PARTY
            ) from None

    def due(self) -> int:
        """Return how many columns the schema announces; 0 before it arrives."""
        known: int | None = self.noted("due", int)
        return max(0, known or 0)

    def bytes(self) -> int:
        """Return how many bytes the party sent."""
        sent = [f for f in self.folder.glob("[!.]*") if f.name not in _OWN]
        checksums = atomic_files.CHECKSUM_BYTES * len(self.columns())
        size = sum(f.stat().st_size for f in sent) - checksums
        if self.has(PILOT):
            size += self.pilot().bytes()
        return size + int(self.points().get("bytes", 0))

    def phase(self) -> str:
        """Return the phase of the job that this party is in."""
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
    """The folder of a pilot's release, within its party's folder."""

    def __init__(self, whole: PartyFolder) -> None:
        self.party, self.folder, self._whole = whole.party, whole.folder / PILOT, whole

    def expected(self, record: JobRecord) -> tuple[int, bytes]:
        """Return how many rows the pilot's release must have, and the digest of their IDs."""
        return self._whole.expected(record)


def piece_numbers(folder: Path, suffix: str) -> list[int]:
    """Return the numbers of a folder's pieces of points with this suffix."""
    return sorted(int(f.stem) for f in folder.glob(f"[0-9]*.{suffix}"))


def jobs(state: Path) -> list[Path]:
    """Return the folders of all jobs, oldest first."""
    folders = [f.parent for f in state.glob("*/job.json")]
    return sorted(folders, key=lambda folder: JobRecord.load(folder).run)


def is_done(job: Path) -> bool:
    """Return whether a job is done."""
    return (job / "manifest.json").exists()


def status(job: Path) -> dict[str, Any]:
    """Return the status of a job, for people and metrics."""
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
    """Return how many rows the job is about: all, until the common rows are known."""
    common = job / "common"
    if not common.exists():
        return record.rows
    return Common.from_bytes(atomic_files.read_checked(common, atomic_files.AT_LABEL_PARTY)).size


def aligned_share(job: Path, record: JobRecord, box: PartyFolder) -> float:
    """Return how much of the alignment with a party is done, counted in pieces of points."""
    if record.align == "given" or box.has("aligned"):
        return 1.0
    ours = job / "align" / box.folder.name
    total = box.points().get("total", record.rows)
    due = 2 * piece_count(record.rows) + 2 * piece_count(total)
    done = sum(len(piece_numbers(ours, kind)) for kind in ("label", "doubled"))
    return min(0.99, (done + sum(len(box.pieces(step)) for step in STEPS)) / due)
