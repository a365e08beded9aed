"""Runs: files of fixed-width records, one per person of a release, sorted by handle.

    handles    16 bytes per person: who, encrypted (key_file.py)
    decided    one bit per column: this record determines whether the column is sent
    sent       one bit per column: it was sent, and is charged
    draws      a few bytes per column: what was sent (packed_draws.py)

Each of the four is stored contiguously for all people, so that a look-up touches handles only.
Charges follow from ``sent`` and the amounts in the run's entry in the chain; the entry also states
the file's SHA-256.  Nothing here depends on a value that was not released.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from opboost._typing import BoolArray, IntArray, Words
from opboost.errors import DataError
from opboost.ledger.handle_index import Handles
from opboost.ledger.key_file import HANDLE_BYTES
from opboost.ledger.packed_draws import Draws
from opboost.storage import atomic_files

BUCKETS = 256
"""Records are sorted within a bucket, so only a 256th of them is in memory at a time."""

TAG_BYTES = 8
"""The number of bytes after a draw that identify its value, if changed values are redrawn."""


@dataclass(frozen=True, slots=True)
class RunColumn:
    """One column of a run: its attribute, mechanism, charge and bytes.

    ``width`` is 0 if a stored release keeps the outputs.
    """

    attribute: str
    mechanism: str
    amount: int
    width: int
    tagged: bool = False

    @property
    def slot(self) -> int:
        """The number of bytes of a draw with its tag."""
        return self.width + TAG_BYTES * self.tagged


@dataclass(frozen=True, slots=True)
class Run:
    """The chain's description of a run.

    ``committed`` is the number of the entry that first committed its draws.  ``stored`` names the
    stored release that holds the outputs, if the run does not.  A ``merged`` run holds draws of
    several releases; their members say whom each included (release_members.py).
    """

    file: str
    committed: int
    count: int
    sha256: str
    columns: tuple[RunColumn, ...]
    stored: str = ""
    merged: bool = False

    @property
    def bitmap_bytes(self) -> int:
        """The number of bytes of ``decided``, and of ``sent``, for one person."""
        return -(-len(self.columns) // 8)

    @property
    def draw_bytes(self) -> int:
        """The number of bytes of one person's draws."""
        return sum(c.slot for c in self.columns)

    @property
    def record_bytes(self) -> int:
        """The number of bytes of one person's record."""
        return HANDLE_BYTES + 2 * self.bitmap_bytes + self.draw_bytes

    def slots(self) -> list[slice]:
        """Return the position of each column's draw in a person's draws."""
        ends = np.cumsum([c.slot for c in self.columns]).tolist()
        return [slice(end - c.slot, end) for c, end in zip(self.columns, ends, strict=True)]

    def as_json(self) -> dict[str, Any]:
        """Return the run as an entry describes it."""
        columns = [[c.attribute, c.mechanism, c.amount, c.width, c.tagged] for c in self.columns]
        plain = {"file": self.file, "committed": self.committed, "count": self.count}
        return {**plain, "sha256": self.sha256, "columns": columns} | {
            "stored": self.stored,
            "merged": self.merged,
        }

    @classmethod
    def of_json(cls, plain: Any) -> Run:
        """Return the run that an entry describes; raise ValueError if it describes none."""
        kinds = {"file": str, "committed": int, "count": int, "sha256": str}
        kinds |= {"stored": str, "merged": bool}
        if not isinstance(plain, dict) or set(plain) != {*kinds, "columns"}:
            raise ValueError("no run")
        if any(type(plain[name]) is not kind for name, kind in kinds.items()):
            raise ValueError("no run")
        if not plain["file"].isdigit() or plain["count"] < 0:
            raise ValueError("no run")
        columns = [_column(c) for c in plain["columns"]]
        return cls(**{**plain, "columns": tuple(columns)})


def _column(plain: Any) -> RunColumn:
    kinds = [str, str, int, int, bool]
    if not isinstance(plain, list) or [type(v) for v in plain] != kinds or min(plain[2:4]) < 0:
        raise ValueError("no column of a run")
    return RunColumn(*plain)


class RunFile:
    """A reader of a run; its arrays are mapped from the file, not loaded as a whole."""

    def __init__(self, run: Run, path: Path) -> None:
        self.run, self.path = run, path
        if not path.exists():
            raise damaged(path, "is gone")
        if path.stat().st_size != run.count * run.record_bytes:
            raise damaged(path, "does not have the size that its entry states")
        n, width = run.count, run.bitmap_bytes
        data = np.memmap(path, dtype=np.uint8, mode="r") if n else np.empty(0, dtype=np.uint8)
        borders = np.cumsum([0, HANDLE_BYTES * n, width * n, width * n, run.draw_bytes * n])
        parts = [np.asarray(data)[a:b] for a, b in pairwise(borders.tolist())]
        self.handles: Words = parts[0].view("<u8").reshape(n, 2)
        self._decided, self._sent = (p.reshape(n, width) for p in parts[1:3])
        self.draws: Draws = parts[3].reshape(n, run.draw_bytes)
        self._index: Handles | None = None

    def places(self, handles: Words, order: IntArray | None = None) -> IntArray:
        """Return each person's position in the run, or -1; ``order`` is their rough order."""
        if self._index is None:
            self._index = Handles(self.handles)
        return self._index.places(handles, order)

    @property
    def records(self) -> tuple[Draws, Draws, Draws]:
        """The packed bits ``decided`` and ``sent``, and the draws."""
        return self._decided, self._sent, self.draws

    def decided(self, places: IntArray | slice) -> BoolArray:
        """Return which columns the records at some positions decide."""
        return self._bits(self._decided, places)

    def sent(self, places: IntArray | slice) -> BoolArray:
        """Return which columns were sent, by the records at some positions."""
        return self._bits(self._sent, places)

    def _bits(self, packed: Draws, places: IntArray | slice) -> BoolArray:
        count = len(self.run.columns)
        return np.unpackbits(packed[places], axis=1, count=count).astype(np.bool_)

    def check(self) -> None:
        """Refuse a file whose SHA-256 is not the one that its entry states."""
        with self.path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.run.sha256:
            raise damaged(self.path, "was changed")

    def pieces(self) -> Iterator[slice]:
        """Yield the records' positions by bucket of handles; every run has the same buckets."""
        tops = np.arange(1, BUCKETS, dtype=np.uint64) << np.uint64(56)
        inner = np.searchsorted(self.handles[:, 0], tops).tolist()
        for first, last in zip([0, *inner], [*inner, self.run.count], strict=True):
            yield slice(first, last)


