"""The label party's side of a job by bundles.

Every verb does the same: take in what came, go on with the job until something is still to come,
and write what was said meanwhile, a bundle for each feature party.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError, PeerError
from opboost.storage import atomic_files
from opboost.transport.label.bundle_channel import BundleChannel, Paused
from opboost.transport.label.bundle_intake import BundleIntake
from opboost.transport.label.bundle_replies import BundleReplies
from opboost.transport.label.job_folder import JobRecord, is_done
from opboost.transport.label.label_goals import Goal, PredictionGoal, Reached, TrainingGoal
from opboost.transport.label.label_job import current, known_job, new_job, read_data
from opboost.transport.label.label_job_run import LabelJobRun
from opboost.transport.shared.bundle_chain import BundleChain, Step
from opboost.transport.shared.bundle_file import open_bundle
from opboost.transport.shared.bundle_steps import (
    BundleOutcome,
    Tools,
    Written,
    handed_out,
    pair_of,
    steps_of,
    swept,
    turn,
)
from opboost.transport.shared.job_integrity import check_version


def begin(config: LabelConfig, to: Path, *, again: bool = False) -> BundleOutcome:
    """Begin a job: a bundle for every feature party; repeated, the same bundles."""
    tools = Tools.of(config.tls, config.party.name)
    revoked = {name for name, peer in config.peers.items() if peer.revoked}
    for peer in config.job.feature_parties:
        if peer not in revoked:
            tools.public(peer)  # one that lacks is told before anything begins
    with atomic_files.alone(config.state):
        folder = None if again else known_job(config, "bundles")
        if folder is None:
            folder = new_job(config, read_data(config), receipts=True, way="bundles")
        job = BundleJob(config, folder, tools)
        if is_done(folder) or all(len(chain.entries) > 1 for chain in job.chains.values()):
            raise ConfigError(
                f"Job {job.record.job} is past this step with every party. Go on with it, or begin "
                "a new run of it with --again."
            )
        return job.go_on(1, to)


def go_on(config: LabelConfig, verb: str, inputs: Sequence[Path], to: Path) -> BundleOutcome:
    """Take bundles in, and go on with the job as far as it goes."""
    now = turn(steps_of(config.job), verb, by_label_party=True)
    with _taken(config, verb, now.takes, inputs) as job:
        if (known := TrainingGoal(config).known(job.folder)) is not None:
            return BundleOutcome(job.record.job, (), {}, known.manifest)
        return job.go_on(now.writes, to)


def predict(
    config: LabelConfig, inputs: Sequence[Path], model: Path, write: Callable[[pa.Table], None]
) -> BundleOutcome:
    """Take the last bundles of a prediction in; ``write`` is given IDs and predictions."""
    from opboost.estimators import load

    goal = PredictionGoal(load(model), model)
    now = turn(steps_of(config.job), "finish", by_label_party=True)
    with _taken(config, "finish", now.takes, inputs) as job:
        reached = job.run(goal)
        if reached is not None:
            write(reached.predictions)
        return job.outcome((), reached)


@contextmanager
def _taken(
    config: LabelConfig, verb: str, number: int, inputs: Sequence[Path]
) -> Iterator[BundleJob]:
    """The run of a job that bundles belong to, when they are taken in."""
    tools = Tools.of(config.tls, config.party.name)
    bundles = [open_bundle(path, tools.identity.ca) for path in inputs]
    folder = known_job(config, "bundles")
    if folder is None:
        raise PeerError(
            f"{bundles[0].path.name} belongs to a job that did not begin here: "
            f"{config.state} holds none of {config.job.name!r}."
        )
    BundleJob(config, folder, tools).intake.check(bundles, verb, number)
    with atomic_files.alone(config.state):
        job = BundleJob(config, folder, tools)
        job.intake.check(bundles, verb, number)
        swept(folder)
        job.intake.take(bundles)
        yield job


class BundleJob:
    """A run of a job, under way."""

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

    def go_on(self, number: int, to: Path) -> BundleOutcome:
        """Go as far as it goes, write what is to be sent, hand out the bundles of a step."""
        trains = self._config.job.purpose == "train"
        reached = self.run(TrainingGoal(self._config) if trains else None)
        for peer, chain in self.chains.items():
            self._replies.write_due(peer, chain)
        return self.outcome(handed_out(self.chains.values(), number, to), reached)

    def run(self, goal: Goal | None) -> Reached | None:
        """Reach a goal, or align rows where there is none yet; None until all that needs came."""
        started = time.monotonic()
        self.record.save(self.folder)
        data = read_data(self._config)
        channels = [BundleChannel(self.folder, name) for name in self.record.active]
        run = LabelJobRun(self._config, self.folder, self.record, data, channels, started)
        with suppress(Paused):
            if goal is not None:
                goal.check(data)
                return run.reach(goal)
            run.aligned()
        return None

    def outcome(self, written: tuple[Written, ...], reached: Reached | None) -> BundleOutcome:
        """What a verb tells: the bundles that it wrote, and who is waited for if that is all."""
        if reached is None:
            return BundleOutcome(self.record.job, written, self._waiting(), None)
        return BundleOutcome(self.record.job, written, {}, reached.manifest)

    def _waiting(self) -> dict[str, Step]:
        due = {peer: chain.due() for peer, chain in self.chains.items()}
        return {peer: s for peer, s in due.items() if s is not None and not s.by_label_party}
