"""The rules that all messages share: types of fields, names, numbers and limits."""

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
    """Return the Arrow schema of a message, in which no field may be null."""
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds.items()])


def check(rule: bool, words: str) -> None:
    """Refuse, with these words, a message that breaks a rule."""
    if not rule:
        raise WireError(words)


def check_party(name: str) -> str:
    """Return a party's name, which must be short and plain because certificates contain it."""
    if not PARTY_NAME.fullmatch(name):
        raise WireError(
            f"A party's name consists of a-z, 0-9 and '-' (at most 63); got {name[:80]!r}."
        )
    return name


_JOB = re.compile(r"[0-9]{8}T[0-9]{6}Z-[0-9a-f]{8}")


def check_job(job: str) -> str:
    """Return a job's number; refuse any other form, because folders are named after it."""
    check(_JOB.fullmatch(job) is not None, "A job's number has the wrong form.")
    return job


def job_number(job_hash: bytes) -> str:
    """Return a new number for a run of a job; later numbers sort after earlier ones."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{job_hash[:4].hex()}"
