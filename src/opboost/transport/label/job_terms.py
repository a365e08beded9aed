"""What the label party tells each feature party about a job before anything is drawn.

A party compares these terms with its own plan before it sends the digest of its rows, or its
points.  If the terms concern all parties, no release begins before every party has accepted them.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opboost.protocol.messages import Welcome, decode
from opboost.transport.label.job_folder import AGREED, TERMS, JobRecord, PartyFolder


def welcome_of(record: JobRecord) -> Welcome:
    """Return the job's number and nonce, its limit per person, and the rows it is about."""
    nonce = bytes.fromhex(record.nonce)
    return Welcome(record.job, nonce, b"", record=record.record, rows=record.kept)


def welcome_to(
    box: PartyFolder, record: JobRecord, receipt: bytes, session: bytes = b""
) -> Welcome:
    """Return the first message to a party, with the terms that were written for it."""
    told = decode(box.read(TERMS), Welcome) if box.has(TERMS) else welcome_of(record)
    return replace(told, receipt=receipt, session=session)


def is_shared(box: PartyFolder, record: JobRecord) -> bool:
    """Return whether the terms concern all parties: a joint limit, columns of a model, or scores.

    Parties wait for each other in such a job, so that none draws in vain if another refuses.
    """
    return bool(record.record) or box.has(TERMS) or box.has("score")


def all_agreed(job: Path, record: JobRecord) -> bool:
    """Return whether every party that takes part has compared the terms with its plan."""
    boxes = [PartyFolder(job, name) for name in record.active]
    return all(box.has(AGREED) or box.phase() not in ("expected", "refused") for box in boxes)
