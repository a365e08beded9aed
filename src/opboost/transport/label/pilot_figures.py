"""The usefulness of received columns, computed from the label party's state folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opboost.config.job_file import LabelConfig
from opboost.errors import ConfigError
from opboost.parties.label.pilot_answer import released_columns
from opboost.protocol.messages import Schema, decode
from opboost.protocol.stored_columns import read_column
from opboost.psi.common_rows import Common
from opboost.storage import atomic_files
from opboost.training.column_usefulness import ColumnUsefulness, columns_usefulness
from opboost.training.targets import Target, label_kind
from opboost.transport.label.job_folder import JobRecord, PartyFolder, jobs
from opboost.transport.label.label_job import check_data, read_data


@dataclass(frozen=True, slots=True)
class PartyUsefulness:
    """The usefulness of one party's columns, and the rows from which it was computed."""

    party: str
    rows: str
    """``"pilot"``, or ``"release"`` once the party has released the rows of all people."""
    columns: tuple[ColumnUsefulness, ...]


def parties_usefulness(config: LabelConfig, name: str) -> tuple[str, list[PartyUsefulness]]:
    """Return the last job in which a party released rows, and the usefulness of the columns.

    The released rows and the label party's own labels are enough, so no party is contacted.
    ``name`` is the name of the job file.
    """
    if config.job.purpose != "train":
        raise ConfigError(
            f"{name} is for a job that predicts, which has no labels. Give the file of the job "
            "that trains."
        )
    job = _last_job(config)
    if job is None:
        raise ConfigError(
            f"No party has released rows to {config.state} yet, so no column's usefulness is "
            f"known. Run: opboost serve -c {name}. A party with [budget] pilot releases a few "
            "people first."
        )
    record, target = JobRecord.load(job), _target(config, job)
    found = []
    for party in record.active:
        box = _released(job, party)
        if box is None:
            continue
        schema = decode(box.read("schema"), Schema)
        columns = released_columns(schema, map(read_column, map(box.column, box.columns())))
        lines = tuple(columns_usefulness(columns, target))
        whole = "release" if box.folder == PartyFolder(job, party).folder else "pilot"
        found.append(PartyUsefulness(party, whole, lines))
    return record.job, found


def _last_job(config: LabelConfig) -> Path | None:
    for job in reversed(jobs(config.state)):
        record = JobRecord.load(job)
        same = record.hash == config.job.hash.hex()
        if same and any(_released(job, party) is not None for party in record.active):
            return job
    return None


def _released(job: Path, party: str) -> PartyFolder | None:
    """Return the folder of the full release, otherwise the pilot's; None if neither is complete."""
    box = PartyFolder(job, party)
    if box.has("sent"):
        return box
    pilot = box.pilot()
    return pilot if pilot.has("sent") else None


def _target(config: LabelConfig, job: Path) -> Target:
    """Return the labels of the job's rows, in the row order of the received columns."""
    data, record = read_data(config), JobRecord.load(job)
    check_data(record, data)
    y = data.y
    assert y is not None
    if record.align != "given":
        kept = atomic_files.read_checked(job / "common", atomic_files.AT_LABEL_PARTY)
        y = y[Common.from_bytes(kept).rows(data.ids.digests())]
    numbers = label_kind(y, config.label.task) == "regress"
    return Target.of_numbers(y) if numbers else Target.of_classes(y)
