"""What one party has exchanged with another in one job, by bundles.

Bundles between two parties form a chain: each has the next number and names the digest of the one
before it.  The chain so far is one small file, replaced as a whole, so a bundle is either used or
not, also after a crash.  Own bundles are kept beside it, because encryption is randomised: a step
that is repeated gives the very bundle again that it gave before, never a second one.

::

    state/JOB/bundles/PEER.json             the chain with one peer
    state/JOB/bundles/*.bundle              own bundles, as they were written
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from opboost.errors import DataError, PeerError
from opboost.parties.row_proof import Lock
from opboost.storage import atomic_files
from opboost.transport.shared.bundle_file import Bundle, Header, Source, write_bundle
from opboost.transport.shared.bundle_keys import PublicKey
from opboost.transport.shared.tls import Identity


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the protocol: its number, the verb that writes it, and the side that does."""

    number: int
    verb: str
    by_label_party: bool

    def __str__(self) -> str:
        return f"step {self.number} ({self.verb})"


STEPS = (
    Step(1, "align", True),
    Step(2, "align", False),
    Step(3, "align", True),
    Step(4, "export", False),
    Step(5, "split-query", True),
    Step(6, "answer", False),
)
"""Between the label party and each feature party."""

GIVEN = tuple(step for step in STEPS if step.number not in (2, 3))
"""Where rows are matched as given, there is nothing to align but the job."""


KEPT_BUNDLES = 4
"""The number of the step in which columns come: a prediction ends with it."""


@dataclass(frozen=True, slots=True)
class BundleEntry:
    """One bundle of the chain."""

    number: int
    sender: str
    digest: str


@dataclass(frozen=True, slots=True)
class Pair:
    """Two parties in one run of a job."""

    own: str
    peer: str
    job_hash: str
    job: str
    label_party: str
    steps: tuple[Step, ...]


