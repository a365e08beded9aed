"""What both sides of a job by bundles share: keys, steps, and the outcome of a command."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from opboost.config.job_file import Job, Tls
from opboost.errors import ConfigError, PeerError
from opboost.psi.curve_points import PIECE_POINTS, POINT_BYTES
from opboost.transport.shared.bundle_chain import (
    GIVEN,
    KEPT_BUNDLES,
    STEPS,
    BundleChain,
    Pair,
    Step,
    hand_out,
    with_pilot,
)
from opboost.transport.shared.bundle_file import Bundle
from opboost.transport.shared.bundle_keys import PrivateKey, PublicKey, read_key, read_public
from opboost.transport.shared.tls import Identity, read_identity

MAX_MESSAGE_BYTES = 2**26
"""The largest message in a bundle; columns are streams and may be larger."""


@dataclass(frozen=True, slots=True)
class Tools:
    """A party's keys: to sign, to open, and to encrypt for others."""

    tls: Tls
    identity: Identity
    key: PrivateKey

    @classmethod
    def of(cls, tls: Tls | None, name: str) -> Tools:
        """Read and check the keys that a party's file names."""
        identity = read_identity(tls, name)
        assert tls is not None
        key, own = read_key(tls.encryption), tls.public_of(name)
        if own.exists() and read_public(own, name, identity.ca) != key.public(name):
            raise ConfigError(
                f"{own} is not the public half of {tls.encryption}: what others send could not be "
                "opened. Certify the right key with 'opboost certs encryption KIT --key PATH', and "
                "give the new file to every other party."
            )
        return cls(tls, identity, key)

    def public(self, party: str) -> PublicKey:
        """Return a peer's public key."""
        return read_public(self.tls.public_of(party), party, self.identity.ca)


@dataclass(frozen=True, slots=True)
class Written:
    """A bundle that is ready to be carried."""

    path: Path
    recipient: str
    step: Step
    next: str
    """The command with which the recipient continues."""

    @property
    def options(self) -> str:
        """The options that the command needs besides its file and the bundle."""
        if self.next != "finish":
            return " --to DIR"
        return " --model MODEL --out FILE" if self.step.number == KEPT_BUNDLES else ""


@dataclass(frozen=True, slots=True)
class BundleOutcome:
    """The outcome of a command."""

    job: str
    written: tuple[Written, ...]
    waiting: dict[str, Step]
    """The parties whose bundles are still missing, with their steps."""
    manifest: dict[str, Any] | None


def steps_of(job: Job) -> tuple[Step, ...]:
    """Return the steps between the label party and each feature party."""
    steps = STEPS if job.align == "psi" else GIVEN
    return steps if job.purpose == "train" else tuple(s for s in steps if s.number <= KEPT_BUNDLES)


def check_meeting(job: Job, *, continued: bool = False) -> None:
    """Refuse shared terms if a party could release before all parties have accepted them."""
    parties = len(job.feature_parties)
    if job.align == "psi" or parties == 1 or not (continued or job.record is not None):
        return
    what = (
        f"limits what {parties} feature parties reveal together ([job] record)"
        if job.record is not None
        else f"continues a model ([label] continue_from), whose columns {parties} feature parties "
        "compare with theirs"
    )
    raise ConfigError(
        f"Job {job.name!r} {what}, and by bundles they first meet when rows are aligned, which "
        'are given here. Write align = "psi" under [job], or run it over the network.'
    )


@dataclass(frozen=True, slots=True)
class Turn:
    """The numbers of the steps that a command takes, and of those that it writes.

    There are several of each if a pilot may come before the release.
    """

    takes: tuple[int, ...]
    writes: tuple[int, ...]


def turn(steps: tuple[Step, ...], verb: str, *, by_label_party: bool) -> Turn:
    """Return which bundles a command takes and writes in a job with these steps."""
    if verb == "finish":
        return Turn((steps[-1].number,), ())
    found = [
        (before.number, step.number)
        for route in (steps, with_pilot(steps))
        for before, step in pairwise(route)
        if step.verb == verb and step.by_label_party == by_label_party
    ]
    if found:
        takes, writes = (tuple(dict.fromkeys(numbers)) for numbers in zip(*found, strict=True))
        return Turn(takes, writes)
    if verb != "align":
        raise ConfigError(
            "A prediction has no split query. When the feature parties have written their columns "
            "('opboost bundle export'), the label party continues with 'opboost bundle finish -c "
            "CONFIG IN... --model MODEL --out FILE'."
        )
    raise ConfigError(
        "Rows are matched as given in this job, so there is nothing to align. The label party "
        "begins the job with 'opboost bundle align', without a bundle; the feature parties "
        "continue with 'opboost bundle export'."
    )


def pair_of(job: Job, own: str, peer: str, number: str) -> Pair:
    """Return the pair of two parties in the run of a job with this number."""
    return Pair(own, peer, job.hash.hex(), number, job.label_party, steps_of(job))


def handed_out(
    chains: Iterable[BundleChain], numbers: Collection[int], to: Path
) -> tuple[Written, ...]:
    """Copy chains' last bundles to a folder if their steps have these numbers; return them."""
    found = []
    for chain in chains:
        last, bundle = chain.last(), chain.written()
        if last is not None and bundle is not None and last.number in numbers:
            path = hand_out(bundle, to)
            found.append(Written(path, chain.pair.peer, last, chain.next_verb(last)))
    return tuple(found)


def swept(job: Path) -> None:
    """Remove items that an interrupted run had decrypted."""
    for left in (job / "bundles").glob("opening-*"):
        shutil.rmtree(left)


@contextmanager
def staging(job: Path) -> Iterator[Path]:
    """Yield a temporary folder for decrypted items; see also :func:`swept`."""
    folder = job / "bundles"
    folder.mkdir(parents=True, exist_ok=True)
    place = Path(tempfile.mkdtemp(prefix="opening-", dir=folder))
    try:
        yield place
    finally:
        shutil.rmtree(place)
        with suppress(OSError):  # a refused bundle leaves no folders, either
            folder.rmdir()
            job.rmdir()


def check_sizes(bundle: Bundle) -> None:
    """Refuse, before anything is decrypted, items larger than any message may be."""
    for item in bundle.header.items:
        points = item.name.endswith((".label", ".feature", ".raised"))
        most = PIECE_POINTS * POINT_BYTES + 2**16 if points else MAX_MESSAGE_BYTES
        if item.size > most and not item.name.endswith(".arrow"):
            raise PeerError(
                f"{bundle.path.name}: its item {item.name!r} has {item.size:,} bytes; "
                f"at most {most:,} are allowed."
            )


def check_items(inside: Path, expected: Iterable[str]) -> None:
    """Refuse a bundle whose items are not exactly those of its step."""
    if {file.name for file in inside.iterdir()} != set(expected):
        raise PeerError(_ITEMS)


def read_item(inside: Path, name: str) -> bytes:
    """Return an item's bytes; refuse a bundle that lacks it."""
    try:
        return (inside / name).read_bytes()
    except FileNotFoundError:
        raise PeerError(_ITEMS) from None


_ITEMS = "Its items are not those of its step."
