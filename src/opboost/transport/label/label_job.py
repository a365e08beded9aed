"""The label party's steps in a job that do not depend on how messages travel."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from opboost.columns.codebook import distinct
from opboost.config.job_file import LabelConfig
from opboost.errors import ColumnError, ConfigError, DataError
from opboost.files.id_columns import IdColumns
from opboost.files.read_tables import column_names, table_files
from opboost.files.whole_table import label_of, read_table
from opboost.promises import Joint, NoGuarantee
from opboost.protocol.messages import job_number
from opboost.psi.table_keys import Keys
from opboost.storage import atomic_files
from opboost.transport.label.job_folder import JobRecord, PartyFolder, Way, is_done, jobs, status
from opboost.transport.shared.manifest import versions

if TYPE_CHECKING:
    from opboost.boosting.booster import Booster
    from opboost.parties.label.label_party import Estimator, LabelParty
    from opboost.parties.label.model_with_parties import ModelWithParties
    from opboost.parties.label.predictions import Predicted


@dataclass(frozen=True, slots=True)
class Data:
    """The label party's table in memory, except for the IDs, which stay in their file."""

    features: pa.Table | None
    y: np.ndarray[Any, Any] | None
    """The label; None if it is to be predicted."""
    ids: Keys
    named: IdColumns


def read_data(config: LabelConfig) -> Data:
    """Read the label party's table: its features, the row IDs and, for training, the label."""
    learnt = config.job.purpose == "train"
    names, ids = column_names(table_files(config.table)[0], config.data), config.align.ids()
    dropped = [*config.drop, *ids] if learnt else ids
    for name in [*([config.label.column] if learnt else []), *dropped]:
        if name not in names:
            raise ColumnError(name, "is named in the configuration but not in the table")
    named = IdColumns.of(config.table, ids, config.data)
    keys = named.keys(config.job.normalisation, config.state if config.state.is_dir() else None)
    if set(names) <= set(dropped):
        return Data(None, None, keys, named)
    table = read_table(config.table, [], skip=dropped, form=config.data)
    if not learnt:
        return Data(table, None, keys, named)
    column = config.label.column
    y = label_of(table, column)
    if len(distinct(y)) < 2:
        # Refuse it now, before any party releases anything.
        raise ColumnError(column, "is the label and holds only one value")
    own = table.drop_columns([column])
    return Data(own if own.num_columns else None, y, keys, named)


def known_job(config: LabelConfig, way: Way) -> Path | None:
    """Return the last run of this job file; refuse an unfinished run of the other ``way``."""
    same = [f for f in jobs(config.state) if JobRecord.load(f).hash == config.job.hash.hex()]
    if not same:
        return None
    record = JobRecord.load(same[-1])
    if record.way != way and not is_done(same[-1]):
        served = "opboost serve" if record.purpose == "train" else "opboost predict --with-peers"
        verb = "opboost bundle" if record.way == "bundles" else served
        raise ConfigError(
            f"Job {record.job} was begun with {verb} and is not finished. Continue it that way, or "
            "begin a new run of it with --again."
        )
    return same[-1]


def new_job(config: LabelConfig, data: Data, *, receipts: bool, way: Way) -> Path:
    """Begin a run of the job; return its folder."""
    nonce = secrets.token_bytes(32)
    while (config.state / (number := job_number(config.job.hash))).exists():
        time.sleep(0.1)  # job numbers have a resolution of one second
    record = JobRecord(
        number,
        config.job.hash.hex(),
        nonce.hex(),
        len(data.ids),
        data.ids.digest(nonce).hex(),
        config.job.label_party,
        config.job.feature_parties,
        (),
        receipts,
        config.limits.columns,
        1 + max((JobRecord.load(f).run for f in jobs(config.state)), default=0),
        config.job.align,
        config.align.most_rows,
        way,
        config.job.purpose,
        config.job.record or 0.0,
        config.job.rows,
    )
    folder = config.state / number
    record.save(folder)
    return folder


def current(config: LabelConfig) -> dict[str, Any]:
    """Return the settings that may change during a job: the revoked parties and the limits."""
    revoked = tuple(name for name, peer in config.peers.items() if peer.revoked)
    if set(config.job.feature_parties) <= set(revoked):
        raise ConfigError(
            f"Every feature party of job {config.job.name!r} is revoked, so no party is left to "
            "train with. Remove revoked = true from one of the [peers] sections."
        )
    return {
        "revoked": revoked,
        "columns": config.limits.columns,
        "most_rows": config.align.most_rows,
    }


def check_booster(config: LabelConfig) -> None:
    """Refuse a cluster for training that does not answer, before any party releases anything."""
    if config.job.purpose == "train" and config.booster.engine != "local":
        from opboost.scale.cluster_booster import connected_booster

        with connected_booster(config.booster):
            pass


def check_data(record: JobRecord, data: Data) -> None:
    """Refuse a table whose rows are not those with which the job began."""
    if data.ids.digest(bytes.fromhex(record.nonce)).hex() != record.ids:
        raise DataError(
            f"The table's IDs are not those with which job {record.job} began",
            hint="Restore the table, or begin a new job with --again.",
        )


