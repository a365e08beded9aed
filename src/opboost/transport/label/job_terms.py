"""What the label party tells each feature party of a job before anything is drawn.

A party compares these terms with its own plan and then shows its rows, or its points.  Where the
terms concern all parties, nobody's release begins before everybody has done so.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opboost.protocol.messages import Welcome, decode
from opboost.transport.label.job_folder import AGREED, TERMS, JobRecord, PartyFolder


def welcome_of(record: JobRecord) -> Welcome:
    """The job's number and nonce, its limit for one person, and the rows it is about."""
    nonce = bytes.fromhex(record.nonce)
    return Welcome(record.job, nonce, b"", record=record.record, rows=record.kept)


def welcome_to(
    box: PartyFolder, record: JobRecord, receipt: bytes, session: bytes = b""
) -> Welcome:
    """The first message to a party, with the terms that were left for it."""
    told = decode(box.read(TERMS), Welcome) if box.has(TERMS) else welcome_of(record)
    return replace(told, receipt=receipt, session=session)


def is_shared(box: PartyFolder, record: JobRecord) -> bool:
    """Whether the terms concern all parties: a limit for all together, columns of a model, scores.

    If one party does not accept them, no other has drawn for nothing.
    """
    return bool(record.record) or box.has(TERMS) or box.has("score")


def all_agreed(job: Path, record: JobRecord) -> bool:
    """Whether every party that takes part has compared the terms with its plan."""
    boxes = [PartyFolder(job, name) for name in record.active]
    return all(box.has(AGREED) or box.phase() not in ("expected", "refused") for box in boxes)
