"""What all messages share: the kinds of their fields, names, numbers and limits."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal

import pyarrow as pa

from opboost.errors import WireError

Units = Literal["grid", "raw"]
PARTY_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
TEXT, BYTES, INT, FLOAT, BOOL = pa.string(), pa.binary(), pa.int64(), pa.float64(), pa.bool_()


def arrow(**kinds: pa.DataType) -> pa.Schema:
    """The Arrow form of a message, whose fields are all there."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def check(rule: bool, words: str) -> None:
    """Refuse a message that breaks a rule, in these words."""
    if not rule:
        raise WireError(words)


def check_party(name: str) -> str:
    """A party's name: it stands in certificates, so it is short and plain."""
    if not PARTY_NAME.fullmatch(name):
        raise WireError(
            f"A party's name is made of a-z, 0-9 and '-' (at most 63); got {name[:80]!r}."
        )
    return name


_JOB = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")


def check_job(job: str) -> str:
    """A job's number: it names folders, so it has one form."""
    check(_JOB.fullmatch(job) is not None, "A job's number has another form.")
    return job


def job_number(job_hash: bytes) -> str:
    """A number for a run of a job: later ones sort behind earlier ones."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{job_hash[:4].hex()}"