class BundleChain:
    """The chain between two parties in one job."""

    def __init__(self, folder: Path, pair: Pair) -> None:
        self._folder, self.pair = folder / "bundles", pair
        self._file = self._folder / f"{pair.peer}.json"

    @property
    def entries(self) -> tuple[BundleEntry, ...]:
        """The bundles so far."""
        if not self._file.exists():
            return ()
        own = self.pair.own == self.pair.label_party
        next_step = atomic_files.AT_LABEL_PARTY if own else atomic_files.AT_FEATURE_PARTY
        found: tuple[BundleEntry, ...] = atomic_files.read_json(
            self._file, tuple[BundleEntry, ...], next_step
        )
        steps = self.pair.steps[: len(found)]
        sides = [
            s.by_label_party == (e.sender == self.pair.label_party)
            for s, e in zip(steps, found, strict=False)
        ]
        if [s.number for s in steps] != [e.number for e in found] or not all(sides):
            raise atomic_files.damaged(self._file, next_step)
        return found

    def due(self) -> Step | None:
        """The step that comes next, if there is one."""
        done = len(self.entries)
        return self.pair.steps[done] if done < len(self.pair.steps) else None

    def is_repeated(self, bundle: Bundle) -> bool:
        """Whether this bundle is the last one of the peer that was used."""
        theirs = [e for e in self.entries if e.sender == self.pair.peer]
        return bool(theirs) and theirs[-1].digest == bundle.digest

    def check(self, bundle: Bundle, verb: str, number: int) -> None:
        """Refuse a bundle that is not for this party, from its peer, of this job, and due now.

        ``number`` is that of the step which ``verb`` takes in.  Nothing is written, or decrypted.
        """
        check_address(bundle, self.pair)
        name, header = bundle.path.name, bundle.header
        if header.job != self.pair.job:
            raise PeerError(
                f"{name} belongs to job {header.job}; with {self.pair.peer!r} this party is in "
                f"job {self.pair.job}."
            )
        steps = {step.number: step for step in self.pair.steps}
        step = steps.get(header.number)
        theirs = self.pair.peer == self.pair.label_party
        if step is None or step.verb != header.step or step.by_label_party != theirs:
            raise PeerError(f"{name} is no step that {self.pair.peer!r} takes in this job.")
        if header.number != number:
            fits = next((s.verb for s in self.pair.steps if s.number > step.number), "finish")
            raise PeerError(
                f"{name} is {step}, which 'opboost bundle {verb}' does not take: it is for "
                f"'opboost bundle {fits}'."
            )
        self._check_place(bundle, step)

    def _check_place(self, bundle: Bundle, step: Step) -> None:
        name, entries = bundle.path.name, self.entries
        if self.is_repeated(bundle):
            return
        if any(e.digest == bundle.digest for e in entries):
            raise PeerError(f"{name} was used before: {step} of this job is over.")
        if any(e.number == step.number for e in entries):
            raise PeerError(f"{name} is a second bundle for {step}; another one was used already.")
        due = self.due()
        if due != step:
            raise PeerError(f"{name} is {step}, out of turn: {due or 'nothing'} is due.")
        if bundle.header.previous != (entries[-1].digest if entries else ""):
            raise PeerError(
                f"{name} answers another bundle than the last one of this party. "
                f"Let {self.pair.peer!r} have the last one."
            )

    def took(self, bundle: Bundle) -> None:
        """Remember that a bundle was used."""
        if not self.is_repeated(bundle):
            entry = BundleEntry(bundle.header.number, self.pair.peer, bundle.digest)
            self._save((*self.entries, entry))

    def write(
        self,
        sources: Mapping[str, Source],
        identity: Identity,
        recipient: PublicKey,
        used: Bundle | None = None,
        lock: Lock | None = None,
    ) -> Path:
        """Seal the step that is due and remember it, together with the bundle that it answers.

        With a ``lock``, only a recipient that knows the common rows can open it.
        """
        entries = self.entries
        if used is not None and not self.is_repeated(used):
            entries = (*entries, BundleEntry(used.header.number, self.pair.peer, used.digest))
        step = self.pair.steps[len(entries)]
        header = Header(
            self.pair.own,
            self.pair.peer,
            self.pair.job_hash,
            self.pair.job,
            step.number,
            step.verb,
            entries[-1].digest if entries else "",
            claim=lock.claim.hex() if lock else "",
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(step.number)
        key = lock.agreed.lock if lock else b""
        digest = write_bundle(path, header, sources, identity, recipient, key)
        self._save((*entries, BundleEntry(step.number, self.pair.own, digest)))
        return path

    def written(self) -> Path | None:
        """The own bundle with which the chain ends, if it ends with one."""
        entries = self.entries
        if not entries or entries[-1].sender != self.pair.own:
            return None
        return self._path(entries[-1].number)

    def _path(self, number: int) -> Path:
        (step,) = (s for s in self.pair.steps if s.number == number)
        pair = self.pair
        name = f"{pair.job}.{number}-{step.verb}.{pair.own}-to-{pair.peer}.bundle"
        return self._folder / name

    def _save(self, entries: Sequence[BundleEntry]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write(self._file, json.dumps([asdict(e) for e in entries], indent=1).encode())


def check_recipient(bundle: Bundle, own: str) -> None:
    """Refuse a bundle to somebody else."""
    recipient = bundle.header.recipient
    if recipient != own:
        raise PeerError(f"{bundle.path.name} is for {recipient!r}; this party is {own!r}.")


def check_address(bundle: Bundle, pair: Pair) -> None:
    """Refuse a bundle to somebody else, from somebody else, or of another job file."""
    check_recipient(bundle, pair.own)
    name, header = bundle.path.name, bundle.header
    if header.sender != pair.peer:
        raise PeerError(f"{name} is from {header.sender!r}; one from {pair.peer!r} is expected.")
    if header.job_hash != pair.job_hash:
        raise PeerError(
            f"{name} is of another job file: its SHA-256 is {header.job_hash[:16]}..., this "
            f"party's {pair.job_hash[:16]}.... All parties need the same file, byte by byte."
        )


def hand_out(bundle: Path, folder: Path) -> Path:
    """Copy a bundle to where its carrier takes it from."""
    if not bundle.exists():
        raise DataError(
            f"{bundle.name} was written before and is gone",
            hint="A finished job keeps no bundles once a person was forgotten. Let the label party "
            "begin a new run (--again).",
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / bundle.name
    with bundle.open("rb") as source, atomic_files.writing(target) as out:
        shutil.copyfileobj(source, out, 2**20)
    return target
