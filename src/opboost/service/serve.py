"""The label party's side of a networked job: open the gate, train, ask, write the model."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from opboost import durable
from opboost.config.federation import LabelConfig
from opboost.errors import ConfigError
from opboost.service.gate_process import GateProcess
from opboost.service.inbox import InboxChannel, JobRecord, Mailbox, status
from opboost.service.label_side import (
    Data,
    alignment_figures,
    check_data,
    current,
    known_job,
    label_party,
    new_job,
    read_data,
    write_model,
)
from opboost.service.logs import Log
from opboost.service.tls import Identity, check_loopback, read_identity
from opboost.wire.coding import warm_up
from opboost.wire.messages import Welcome

LINGER = 60.0
"""Seconds for which the gate stays open after the end, so that parties learn of it."""

Watch = Callable[[dict[str, Any]], None]
"""Told where the job stands, about ten times a second."""


def serve(
    config: LabelConfig,
    gate: GateProcess,
    *,
    insecure_plaintext: bool = False,
    again: bool = False,
    watch: Watch = lambda where: None,
    opened: Callable[[str], None] = lambda address: None,
) -> dict[str, Any]:
    """Run the job to its end, or take it up where it was left; returns the manifest."""
    if config.party.listen is None:
        raise ConfigError('Add listen = "0.0.0.0:8815" to [party]: feature parties connect there.')
    if insecure_plaintext:
        check_loopback(config.party.listen)
    identity = None if insecure_plaintext else read_identity(config.tls, config.party.name)
    with durable.alone(config.state):
        folder = None if again else known_job(config, "network")
        done = folder is not None and (folder / "manifest.json").exists()
        if folder is not None and done and config.model.exists():
            manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
            return manifest
        started = time.monotonic()
        data = read_data(config)
        if folder is None:
            folder = new_job(config, data, receipts=identity is not None, way="network")
        record = replace(JobRecord.load(folder), **current(config))
        record.save(folder)
        check_data(record, data)
        log = Log(folder / "label.jsonl")
        log.write("serving", job=record.job, rows=record.rows, parties=list(record.parties))
        opened(gate.open(_setting(folder, config, identity)))
        manifest = _run(config, data, folder, record, watch, started)
        log.write("done", job=record.job, seconds=manifest["seconds"])
        _linger(folder, record)
        return manifest


def _setting(folder: Path, config: LabelConfig, identity: Identity | None) -> dict[str, object]:
    return {
        "job": str(folder),
        "listen": config.party.listen,
        "ca": identity and identity.ca.decode(),
        "cert": identity and identity.cert.decode(),
        "key": identity and identity.key.decode(),
        "memory_mb": config.limits.memory_mb,
    }


def _run(
    config: LabelConfig,
    data: Data,
    folder: Path,
    record: JobRecord,
    watch: Watch,
    started: float,
) -> dict[str, Any]:
    warm_up()
    last, phase = 0.0, ""
    log = Log(folder / "label.jsonl")

    def look() -> None:
        nonlocal last, phase
        if time.monotonic() - last > 0.1:
            last, where = time.monotonic(), status(folder)
            if where["phase"] != phase:
                phase = where["phase"]
                log.write("phase", job=record.job, phase=phase)
            watch(where)

    party = label_party(config, data)
    wait = config.limits.wait_seconds
    channels = [InboxChannel(folder, name, wait=wait, watch=look) for name in record.active]
    welcome = Welcome(record.job, bytes.fromhex(record.nonce), b"")
    alignment: dict[str, Any] = {}
    if config.job.align == "psi":
        begun = time.monotonic()
        party = party.align(channels, welcome, folder)
        figures = alignment_figures(folder, record)
        alignment = {"align": {**figures, "seconds": round(time.monotonic() - begun, 3)}}
        log.write("aligned", job=record.job, **alignment["align"])
    estimator = party.train(channels, welcome=welcome, state=folder)
    seconds = time.monotonic() - started
    manifest = write_model(config, folder, record, estimator, seconds, alignment)
    watch(status(folder))
    return manifest


def _linger(folder: Path, record: JobRecord) -> None:
    """Keep the gate open until every party has heard that the job is done, or a while."""
    end = time.monotonic() + LINGER
    while time.monotonic() < end:
        if all(Mailbox(folder, name).has("farewell") for name in record.active):
            time.sleep(0.05)  # let the last answer leave
            return
        time.sleep(0.05)
