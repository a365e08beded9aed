"""The label party's side of a job on disk: what each feature party sent, what it is asked.

A file is there when it is whole, so a job's phase is read off its folder and every step may be
repeated.  The gate writes what came in; the training process writes questions::

    state/JOB/job.json                 the job: number, hash, nonce, rows, digest of the IDs
    state/JOB/align/NAME/              while rows are aligned: a secret, points for the party
    state/JOB/parties/NAME/points      and 00000.feature, 00000.raised, ...: its points; aligned
    state/JOB/parties/NAME/claim       its proof that it knows the common rows; proved: the answer
    state/JOB/stopped                  why there are no common rows to go on with
    state/JOB/common                   which of the label party's rows all parties have
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
from functools import partial
from pathlib import Path
from typing import Any, Literal

from opboost.columns.codebook import CodedColumn
from opboost.errors import PeerError, WireError
from opboost.parties.alignment import Match, PsiPeer
from opboost.parties.row_proof import RowProof
from opboost.protocol.column_streams import ColumnHead
from opboost.protocol.messages import (
    MAX_POINTS,
    Aligned,
    Points,
    Schema,
    SplitQuery,
    SplitValues,
    Welcome,
    check_job,
    check_party,
    decode,
    decode_receipt,
    encode,
)
from opboost.protocol.stored_columns import read_column
from opboost.psi.blinding import Secret, at_once
from opboost.psi.common_rows import Common
from opboost.psi.curve_points import piece_count
from opboost.storage import atomic_files

Way = Literal["network", "bundles"]
"""How a job's messages travel."""

STEPS = ("feature", "raised")
_OWN = ("query", "aligned", "expected", "refused", "points", "due", "proved")

POLL_SECONDS = 0.02
"""Seconds between two looks at the folder."""

HOLD_SECONDS = 5.0
"""Seconds for which a question "is there something to do?" is held before the answer "not yet"."""


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
        if sizes != [32, 32, 32] or not 0 < found.rows < 2**31:
            raise atomic_files.damaged(file, atomic_files.AT_LABEL_PARTY)
        return found


def newest_receipt(state: Path, party: str) -> bytes:
    """The receipt with the highest entry that this party ever gave, sealed; empty if none."""
    newest, sealed = -1, b""
    for file in state.glob(f"*/parties/{check_party(party)}/receipt"):
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
        return _numbers(self.folder, step)

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
        seals = atomic_files.CHECKSUM_BYTES * len(self.columns())
        size = sum(f.stat().st_size for f in sent) - seals
        return size + int(self.points().get("bytes", 0))

    def phase(self) -> str:
        """How far this party is."""
        if not self.has("schema"):
            if self.has("aligned"):
                return "aligned"
            return "aligning" if self.has("points") else "expected"
        if not self.has("sent"):
            return "sending"
        if not self.has("query"):
            return "released"
        return "answered" if self.has("answer") else "asked"


def _numbers(folder: Path, suffix: str) -> list[int]:
    return sorted(int(f.stem) for f in folder.glob(f"[0-9]*.{suffix}"))


