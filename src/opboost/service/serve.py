"""The label party's side of a networked job: open the gate, train, ask, write the model."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost import durable
from opboost.align.keys import key_digests, refuse_repeats, row_keys
from opboost.config.federation import LabelConfig
from opboost.errors import ColumnError, ConfigError, DataError
from opboost.files.reading import column_names, table_files
from opboost.files.tables import label_of, read_table
from opboost.party.checks import ids_digest
from opboost.service.gate_process import GateProcess
from opboost.service.inbox import InboxChannel, JobRecord, Mailbox, jobs, status
from opboost.service.logs import Log
from opboost.service.manifest import versions
from opboost.service.tls import Identity, check_loopback, read_identity
from opboost.wire.coding import warm_up
from opboost.wire.messages import Welcome, job_number

LINGER = 60.0
"""Seconds for which the gate stays open after the end, so that parties learn of it."""

Watch = Callable[[dict[str, Any]], None]
"""Told where the job stands, about ten times a second."""


@dataclass(frozen=True, slots=True)
class Data:
    """The label party's own table."""

    features: pa.Table | None
    y: np.ndarray[Any, Any]
    ids: list[bytes]


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
    if insecure_plaintext:
        check_loopback(str(config.party.listen))
    identity = None if insecure_plaintext else read_identity(config.tls, config.party.name)
    with durable.alone(config.state):
        folder = None if again else _known(config)
        done = folder is not None and (folder / "manifest.json").exists()
        if folder is not None and done and config.model.exists():
            manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
            return manifest
        started = time.monotonic()
        data = read_data(config)
        if folder is None:
            folder = _new(config, data, receipts=identity is not None)
        record = replace(JobRecord.load(folder), **_current(config))
        record.save(folder)
        _check_data(record, data)
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
    # Boosters and compiled loops take a second to load: the gate is open meanwhile.
    from opboost.party.label import LabelParty

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

    party = LabelParty(
        data.features,
        data.y,
        booster=config.booster.kind,
        booster_params=dict(config.booster.params),
        random_state=config.booster.seed,
        denoise=config.booster.denoise,
        task=config.label.task,
        ids=data.ids,
        ask=config.label.ask,
        align=config.job.alignment(config.align),
    )
    wait = config.limits.wait_seconds
    active = [name for name in record.parties if name not in record.revoked]
    channels = [InboxChannel(folder, name, wait=wait, watch=look) for name in active]
    welcome = Welcome(record.job, bytes.fromhex(record.nonce), b"")
    alignment: dict[str, Any] = {}
    if config.job.align == "psi":
        begun = time.monotonic()
        party = party.align(channels, welcome, folder)
        alignment = {"align": _alignment(folder, record, active, time.monotonic() - begun)}
        log.write("aligned", job=record.job, **alignment["align"])
    estimator = party.train(channels, welcome=welcome, state=folder)
    config.model.parent.mkdir(parents=True, exist_ok=True)
    estimator.save(config.model)
    manifest = {
        "job": record.job,
        "job_hash": record.hash,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(time.monotonic() - started, 3),
        "rows": status(folder)["rows"],
        **alignment,
        "parties": {
            name: {"bytes": Mailbox(folder, name).bytes(), "columns": Mailbox(folder, name).due()}
            for name in active
        },
        "guarantee": str(estimator.guarantee_),
        "total": estimator.guarantee_.total,
        "denoised": estimator.denoised_,
        "model": config.model.name,
        "versions": versions(),
    }
    durable.write(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    watch(status(folder))
    return manifest


def _alignment(
    folder: Path, record: JobRecord, active: list[str], seconds: float
) -> dict[str, Any]:
    """The alignment in a few figures: how many rows each party brought, and how many are common."""
    theirs = {name: Mailbox(folder, name).points()["total"] for name in active}
    common = status(folder)["rows"]
    return {"own": record.rows, "theirs": theirs, "common": common, "seconds": round(seconds, 3)}


def read_data(config: LabelConfig) -> Data:
    """The label party's table: its own features, the label, and the row IDs."""
    names = column_names(table_files(config.table)[0])
    ids = config.align.ids()
    for name in (config.label.column, *ids, *config.drop):
        if name not in names:
            raise ColumnError(name, "is named in the configuration but not in the table")
    table = read_table(config.table, [], text=ids)
    y = label_of(table, config.label.column)
    if len(np.unique(y)) < 2:
        # Known now, before any party has spent privacy on it.
        raise ColumnError(config.label.column, "is the label and holds one value only")
    columns = [table.column(name).to_pylist() for name in ids]
    found = row_keys(columns, ids, config.job.normalisation)
    refuse_repeats(key_digests(found))
    own = table.drop_columns([config.label.column, *ids, *config.drop])
    return Data(own if own.num_columns else None, y, found)


def _known(config: LabelConfig) -> Path | None:
    """The last job of this job file, finished or not."""
    same = [f for f in jobs(config.state) if JobRecord.load(f).hash == config.job.hash.hex()]
    return same[-1] if same else None


def _new(config: LabelConfig, data: Data, *, receipts: bool) -> Path:
    nonce = secrets.token_bytes(32)
    record = JobRecord(
        job_number(config.job.hash),
        config.job.hash.hex(),
        nonce.hex(),
        len(data.y),
        ids_digest(nonce, data.ids).hex(),
        config.job.label_party,
        config.job.feature_parties,
        (),
        receipts,
        config.limits.columns,
        1 + max((JobRecord.load(f).run for f in jobs(config.state)), default=0),
        config.job.align,
        config.align.most_rows,
    )
    folder = config.state / record.job
    if folder.exists():
        raise ConfigError(f"{folder} exists already. Wait a second and try again.")
    record.save(folder)
    return folder


def _current(config: LabelConfig) -> dict[str, Any]:
    """What may change while a job goes on: who is revoked, and limits."""
    revoked = tuple(name for name, peer in config.peers.items() if peer.revoked)
    return {
        "revoked": revoked,
        "columns": config.limits.columns,
        "most_rows": config.align.most_rows,
    }


def _check_data(record: JobRecord, data: Data) -> None:
    if ids_digest(bytes.fromhex(record.nonce), data.ids).hex() != record.ids:
        raise DataError(
            f"The table's IDs are not those with which job {record.job} began",
            hint="Bring the table back, or begin a new job with --again.",
        )


def _linger(folder: Path, record: JobRecord) -> None:
    """Keep the gate open until every party has heard that the job is done, or a while."""
    active = [name for name in record.parties if name not in record.revoked]
    end = time.monotonic() + LINGER
    while time.monotonic() < end:
        if all(Mailbox(folder, name).has("farewell") for name in active):
            time.sleep(0.05)  # let the last answer leave
            return
        time.sleep(0.05)
