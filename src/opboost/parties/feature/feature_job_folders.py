"""What a feature party keeps on disk of its jobs: a folder each, bound to one configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from opboost.errors import PeerError, PrivacyError, WireError
from opboost.protocol.messages import Schema, ScoreTask, SplitValues, Weights, decode, encode
from opboost.storage import atomic_files

M = TypeVar("M")
RELEASE = "schema [0-9]*.arrow [0-9]*.values"
"""The files of a release, which the ledger's memory makes again."""

PILOT = "pilot"
"""The folder of a pilot's release within a job's."""


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
            ("weights", "weights known"),
            (f"{PILOT}/schema", "pilot released"),
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
        known = self._read(file)
        if known["about"] != self._about or (nonce is not None and known["nonce"] != nonce.hex()):
            raise PrivacyError(
                f"Job {job} began with another recipient or configuration, and released under it. "
                "Bring that configuration back to finish it, or let the label party begin a new "
                "run of the job: opboost serve --again."
            )

    def is_replanned(self, job: str, nonce: bytes) -> bool:
        """Whether a job that released nothing goes on to the same recipient with another plan."""
        if not self.is_bound(job) or self.is_released(job) or self.piloted(job) is not None:
            return False
        known = self._read(self.folder(job) / "binding.json")
        if known["nonce"] != nonce.hex() or known["about"] == self._about:
            return False
        before, now = json.loads(known["about"]), json.loads(self._about)
        return all(before[name] == now[name] for name in ("recipient", "align"))

    def unbind(self, job: str) -> None:
        """Let a job that released nothing go from the configuration that it began with."""
        (self.folder(job) / "binding.json").unlink(missing_ok=True)

    @staticmethod
    def _read(binding: Path) -> dict[str, str]:
        known: dict[str, str] = atomic_files.read_json(
            binding, dict[str, str], atomic_files.AT_FEATURE_PARTY, checksum=True
        )
        if set(known) != {"about", "nonce"}:
            raise atomic_files.damaged(binding, atomic_files.AT_FEATURE_PARTY)
        return known

    def is_released(self, job: str) -> bool:
        """Whether the release of a job is whole."""
        return (self.folder(job) / "schema").exists()

    def released(self, job: str) -> tuple[Schema, list[Path]]:
        """The release that was made for a job."""
        folder = self.folder(job)
        return _own(folder / "schema", Schema), sorted(folder.glob("*.arrow"))

    def pilot(self, job: str) -> Path:
        """Where the release of a job's pilot is kept."""
        return self.folder(job) / PILOT

    def piloted(self, job: str) -> tuple[Schema, list[Path]] | None:
        """The release of a job's pilot; None where it was not made."""
        folder = self.pilot(job)
        if not (folder / "schema").exists():
            return None
        return _own(folder / "schema", Schema), sorted(folder.glob("*.arrow"))

    def weights(self, job: str) -> Weights | None:
        """The weights that the label party told in a job; None where it has not yet."""
        file = self.folder(job) / "weights"
        return _own(file, Weights) if file.exists() else None

    def last_weights(self) -> Weights | None:
        """The weights of the last job with this recipient and configuration that had any."""
        for file in sorted(self.state.glob("*/weights"), reverse=True):
            binding = file.parent / "binding.json"
            if binding.exists() and self._read(binding)["about"] == self._about:
                return _own(file, Weights)
        return None

    def keep_weights(self, weights: Weights) -> None:
        """Keep the weights of a job; others than those that are known are refused."""
        known = self.weights(weights.job)
        if known is not None and known != weights:
            raise PeerError(f"Other weights of columns came before in job {weights.job}.")
        atomic_files.write(self.folder(weights.job) / "weights", encode(weights))

    def keep_task(self, task: ScoreTask) -> None:
        """Keep the score that a job asks for; another one in the same job is refused."""
        file = self.folder(task.job) / "score"
        if file.exists() and _own(file, ScoreTask) != task:
            raise PrivacyError(
                f"The label party asks for a second, different score in job {task.job}. One is "
                "released a job."
            )
        if not file.exists() and self.is_released(task.job):
            raise PeerError(f"Columns were released in job {task.job}, and now a score is wanted.")
        atomic_files.write(file, encode(task))

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
