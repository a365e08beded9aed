"""The people of earlier runs whose draws a later release sent again.

A release writes records only for new people or columns.  For all others it keeps one bit per record
of the run that holds them, so that the ledger can answer who received what about a person.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import BoolArray
from opboost.ledger.run_files import damaged
from opboost.storage import atomic_files


@dataclass(frozen=True, slots=True)
class Members:
    """The chain's description of a file of bits, with the number of bits per run, in order."""

    file: str
    sha256: str
    runs: tuple[tuple[str, int], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the members as an entry describes them."""
        return {"file": self.file, "sha256": self.sha256, "runs": [list(r) for r in self.runs]}

    @classmethod
    def of_json(cls, plain: Any) -> Members:
        """Return the members that an entry describes; raise ValueError if it describes none."""
        if not isinstance(plain, dict) or set(plain) != {"file", "sha256", "runs"}:
            raise ValueError("no members")
        runs = plain["runs"]
        if not isinstance(runs, list) or any(
            not isinstance(r, list) or [type(v) for v in r] != [str, int] for r in runs
        ):
            raise ValueError("no members")
        if type(plain["file"]) is not str or type(plain["sha256"]) is not str:
            raise ValueError("no members")
        return cls(plain["file"], plain["sha256"], tuple((r[0], r[1]) for r in runs))


def write(path: Path, members: Mapping[str, BoolArray]) -> Members:
    """Write a release's members to disk; ``members`` maps each run's file to its bits."""
    data = b"".join(np.packbits(bits).tobytes() for bits in members.values())
    atomic_files.write(path, data, mode=0o600)
    listed = tuple((name, len(bits)) for name, bits in members.items())
    return Members(path.name, hashlib.sha256(data).hexdigest(), listed)


def read(folder: Path, members: Members) -> dict[str, BoolArray]:
    """Return a release's members by run; refuse a damaged file."""
    path = folder / members.file
    if not path.exists():
        raise damaged(path, "is gone")
    data = path.read_bytes()
    sizes = [-(-count // 8) for _, count in members.runs]
    if hashlib.sha256(data).hexdigest() != members.sha256 or len(data) != sum(sizes):
        raise damaged(path, "was changed")
    found, start = {}, 0
    for (name, count), size in zip(members.runs, sizes, strict=True):
        packed = np.frombuffer(data, dtype=np.uint8, count=size, offset=start)
        found[name] = np.unpackbits(packed, count=count).astype(np.bool_)
        start += size
    return found
