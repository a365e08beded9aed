"""The label party's side of a networked prediction: open the gate, take columns in, predict.

What came stays on disk: a job that is done is predicted again without anybody else.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError
from opboost.estimators import load
from opboost.parties.label.predictions import check_own
from opboost.protocol.entropy_coding import warm_up
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import status
from opboost.transport.label.label_job import (
    known_job,
    label_party,
    new_job,
    read_data,
    with_ids,
    write_predicted,
)
from opboost.transport.label.label_server_process import LabelServerProcess
from opboost.transport.label.network_job import NetworkJob, Opened, Say, Watch, checked_identity


def predict_with_peers(
    config: LabelConfig,
    model: Path,
    gate: LabelServerProcess,
    *,
    insecure_plaintext: bool = False,
    again: bool = False,
    watch: Watch = lambda where: None,
    opened: Opened = lambda address: None,
    say: Say = lambda words: None,
) -> tuple[pa.Table, dict[str, Any]]:
    """Run the job to its end, or take it up where it was left.

    Returns IDs with predictions, in the order of the table, and the manifest.
    """
    if config.job.purpose != "predict":
        raise ConfigError(
            f"Job {config.job.name!r} trains a model. Run, with the same -c: opboost "
            'serve; or let the parties agree on a job file with purpose = "predict".'
        )
    identity = checked_identity(config, insecure_plaintext=insecure_plaintext)
    estimator = load(model)
    with atomic_files.alone(config.state) as half_written:
        started = time.monotonic()
        folder = None if again else known_job(config, "network")
        data = read_data(config)
        check_own(estimator, data.features)
        known = folder is not None
        if folder is None:
            folder = new_job(config, data, receipts=identity is not None, way="network")

        def look(where: dict[str, Any]) -> None:
            gate.check()
            watch(where)

        session = NetworkJob.of(config, folder, data, look)
        done = (folder / "manifest.json").exists()
        if known and not done:
            session.taken_up(half_written, say)
        if not done:
            opened(session.open(gate, config, identity))
            warm_up()
        party, alignment = session.aligned(label_party(config, data))
        found = party.predict(estimator, session.channels, welcome=session.welcome, state=folder)
        seconds = time.monotonic() - started
        manifest = write_predicted(folder, session.record, found, model, seconds, alignment)
        watch(status(folder))
        if done:
            session.goodbye(gate, config, identity, say)
        else:
            session.end()
        return with_ids(data, found), manifest