class JobFolderChannel:
    """The channel to a party whose messages arrive, or have arrived, in its mailbox."""

    def __init__(
        self, job: Path, party: str, *, wait: float, watch: Callable[[], None] = lambda: None
    ) -> None:
        self._box, self._party = PartyFolder(job, party), party
        self._ours = job / "align" / party
        self._wait, self._watch = wait, watch

    @property
    def party(self) -> str:
        """The party's name, which its certificate proved to the gate."""
        return self._party

    def offer(self, welcome: Welcome, side: PsiPeer) -> None:
        """Leave the label party's points for the party to fetch."""
        self._ours.mkdir(parents=True, exist_ok=True)
        for piece in side.pieces(_numbers(self._ours, "label")):
            atomic_files.write(self._ours / f"{piece.piece:05d}.label", encode(piece))
            self._watch()

    def met(self, side: PsiPeer) -> Match:
        """Wait for the party's points; what cannot be used is refused, and may come again."""
        while True:
            self._until(lambda: not self._box.has("refused"), "other points")
            try:
                return self._met(side)
            except WireError as error:
                for file in self._ours.glob("*.doubled"):
                    file.unlink()
                side.forget_theirs()
                self._box.write("refused", f"The points cannot be used: {error}".encode())

    def _met(self, side: PsiPeer) -> Match:
        self._until(lambda: self._box.has("points"), "its points")
        count = piece_count(self._box.points()["total"])
        arriving = (self._arrived("feature", number) for number in range(count))
        doubled = b"".join(at_once(partial(self._doubled, side), arriving))
        ours = (self._arrived("raised", number) for number in range(piece_count(side.total)))
        raised = b"".join(points.points for points in ours)
        return side.met(raised, doubled)

    def _arrived(self, step: str, number: int) -> Points:
        file = self._box.piece(step, number)
        self._watch()
        self._until(file.exists, "its points")
        return decode(file.read_bytes(), Points)

    def _doubled(self, side: PsiPeer, theirs: Points) -> bytes:
        file = self._ours / f"{theirs.piece:05d}.doubled"
        side.check(theirs)
        if not file.exists():
            atomic_files.write(file, atomic_files.with_checksum(side.doubled(theirs)))
        return atomic_files.read_checked(file, atomic_files.AT_LABEL_PARTY)

    def tell(self, aligned: Aligned, proof: RowProof) -> None:
        """Leave the common rows for the party to fetch, and keep this side's half of the proof."""
        expected = _Expected(aligned.count, proof.ids.hex(), proof.secret.key.hex())
        self._box.note("expected", asdict(expected))
        self._box.write("aligned", encode(aligned))

    def forget(self) -> None:
        """Take the party's points away."""
        self._box.forget_points()

    def refuse(self, why: str) -> None:
        """Leave the reason, and stay a moment for the party to fetch it."""
        self._box.write("refused", why.encode())
        end = time.monotonic() + 2 * HOLD_SECONDS
        while self._box.has("refused") and time.monotonic() < end:
            self._watch()
            time.sleep(POLL_SECONDS)
        time.sleep(10 * POLL_SECONDS)  # let the answer leave
        (self._box.folder / "refused").unlink(missing_ok=True)

    def open(self, welcome: Welcome) -> Schema:
        """Wait for the whole release."""
        self._until(lambda: self._box.has("sent"), "its release")
        return decode(self._box.read("schema"), Schema)

    def columns(self) -> Iterator[tuple[ColumnHead, CodedColumn]]:
        """The columns from their files."""
        return map(read_column, self.files())

    def files(self) -> Iterator[Path]:
        """The files of the columns."""
        return map(self._box.column, self._box.columns())

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
                    "Start again when it is ready: nothing that came in is lost."
                )
            time.sleep(POLL_SECONDS)


def jobs(state: Path) -> list[Path]:
    """The folders of all jobs, oldest first."""
    folders = [f.parent for f in state.glob("*/job.json")]
    return sorted(folders, key=lambda folder: JobRecord.load(folder).run)


def status(job: Path) -> dict[str, Any]:
    """Where a job stands, for people and metrics."""
    record = JobRecord.load(job)
    parties = {}
    for name in record.parties:
        box = PartyFolder(job, name)
        parties[name] = {
            "phase": "revoked" if name in record.revoked else box.phase(),
            "columns": len(box.columns()),
            "columns_due": box.due(),
            "bytes": box.bytes(),
            "aligned": aligned_share(job, record, box),
        }
    done = (job / "manifest.json").exists()
    trained = any(job.glob("trained-*"))
    phases = {p["phase"] for p in parties.values()}
    if done:
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
    done = sum(len(_numbers(ours, kind)) for kind in ("label", "doubled"))
    return min(0.99, (done + sum(len(box.pieces(step)) for step in STEPS)) / due)
