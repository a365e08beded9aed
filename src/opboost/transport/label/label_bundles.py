"""The label party's side of a job by bundles.

Every command does the same: it takes the bundles that arrived, continues the job until it needs
more, and writes the resulting messages, one bundle for each feature party.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError, PeerError
from opboost.storage import atomic_files
from opboost.transport.label.bundle_channel import BundleChannel, Paused
from opboost.transport.label.bundle_intake import BundleIntake
from opboost.transport.label.bundle_replies import BundleReplies
from opboost.transport.label.job_folder import JobRecord, PartyFolder, is_done
from opboost.transport.label.label_goals import Goal, PredictionGoal, Reached, TrainingGoal
from opboost.transport.label.label_job import (
    check_booster,
    check_predicted,
    current,
    known_job,
    new_job,
    read_data,
)
from opboost.transport.label.label_job_run import LabelJobRun
from opboost.transport.shared.bundle_chain import BundleChain, Step
from opboost.transport.shared.bundle_file import open_bundle
from opboost.transport.shared.bundle_steps import (
    BundleOutcome,
    Tools,
    Written,
    check_meeting,
    handed_out,
    pair_of,
    steps_of,
    swept,
    turn,
)
from opboost.transport.shared.job_integrity import check_version

if TYPE_CHECKING:
    from opboost.parties.label.label_party import Estimator


def begin(
    config: LabelConfig, to: Path, *, again: bool = False, score: Path | None = None
) -> BundleOutcome:
    """Begin a job and write a bundle for every feature party; a repeat gives the same bundles.

    In a prediction by score, ``score`` is the model: the first bundle asks each party for its
    score.
    """
    check_meeting(config.job, continued=config.continue_from is not None)
    estimator = None if score is None else _scored_by(config, score)
    tools = Tools.of(config.tls, config.party.name)
    revoked = {name for name, peer in config.peers.items() if peer.revoked}
    for peer in config.job.feature_parties:
        if peer not in revoked:
            tools.public(peer)  # report a missing key before anything begins
    with atomic_files.alone(config.state):
        folder = None if again else known_job(config, "bundles")
        if folder is None:
            check_booster(config)
            data = read_data(config)
            if config.job.purpose == "train":
                TrainingGoal(config).check(data)
            folder = new_job(config, data, receipts=True, way="bundles")
        job = BundleJob(config, folder, tools)
        if estimator is not None:
            job.want_scores(estimator)
        if is_done(folder) or all(len(chain.entries) > 1 for chain in job.chains.values()):
            raise ConfigError(
                f"Job {job.record.job} is past this step with every party. Continue it, or begin "
                "a new run of it with --again."
            )
        return job.go_on((1,), to)


def go_on(config: LabelConfig, verb: str, inputs: Sequence[Path], to: Path) -> BundleOutcome:
    """Take bundles, and continue the job as far as possible."""
    now = turn(steps_of(config.job), verb, by_label_party=True)
    with _taken(config, verb, now.takes, inputs) as job:
        if (known := TrainingGoal(config).known(job.folder)) is not None:
            return BundleOutcome(job.record.job, (), {}, known.manifest)
        return job.go_on(now.writes, to)


def predict(
    config: LabelConfig,
    inputs: Sequence[Path],
    model: Path,
    write: Callable[[pa.Table], None],
    without: Sequence[str] = (),
) -> BundleOutcome:
    """Take the last bundles of a prediction, and pass IDs and predictions to ``write``.

    ``without`` names parties of the model that do not take part.
    """
    from opboost.estimators import load

    estimator = load(model)
    check_predicted(config, estimator, "columns", without)
    now = turn(steps_of(config.job), "finish", by_label_party=True)
    with _taken(config, "finish", now.takes, inputs) as job:
        release: Literal["columns", "score"] = "score" if job.wants_scores else "columns"
        goal = PredictionGoal(estimator, model, release, tuple(without))
        reached = job.run(goal)
        if reached is not None:
            write(reached.predictions)
        return job.outcome((), reached)


def _scored_by(config: LabelConfig, model: Path) -> Estimator:
    """Return the model whose scores are wanted, or refuse it before the job begins."""
    from opboost.estimators import load

    if config.job.purpose != "predict":
        raise ConfigError(
            f"--release score is for predictions, and job {config.job.name!r} trains a model. The "
            'parties have to agree on a job file with purpose = "predict".'
        )
    estimator = load(model)
    check_predicted(config, estimator, "score", ())
    return estimator


@contextmanager
def _taken(
    config: LabelConfig, verb: str, numbers: Sequence[int], inputs: Sequence[Path]
) -> Iterator[BundleJob]:
    """Take these bundles, and yield the run of the job to which they belong."""
    tools = Tools.of(config.tls, config.party.name)
    bundles = [open_bundle(path, tools.identity.ca) for path in inputs]
    folder = known_job(config, "bundles")
    if folder is None:
        raise PeerError(
            f"{bundles[0].path.name} belongs to a job that was not begun here: "
            f"{config.state} holds none of {config.job.name!r}."
        )
    BundleJob(config, folder, tools).intake.check(bundles, verb, numbers)
    with atomic_files.alone(config.state):
        job = BundleJob(config, folder, tools)
        job.intake.check(bundles, verb, numbers)
        swept(folder)
        job.intake.take(bundles)
        yield job


class BundleJob:
    """A run of a job by bundles."""

    def __init__(self, config: LabelConfig, folder: Path, tools: Tools) -> None:
        self.folder, self._config = folder, config
        check_version(folder)
        self.record = replace(JobRecord.load(folder), **current(config))
        own, number = config.party.name, self.record.job
        self.chains = {
            peer: BundleChain(folder, pair_of(config.job, own, peer, number))
            for peer in self.record.active
        }
        self.intake = BundleIntake(folder, self.record, tools, self.chains)
        self._replies = BundleReplies(folder, self.record, tools)

    def want_scores(self, estimator: Estimator) -> None:
        """Note for every party the score that it is asked for."""
        from opboost.parties.label.score_query import score_task

        for name in self.record.active:
            task = score_task(estimator, name, self.record.job)
            BundleChannel(self.folder, name).want_score(task)

    @property
    def wants_scores(self) -> bool:
        """Whether the job asks for scores instead of columns."""
        return any(PartyFolder(self.folder, name).has("score") for name in self.record.active)

    def go_on(self, numbers: Sequence[int], to: Path) -> BundleOutcome:
        """Continue as far as possible, and copy the bundles of these steps into ``to``."""
        trains = self._config.job.purpose == "train"
        reached = self.run(TrainingGoal(self._config) if trains else None)
        for peer, chain in self.chains.items():
            self._replies.write_due(peer, chain)
        return self.outcome(handed_out(self.chains.values(), numbers, to), reached)

    def run(self, goal: Goal | None) -> Reached | None:
        """Reach the goal, or align rows if there is no goal; return None if bundles are missing."""
        started = time.monotonic()
        self.record.save(self.folder)
        data = read_data(self._config)
        channels = [BundleChannel(self.folder, name) for name in self.record.active]
        run = LabelJobRun(self._config, self.folder, self.record, data, channels, started)
        with suppress(Paused):
            if goal is not None:
                goal.check(data)
                goal.leave_terms(run)
                return run.reach(goal)
            run.aligned()
        return None

    def outcome(self, written: tuple[Written, ...], reached: Reached | None) -> BundleOutcome:
        """Return a command's outcome: the bundles that it wrote, and the parties it waits for."""
        if reached is None:
            return BundleOutcome(self.record.job, written, self._waiting(), None)
        return BundleOutcome(self.record.job, written, {}, reached.manifest)

    def _waiting(self) -> dict[str, Step]:
        due = {peer: chain.due() for peer, chain in self.chains.items()}
        return {peer: s for peer, s in due.items() if s is not None and not s.by_label_party}
