"""The label party's side of a networked training: open the gate, train, ask, write the model."""

from __future__ import annotations

import time
from typing import Any

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError
from opboost.protocol.entropy_coding import warm_up
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import status
from opboost.transport.label.label_job import (
    known_job,
    label_party,
    new_job,
    read_data,
    read_manifest,
    write_model,
)
from opboost.transport.label.label_server_process import LabelServerProcess
from opboost.transport.label.network_job import NetworkJob, Opened, Say, Watch, checked_identity


def serve(
    config: LabelConfig,
    gate: LabelServerProcess,
    *,
    insecure_plaintext: bool = False,
    again: bool = False,
    watch: Watch = lambda where: None,
    opened: Opened = lambda address: None,
    say: Say = lambda words: None,
) -> dict[str, Any]:
    """Run the job to its end, or take it up where it was left; returns the manifest."""
    if config.job.purpose != "train":
        raise ConfigError(
            f'Job {config.job.name!r} has purpose = "predict". Run, with the same -c: opboost '
            "predict MODEL TABLE --with-peers."
        )
    identity = checked_identity(config, insecure_plaintext=insecure_plaintext)
    with atomic_files.alone(config.state) as half_written:
        folder = None if again else known_job(config, "network")
        done = folder is not None and (folder / "manifest.json").exists()
        if folder is not None and done and config.model.exists():
            manifest = read_manifest(folder)
            NetworkJob.of(config, folder, None, watch).goodbye(gate, config, identity, say)
            return manifest
        started = time.monotonic()
        data = read_data(config)
        known = folder is not None
        if folder is None:
            folder = new_job(config, data, receipts=identity is not None, way="network")

        def look(where: dict[str, Any]) -> None:
            gate.check()
            watch(where)

        session = NetworkJob.of(config, folder, data, look)
        if known:
            session.taken_up(half_written, say)
        opened(session.open(gate, config, identity))
        warm_up()
        party, alignment = session.aligned(label_party(config, data))
        estimator = party.train(session.channels, welcome=session.welcome, state=folder)
        seconds = time.monotonic() - started
        manifest = write_model(config, folder, session.record, estimator, seconds, alignment)
        watch(status(folder))
        session.end()
        return manifest
