"""What a feature party keeps on disk of its jobs: a folder each, bound to one configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from opboost.errors import PeerError, PrivacyError, WireError
from opboost.protocol.messages import Schema, SplitValues, decode, encode
from opboost.storage import atomic_files

M = TypeVar("M")
RELEASE = "schema [0-9]*.arrow [0-9]*.values"
"""The files of a release, which the ledger's memory makes again."""


class FeatureJobFolders:
    """The folders of a feature party's jobs.

    ``about`` is the JSON text of the recipient and configuration that a job must keep.
    """

    def __init__(self, state: Path, about: str) -> None:
        self.state, self._about = state, about

    def folder(self, job: str) -> Path:
        """Where the state of a job is kept."""
        return self.state / job

    def phase(self, job: str) -> str | None:
        """How far a job is here; None where nothing of it is known."""
        folder = self.folder(job)
        for file, phase in (
            ("answer", "answered"),
            ("schema", "released"),
            ("common", "aligned"),
            ("binding.json", "begun"),
        ):
            if (folder / file).exists():
                return phase
        return None

    def is_bound(self, job: str) -> bool:
        """Whether a job's folder is tied to a configuration."""
        return (self.folder(job) / "binding.json").exists()

    def bind(self, job: str, nonce: bytes | None = None) -> None:
        """Tie a job's folder to its recipient and configuration; refuse it to any other."""
        file = self.folder(job) / "binding.json"
        if not file.exists():
            if nonce is None:
                raise never_released(job)
            file.parent.mkdir(parents=True, exist_ok=True)
            plain = json.dumps({"nonce": nonce.hex(), "about": self._about}).encode()
            atomic_files.write(file, atomic_files.with_checksum(plain))
        known = atomic_files.read_json(
            file, dict[str, str], atomic_files.AT_FEATURE_PARTY, checksum=True
        )
        if set(known) != {"about", "nonce"}:
            raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY)
        if known["about"] != self._about or (nonce is not None and known["nonce"] != nonce.hex()):
            raise PrivacyError(
                f"Job {job} began with another recipient or configuration. Bring that "
                "configuration back to finish it, or let the label party begin a new job."
            )

    def is_released(self, job: str) -> bool:
        """Whether the release of a job is whole."""
        return (self.folder(job) / "schema").exists()

    def released(self, job: str) -> tuple[Schema, list[Path]]:
        """The release that was made for a job."""
        folder = self.folder(job)
        return _own(folder / "schema", Schema), sorted(folder.glob("*.arrow"))

    def answer(self, job: str) -> SplitValues | None:
        """The answer that was given in a job; None where none was."""
        file = self.folder(job) / "answer"
        return _own(file, SplitValues) if file.exists() else None

    def keep_answer(self, answer: SplitValues) -> None:
        """Keep the answer of a job."""
        atomic_files.write(self.folder(answer.job) / "answer", encode(answer))


def never_released(job: str) -> PeerError:
    """What a label party is told that asks before anything was released."""
    return PeerError(f"A split query came for job {job}, which was never released.")


def _own(file: Path, kind: type[M]) -> M:
    """A message that this party wrote to its disk."""
    try:
        return decode(file.read_bytes(), kind)
    except WireError:
        raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY) from None
