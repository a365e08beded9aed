"""What a feature party keeps on disk: one folder per job, bound to one configuration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TypeVar

from opboost.errors import PeerError, PrivacyError, WireError
from opboost.protocol.messages import Schema, ScoreTask, SplitValues, Weights, decode, encode
from opboost.storage import atomic_files

M = TypeVar("M")
RELEASE = "schema [0-9]*.arrow [0-9]*.values"
"""The files of a release, which can be recreated from the noise that the ledger remembers."""

PILOT = "pilot"
"""The folder of a pilot's release, within the job's folder."""


class FeatureJobFolders:
    """The folders of a feature party's jobs.

    ``about`` is the recipient and configuration, as JSON text, that must not change during a job.
    """

    def __init__(self, state: Path, about: str) -> None:
        self.state, self._about = state, about

    def folder(self, job: str) -> Path:
        """Return the folder that keeps the state of a job."""
        return self.state / job

    def phase(self, job: str) -> str | None:
        """Return how far this party has got with a job; None if it does not know the job."""
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
        """Return whether a job's folder is bound to a configuration."""
        return (self.folder(job) / "binding.json").exists()

    def bind(self, job: str, nonce: bytes | None = None) -> None:
        """Bind a job's folder to its recipient and configuration; refuse any other."""
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
                f"Job {job} began, and released columns, for another recipient or under another "
                "configuration. Restore that configuration to finish the job, or ask the label "
                "party to begin a new run of it: opboost serve --again."
            )

    def is_replanned(self, job: str, nonce: bytes) -> bool:
        """Return whether the plan of a job has changed before the job released anything.

        The recipient must be the same.
        """
        if not self.is_bound(job) or self.is_released(job) or self.piloted(job) is not None:
            return False
        known = self._read(self.folder(job) / "binding.json")
        if known["nonce"] != nonce.hex() or known["about"] == self._about:
            return False
        before, now = json.loads(known["about"]), json.loads(self._about)
        return all(before[name] == now[name] for name in ("recipient", "align"))

    def unbind(self, job: str) -> None:
        """Unbind a job, which has released nothing, from the configuration that it began with."""
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
        """Return whether the release of a job is complete."""
        return (self.folder(job) / "schema").exists()

    def released(self, job: str) -> tuple[Schema, list[Path]]:
        """Return the release that was made for a job."""
        folder = self.folder(job)
        return _own(folder / "schema", Schema), sorted(folder.glob("*.arrow"))

    def pilot(self, job: str) -> Path:
        """Return the folder that keeps the release of a job's pilot."""
        return self.folder(job) / PILOT

    def piloted(self, job: str) -> tuple[Schema, list[Path]] | None:
        """Return the release of a job's pilot; None if it was not made."""
        folder = self.pilot(job)
        if not (folder / "schema").exists():
            return None
        return _own(folder / "schema", Schema), sorted(folder.glob("*.arrow"))

    def weights(self, job: str) -> Weights | None:
        """Return the weights that the label party sent in a job; None if it has sent none."""
        file = self.folder(job) / "weights"
        return _own(file, Weights) if file.exists() else None

    def last_weights(self) -> Weights | None:
        """Return the weights of the last job with this recipient and configuration that had any."""
        for file in sorted(self.state.glob("*/weights"), reverse=True):
            binding = file.parent / "binding.json"
            if binding.exists() and self._read(binding)["about"] == self._about:
                return _own(file, Weights)
        return None

    def keep_weights(self, weights: Weights) -> None:
        """Keep the weights of a job; refuse weights that differ from those already kept."""
        known = self.weights(weights.job)
        if known is not None and known != weights:
            raise PeerError(f"Job {weights.job} already has other column weights.")
        atomic_files.write(self.folder(weights.job) / "weights", encode(weights))

    def keep_task(self, task: ScoreTask) -> None:
        """Keep the score that a job asks for; refuse a second, different one in the same job."""
        file = self.folder(task.job) / "score"
        if file.exists() and _own(file, ScoreTask) != task:
            raise PrivacyError(
                f"The label party asks for a second, different score in job {task.job}. A job "
                "releases only one."
            )
        if not file.exists() and self.is_released(task.job):
            raise PeerError(f"Job {task.job} has released columns, so it releases no score.")
        atomic_files.write(file, encode(task))

    def answer(self, job: str) -> SplitValues | None:
        """Return the answer that was given in a job; None if none was given."""
        file = self.folder(job) / "answer"
        return _own(file, SplitValues) if file.exists() else None

    def keep_answer(self, answer: SplitValues) -> None:
        """Keep the answer of a job."""
        atomic_files.write(self.folder(answer.job) / "answer", encode(answer))


def never_released(job: str) -> PeerError:
    """Return the error for a split query that arrives before anything was released."""
    return PeerError(f"A split query arrived for job {job}, which has released nothing.")


def _own(file: Path, kind: type[M]) -> M:
    """Read a message that this party wrote to its own disk."""
    try:
        return decode(file.read_bytes(), kind)
    except WireError:
        raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY) from None
