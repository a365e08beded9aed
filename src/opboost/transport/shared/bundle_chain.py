"""The bundles that one party has exchanged with another in one job.

Bundles between two parties form a chain: each has the number of its step, and holds the digest of
the one before it.  The chain is one small file that is replaced as a whole, so even after a crash
it says which bundles were used.  A party keeps its own bundles beside the chain.  Encryption is
randomised, so without them a repeated step would write a different bundle.

If a feature party's budget has a pilot, two steps precede its release: the pilot's codes, and the
weights with which the label party answers.  The parties do not agree on this beforehand: a chain
has these steps from the moment it holds the pilot's bundle.

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
    """A step of the protocol: its number, and the command and the side that write its bundle."""

    number: int
    verb: str
    by_label_party: bool
    name: str = ""
    """The content of the bundle, if the command's name does not say it."""
    place: str = ""
    """The step's number as users see it, if it differs from ``number``."""

    def __str__(self) -> str:
        return f"step {self.place or self.number} ({self.called})"

    @property
    def called(self) -> str:
        """The name of the step in a bundle's header."""
        return self.name or self.verb

    @property
    def file(self) -> str:
        """The part of a bundle's file name that identifies the step."""
        return f"{self.place or self.number}-{self.called}"


STEPS = (
    Step(1, "align", True),
    Step(2, "align", False),
    Step(3, "align", True),
    Step(4, "export", False),
    Step(5, "split-query", True),
    Step(6, "answer", False),
)
"""The steps between the label party and each feature party."""

GIVEN = tuple(step for step in STEPS if step.number not in (2, 3))
"""The steps if rows are matched as given, so that there is nothing to align."""


KEPT_BUNDLES = 4
"""The number of the step that sends columns; a prediction ends with it."""

PILOT = Step(31, "export", False, "pilot", "3a")
"""The codes of a pilot, which a feature party sends before its release."""

WEIGHTS = Step(32, "split-query", True, "weights", "3b")
"""The label party's answer to a pilot."""


