"""The label party's side of a networked job: serve, receive columns, train or predict.

Received columns stay on disk, so a finished prediction can be repeated without the other parties.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError
from opboost.protocol.entropy_coding import warm_up
from opboost.runtime.loading import loading
from opboost.storage import atomic_files
from opboost.transport.label.connection_limits import NOT_LIMITED
from opboost.transport.label.job_folder import status
from opboost.transport.label.label_goals import Goal, PredictionGoal, Reached, TrainingGoal
from opboost.transport.label.label_job import (
    check_booster,
    check_predicted,
    known_job,
    new_job,
    read_data,
)
from opboost.transport.label.label_job_run import LabelJobRun
from opboost.transport.label.label_server_process import LabelServerProcess
from opboost.transport.label.network_job import NetworkJob, Opened, Say, Watch, checked_identity
from opboost.transport.shared.job_integrity import check_version
from opboost.transport.shared.open_connections import can_watch
from opboost.transport.shared.tls import Identity


@dataclass(frozen=True, slots=True)
class Listeners:
    """The callbacks through which a caller follows a job."""

    watch: Watch
    opened: Opened
    say: Say


def serve(
    config: LabelConfig,
    label_server: LabelServerProcess,
    *,
    insecure_plaintext: bool = False,
    again: bool = False,
    watch: Watch = lambda where: None,
    opened: Opened = lambda address: None,
    say: Say = lambda words: None,
) -> dict[str, Any]:
    """Run the job to its end, or resume it where it stopped, and return the manifest."""
    if config.job.purpose != "train":
        raise ConfigError(
            f'Job {config.job.name!r} has purpose = "predict". Run, with the same -c: opboost '
            "predict MODEL TABLE --with-peers."
        )
    identity = checked_identity(config, insecure_plaintext=insecure_plaintext)
    told = Listeners(watch, opened, say)
    return _run(config, TrainingGoal(config), label_server, identity, told, again=again).manifest


def predict_with_peers(
    config: LabelConfig,
    model: Path,
    label_server: LabelServerProcess,
    *,
    release: Literal["columns", "score"] = "columns",
    without: Sequence[str] = (),
    insecure_plaintext: bool = False,
    again: bool = False,
    watch: Watch = lambda where: None,
    opened: Opened = lambda address: None,
    say: Say = lambda words: None,
) -> tuple[pa.Table, dict[str, Any]]:
    """Run the job to its end, or resume it where it stopped.

    Return IDs with predictions, in the order of the table, and the manifest.
    """
    if config.job.purpose != "predict":
        raise ConfigError(
            f"Job {config.job.name!r} trains a model. Run, with the same -c: opboost "
            'serve; or let the parties agree on a job file with purpose = "predict".'
        )
    identity = checked_identity(config, insecure_plaintext=insecure_plaintext)
    with loading:  # the boosters
        from opboost.estimators import load

        estimator = load(model)
    check_predicted(config, estimator, release, without)
    goal, told = (
        PredictionGoal(estimator, model, release, tuple(without)),
        Listeners(watch, opened, say),
    )
    reached = _run(config, goal, label_server, identity, told, again=again)
    return reached.predictions, reached.manifest


def _run(
    config: LabelConfig,
    goal: Goal,
    label_server: LabelServerProcess,
    identity: Identity | None,
    told: Listeners,
    *,
    again: bool,
) -> Reached:
    """Reach the goal of a new or interrupted job."""
    with atomic_files.alone(config.state) as half_written:
        started = time.monotonic()
        folder = None if again else known_job(config, "network")
        if folder is not None and (known := goal.known(folder)) is not None:
            NetworkJob.of(config, folder).goodbye(label_server, config, identity, told.say)
            return known
        data = read_data(config)
        goal.check(data)
        begun = folder is not None
        if folder is None:
            check_booster(config)
            folder = new_job(config, data, receipts=identity is not None, way="network")

        def look(where: dict[str, Any]) -> None:
            label_server.check()
            told.watch(where)

        job, repeated = NetworkJob.of(config, folder), goal.needs_nobody(folder)
        check_version(folder)
        channels = job.channels(config.limits.wait_seconds, look)
        run = LabelJobRun(config, folder, job.record, data, channels, started, job.log)
        if begun and not repeated:
            job.report_resumed(half_written, told.say)
        if not repeated:
            if not can_watch():
                told.say(NOT_LIMITED)
            goal.leave_terms(run)
            told.opened(job.open(label_server, config, identity))
            warm_up()
        reached = run.reach(goal)
        told.watch(status(folder))
        if repeated:
            job.goodbye(label_server, config, identity, told.say)
        else:
            job.end()
        return reached