def damaged(path: Path, what: str) -> DataError:
    """Return the error for a damaged run."""
    return DataError(
        f"{path} {what}",
        hint="It holds people's draws, which would be drawn again without it. Restore the ledger's "
        "folder from a backup.",
    )


class Repeated(Exception):
    """Raised if a person has several records; the argument is the number of excess records."""


class RunWriter:
    """A writer that takes records in any order and finally sorts them into a run's file.

    Cost: memory for a 256th of the records; disk for two copies of all.
    """

    def __init__(self, folder: Path, columns: Sequence[RunColumn], stored: str = "") -> None:
        self.run = Run("0", 0, 0, "", tuple(columns), stored)
        self._folder = folder
        folder.mkdir(mode=0o700, exist_ok=True)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        self._borders: list[IntArray] = []
        self.count = 0

    def add(self, handles: Words, decided: BoolArray, sent: BoolArray, draws: Draws) -> None:
        """Add some people's records."""
        names = np.ascontiguousarray(handles, dtype="<u8").view(np.uint8)
        bits = (_packed(b) for b in (decided, sent))
        whole = np.hstack([names, *bits, draws])
        bucket = names[:, 7]  # the highest byte of the first word
        whole = whole.take(np.argsort(bucket, kind="stable"), axis=0)
        sizes = np.bincount(bucket, minlength=BUCKETS)
        self._borders.append(self.count + np.concatenate([[0], np.cumsum(sizes)]))
        with atomic_files.naming(self._folder):
            self._file.write(whole.tobytes())
        self.count += len(whole)

    def finish(self, path: Path, committed: int) -> Run:
        """Write the sorted file durably, and return its description for the chain.

        Two records about one person raise :class:`Repeated`, and nothing is written.
        """
        run = Run(path.stem, committed, self.count, "", self.run.columns, self.run.stored)
        width = run.bitmap_bytes
        cuts = np.cumsum([HANDLE_BYTES, width, width]).tolist()
        starts = np.cumsum([0, *(self.count * s for s in (HANDLE_BYTES, width, width))]).tolist()
        with atomic_files.writing(path, mode=0o600) as file:
            repeats = 0
            for records in self._buckets():
                repeats += _repeats(records)
                for k, part in enumerate(np.split(records, cuts, axis=1)):
                    file.seek(starts[k])
                    starts[k] += file.write(part.tobytes())
            if repeats:
                raise Repeated(repeats)
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Run.of_json({**run.as_json(), "sha256": digest})

    def _buckets(self) -> Iterator[Draws]:
        """Yield the records in their order, bucket by bucket."""
        size = self.run.record_bytes
        for bucket in range(BUCKETS):
            found = [self._read(b, bucket, size) for b in self._borders]
            records = np.concatenate([np.empty((0, size), dtype=np.uint8), *found])
            words = np.ascontiguousarray(records[:, :HANDLE_BYTES]).view("<u8")
            order = np.argsort(words[:, 0])
            first = words[order, 0]
            if (first[1:] == first[:-1]).any():
                order = np.lexsort((words[:, 1], words[:, 0]))
            yield records.take(order, axis=0)

    def _read(self, borders: IntArray, bucket: int, size: int) -> Draws:
        first, last = int(borders[bucket]), int(borders[bucket + 1])
        self._file.seek(first * size)
        read = self._file.read((last - first) * size)
        return np.frombuffer(read, dtype=np.uint8).reshape(-1, size)

    def close(self) -> None:
        """Discard the temporary file."""
        self._file.close()


def _packed(bits: BoolArray) -> Draws:
    """Return bits packed in bytes; if all are set, every person shares one packed row."""
    if len(bits) and bits.all():
        return np.broadcast_to(np.packbits(bits[0]), (len(bits), -(-bits.shape[1] // 8)))
    return np.packbits(bits, axis=1)


def _repeats(records: Draws) -> int:
    words = np.ascontiguousarray(records[:, :HANDLE_BYTES]).view("<u8")
    return int((words[1:] == words[:-1]).all(axis=1).sum())


def clear(folder: Path, keep: set[str], *, wipe: bool = False) -> None:
    """Remove files that no entry of the chain names: what a kill left behind.

    With ``wipe``, they are overwritten first.
    """
    for path in folder.glob("[0-9]*"):
        if path.name not in keep:
            (atomic_files.wipe if wipe else os.unlink)(path)