def with_pilot(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Insert the steps of a pilot before the release; a prediction has no pilot."""
    if steps[-1].number <= KEPT_BUNDLES:
        return steps
    place = [step.number for step in steps].index(KEPT_BUNDLES)
    return (*steps[:place], PILOT, WEIGHTS, *steps[place:])


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
        steps = self._route(*(e.number for e in found))[: len(found)]
        sides = [
            s.by_label_party == (e.sender == self.pair.label_party)
            for s, e in zip(steps, found, strict=False)
        ]
        if [s.number for s in steps] != [e.number for e in found] or not all(sides):
            raise atomic_files.damaged(self._file, next_step)
        return found

    def due(self) -> Step | None:
        """Return the next step, if there is one."""
        numbers = [e.number for e in self.entries]
        return next(iter(self._route(*numbers)[len(numbers) :]), None)

    def last(self) -> Step | None:
        """Return the last step that was taken, if there is one."""
        numbers = [e.number for e in self.entries]
        return self._route(*numbers)[len(numbers) - 1] if numbers else None

    def next_verb(self, step: Step) -> str:
        """Return the command with which the recipient of a step continues."""
        route = self._route(step.number)
        return next((s.verb for s in route[route.index(step) + 1 :]), "finish")

    def _route(self, *numbers: int) -> tuple[Step, ...]:
        """Return the steps of the chain, including a pilot's if ``numbers`` has one of them."""
        piloted = {PILOT.number, WEIGHTS.number}.intersection(numbers)
        return with_pilot(self.pair.steps) if piloted else self.pair.steps

    def is_repeated(self, bundle: Bundle) -> bool:
        """Return whether this is the peer's bundle that was used last."""
        theirs = [e for e in self.entries if e.sender == self.pair.peer]
        return bool(theirs) and theirs[-1].digest == bundle.digest

    def check(self, bundle: Bundle, verb: str, *numbers: int) -> None:
        """Refuse a bundle unless it is from the peer to this party, of this job, and due now.

        ``numbers`` are the numbers of the steps whose bundles ``verb`` takes.  Nothing is written
        or decrypted.
        """
        check_address(bundle, self.pair)
        name, header = bundle.path.name, bundle.header
        if header.job != self.pair.job:
            raise PeerError(
                f"{name} belongs to job {header.job}; with {self.pair.peer!r} this party is in "
                f"job {self.pair.job}."
            )
        steps = {step.number: step for step in with_pilot(self.pair.steps)}
        step = steps.get(header.number)
        theirs = self.pair.peer == self.pair.label_party
        if step is None or step.called != header.step or step.by_label_party != theirs:
            raise PeerError(f"{name} is not a step that {self.pair.peer!r} takes in this job.")
        if header.number not in numbers:
            raise PeerError(
                f"{name} is {step}, which 'opboost bundle {verb}' does not take: it is for "
                f"'opboost bundle {self.next_verb(step)}'."
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
        numbers = [*(e.number for e in entries), step.number]
        if [s.number for s in self._route(*numbers)[: len(numbers)]] != numbers:
            due = self.due() or "nothing"
            raise PeerError(f"{name} is {step}, out of turn: {due} is due.")
        if bundle.header.previous != (entries[-1].digest if entries else ""):
            raise PeerError(
                f"{name} does not answer the last bundle of this party. "
                f"Send {self.pair.peer!r} that one."
            )

    def took(self, bundle: Bundle) -> None:
        """Record that a bundle was used."""
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
        *,
        pilot: bool = False,
    ) -> Path:
        """Write the bundle of the due step, and record it together with the bundle that it answers.

        With a ``lock``, only a recipient that knows the common rows can open it.  With ``pilot``,
        the bundle holds the pilot's release instead of the full one.
        """
        entries = self.entries
        if used is not None and not self.is_repeated(used):
            entries = (*entries, BundleEntry(used.header.number, self.pair.peer, used.digest))
        numbers = [*(e.number for e in entries), *([PILOT.number] if pilot else [])]
        step = self._route(*numbers)[len(entries)]
        header = Header(
            self.pair.own,
            self.pair.peer,
            self.pair.job_hash,
            self.pair.job,
            step.number,
            step.called,
            entries[-1].digest if entries else "",
            claim=lock.claim.hex() if lock else "",
        )
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(step)
        key = lock.agreed.lock if lock else b""
        digest = write_bundle(path, header, sources, identity, recipient, key)
        self._save((*entries, BundleEntry(step.number, self.pair.own, digest)))
        return path

    def written(self) -> Path | None:
        """Return the chain's last bundle, if this party wrote it."""
        last = self.last()
        if last is None or self.entries[-1].sender != self.pair.own:
            return None
        return self._path(last)

    def _path(self, step: Step) -> Path:
        pair = self.pair
        return self._folder / f"{pair.job}.{step.file}.{pair.own}-to-{pair.peer}.bundle"

    def _save(self, entries: Sequence[BundleEntry]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        atomic_files.write(self._file, json.dumps([asdict(e) for e in entries], indent=1).encode())


def check_recipient(bundle: Bundle, own: str) -> None:
    """Refuse a bundle for another recipient."""
    recipient = bundle.header.recipient
    if recipient != own:
        raise PeerError(f"{bundle.path.name} is for {recipient!r}; this party is {own!r}.")


def check_address(bundle: Bundle, pair: Pair) -> None:
    """Refuse a bundle for another recipient, from another sender, or of another job file."""
    check_recipient(bundle, pair.own)
    name, header = bundle.path.name, bundle.header
    if header.sender != pair.peer:
        raise PeerError(f"{name} is from {header.sender!r}; one from {pair.peer!r} is expected.")
    if header.job_hash != pair.job_hash:
        raise PeerError(
            f"{name} belongs to another job file: its SHA-256 is {header.job_hash[:16]}..., this "
            f"party's {pair.job_hash[:16]}.... All parties need the same file, byte by byte."
        )


def hand_out(bundle: Path, folder: Path) -> Path:
    """Copy a bundle to the folder from which people carry it."""
    if not bundle.exists():
        raise DataError(
            f"{bundle.name} was written before and is missing",
            hint="A finished job keeps no bundles once a person is forgotten. Ask the label party "
            "to begin a new run (--again).",
        )
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / bundle.name
    with bundle.open("rb") as source, atomic_files.writing(target) as out:
        shutil.copyfileobj(source, out, 2**20)
    return target