def label_party(config: LabelConfig, data: Data) -> LabelParty:
    """Build the party that a file describes."""
    # Imported here: boosters and compiled loops take a second to load; the server opens meanwhile.
    from opboost.parties.label.label_party import LabelParty

    earlier = None
    if config.continue_from is not None and data.y is not None:
        from opboost.estimators import load

        earlier = load(config.continue_from)
    booster: str | Booster = config.booster.kind
    if config.booster.engine != "local":
        from opboost.scale.cluster_booster import booster_of

        booster = booster_of(config.booster)
    return LabelParty(
        data.features,
        data.y,
        booster=booster,
        booster_params=dict(config.booster.params),
        random_state=config.booster.seed,
        denoise=config.booster.denoise,
        task=config.label.task,
        ids=data.ids,
        ask=config.label.ask,
        align=config.job.alignment(config.align),
        rows=config.job.rows,
        presence=config.label.presence,
        memory=config.booster.memory,
        structure=config.booster.structure,
        record=config.job.record,
        share_weights=config.label.share_weights,
        weights_epsilon=config.label.weights_epsilon,
        held_out=config.train.held_out,
        early_stopping_rounds=config.train.early_stopping,
        continue_from=earlier,
        share_trees=config.label.share_trees,
        smallest_leaf=config.label.smallest_leaf,
    )


def active_parties(config: LabelConfig) -> list[str]:
    """Return the feature parties that take part: those that are not revoked."""
    peers = config.peers
    return [n for n in config.job.feature_parties if n not in peers or not peers[n].revoked]


def check_predicted(
    config: LabelConfig, estimator: Estimator, release: str, without: Sequence[str]
) -> None:
    """Before a prediction begins, refuse one that the job's parties or the model rule out."""
    from opboost.files.predict_without import check_left_out, check_taking_part
    from opboost.parties.label.predictions import check_no_absence
    from opboost.parties.label.score_query import check_scores

    active = active_parties(config)
    check_left_out(estimator, without, active)
    if release == "score":
        check_no_absence(config.job.rows, without)
        check_scores(estimator, active, config.label.share_trees)
    else:
        check_taking_part(estimator, without, active)


def alignment_figures(folder: Path, record: JobRecord) -> dict[str, Any]:
    """Return the alignment's figures: how many rows each party had, and how many are common.

    With ``rows = "mine"``, also how many of the label party's rows each party knows.
    """
    boxes = {name: PartyFolder(folder, name) for name in record.active}
    theirs = {name: box.points()["total"] for name, box in boxes.items()}
    found = {"own": record.rows, "theirs": theirs}
    if record.kept == "mine":
        return {**found, "known": {name: box.row_proof()[0] for name, box in boxes.items()}}
    return {**found, "common": status(folder)["rows"]}


def write_model(
    config: LabelConfig,
    folder: Path,
    record: JobRecord,
    trained: ModelWithParties,
    seconds: float,
    alignment: dict[str, Any],
) -> dict[str, Any]:
    """Save the model, then the manifest that says that the job is done."""
    config.model.parent.mkdir(parents=True, exist_ok=True)
    trained.save(config.model, config.label.column)
    with config.model.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    about: dict[str, Any] = {
        "denoised": trained.model.denoised,
        "model": config.model.name,
        "model_sha256": digest,
    }
    promise = trained.guarantee()
    total = promise.total + trained.scores_later
    if trained.scores_later:
        about |= {"scores_later": trained.scores_later, "total": total}
    if (score := trained.model.score) is not None:
        line = score.line(config.job.label_party, total)
        about |= {"score": score.to_dict(), "score_line": line}
    return _write_manifest(folder, record, seconds, alignment, promise, about)


def write_predicted(
    folder: Path,
    record: JobRecord,
    found: Predicted,
    model: Path,
    seconds: float,
    alignment: dict[str, Any],
    score_line: str | None = None,
) -> dict[str, Any]:
    """Write the manifest that ends a prediction's job, unless it exists; return it."""
    if is_done(folder):
        return read_manifest(folder)
    about = {"left_out": record.rows - len(found.rows), "predicted_by": model.name}
    if score_line is not None:
        about["score_line"] = score_line
    return _write_manifest(folder, record, seconds, alignment, found.guarantee, about)


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a finished job."""
    found: dict[str, Any] = atomic_files.read_json(
        folder / "manifest.json", dict[str, Any], atomic_files.AT_LABEL_PARTY
    )
    return found


def _write_manifest(
    folder: Path,
    record: JobRecord,
    seconds: float,
    alignment: dict[str, Any],
    promise: Joint | NoGuarantee,
    about: dict[str, Any],
) -> dict[str, Any]:
    boxes = {name: PartyFolder(folder, name) for name in record.active}
    manifest = {
        "job": record.job,
        "job_hash": record.hash,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "rows": status(folder)["rows"],
        **alignment,
        "parties": {n: {"bytes": b.bytes(), "columns": b.due()} for n, b in boxes.items()},
        "guarantee": str(promise),
        "total": promise.total,
        **about,
        "versions": versions(),
    }
    atomic_files.write(folder / "manifest.json", json.dumps(manifest, indent=1).encode())
    return manifest


def with_ids(data: Data, found: Predicted) -> pa.Table:
    """Return the IDs of the predicted rows with their predictions, in the order of the file."""
    table = data.named.rows(found.rows)
    predicted = found.table()
    for name in predicted.column_names:
        table = table.append_column(name, predicted.column(name))
    return table
