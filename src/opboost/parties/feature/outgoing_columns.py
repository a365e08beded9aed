"""The columns that a feature party is about to send, on disk: drawn once, sent as often as needed.

Draws arrive in pieces of rows.  A column's codes number the values that occur, so they are known
only after its last row.  So draws first go into plain files; then each column is coded into the
Arrow stream that is sent byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray
from opboost.columns.codebook import Codebook
from opboost.columns.dataframes import OutColumn
from opboost.protocol.column_streams import FIELDS, ColumnHead, batch, digest, pieces
from opboost.protocol.entropy_coding import Coder
from opboost.storage import atomic_files

MAX_CODES_IN_MEMORY = 2**16
"""Grids of up to this many cells are counted in an array, larger ones by sorting."""


class OutgoingColumns:
    """The columns of a release, first collected as draws, then coded into streams."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._drafts: list[_Draft] = []
        self.rows = 0

    def add(self, columns: Sequence[OutColumn]) -> None:
        """Append some rows of every released column."""
        if not self._drafts:
            self._drafts = [_Draft(self._folder / f"{j:05d}.draws") for j in range(len(columns))]
        for draft, column in zip(self._drafts, columns, strict=True):
            draft.add(column)
        self.rows += len(columns[0].values)

    def coded(
        self,
        *,
        withheld: Sequence[bool],
        order: IntArray | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> list[Path]:
        """Write a stream and a file of values per column; ``withheld`` omits the codebook.

        Rows are in the given order, or in the order in which they were added.
        """
        files = []
        for j, draft in enumerate(self._drafts):
            files.append(self._folder / f"{j:05d}.arrow")
            draft.write(j, self.rows, files[-1], withheld=withheld[j], order=order)
            if progress:
                progress(j + 1)
        atomic_files.flush(self._folder)
        return files


class _Draft:
    """The draws of one column so far, in an integer type whose smallest value marks gaps."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO = path.open("wb")
        self._counts: dict[int, int] = {}
        self._gaps = 0
        self._kind: np.dtype[Any] | None = None

    def add(self, column: OutColumn) -> None:
        if self._kind is None:
            self._kind = _ROOMY.get(column.values.dtype.itemsize, np.dtype(np.int64))
        values = column.values.astype(self._kind, casting="safe")
        if column.missing is not None:
            values[column.missing] = self._gap
        distinct, counts = _counted(values)
        for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
            self._counts[value] = self._counts.get(value, 0) + count
        with atomic_files.naming(self._path):
            self._file.write(values.tobytes())

    @property
    def _gap(self) -> int:
        """The integer that marks a row without a value."""
        return int(np.iinfo(self._kind or np.int64).min)

    def write(
        self, number: int, rows: int, target: Path, *, withheld: bool, order: IntArray | None
    ) -> None:
        with atomic_files.naming(self._path):
            self._file.close()
        gaps = self._gaps = self._counts.pop(self._gap, 0)
        values = np.array(sorted(self._counts), dtype=np.int64)
        counts = [self._counts[v] for v in values.tolist()]
        coder = Coder.of_counts(np.array([*counts, gaps] if gaps else counts, dtype=np.int64))
        book = Codebook(values) if len(values) else None
        sum_ = digest(self._codes(rows, values, order), coder.symbols)
        head = ColumnHead(number, rows, bool(gaps), coder, None if withheld else book, sum_)
        with (
            atomic_files.naming(target),
            pa.OSFile(str(target), "wb") as sink,
            pa.ipc.new_stream(sink, FIELDS.with_metadata(head.to_schema().metadata)) as stream,
        ):
            for codes in self._codes(rows, values, order):
                stream.write_batch(batch(coder.encode(codes)))
        atomic_files.add_checksum(target)
        beside = atomic_files.with_checksum(values.astype("<i8").tobytes())
        atomic_files.write(target.with_suffix(".values"), beside)
        self._path.unlink()

    def _codes(self, rows: int, values: IntArray, order: IntArray | None) -> Iterator[IntArray]:
        """Yield the codes, piece by piece; a gap is the symbol after the last value."""
        assert self._kind is not None
        draws = None
        if order is not None:
            draws = np.memmap(self._path, dtype=self._kind, mode="r", shape=(rows,))
        code = _lookup(values, np.min_scalar_type(max(1, len(values))))
        for piece in pieces(rows):
            if draws is None or order is None:
                count = piece.stop - piece.start
                begin = piece.start * self._kind.itemsize
                part = np.fromfile(self._path, self._kind, count, offset=begin)
            else:
                part = np.asarray(draws[order[piece]])
            if not self._gaps:
                yield code(part)
                continue
            gap = part == self._gap
            codes = code(np.where(gap, values[:1], part)) if len(values) else gap.astype(np.uint8)
            codes[gap] = len(values)
            yield codes


_ROOMY: dict[int, np.dtype[Any]] = {1: np.dtype(np.int16), 2: np.dtype(np.int32)}
"""For each item size in bytes, an integer type with room for the values and a gap mark."""


def _lookup(values: IntArray, kind: np.dtype[Any]) -> Callable[[IntArray], IntArray]:
    """Return a function from values to their places in ``values``: by table or by search."""
    if not len(values) or values[-1] - values[0] >= MAX_CODES_IN_MEMORY:
        return lambda part: np.searchsorted(values, part).astype(kind)
    low = values[0]
    table = np.zeros(values[-1] - low + 1, dtype=kind)
    table[values - low] = np.arange(len(values))
    return lambda part: table[part - low]


def _counted(values: IntArray) -> tuple[IntArray, IntArray]:
    low, high = int(values.min()), int(values.max())
    if high - low >= MAX_CODES_IN_MEMORY:
        return np.unique(values, return_counts=True)
    counts = np.bincount(values.astype(np.int64) - low)
    present = np.flatnonzero(counts)
    return present + low, counts[present]


def read_values(stream: Path) -> IntArray:
    """Return the values behind the codes of a stream that this party wrote."""
    file = stream.with_suffix(".values")
    if not file.exists():
        raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY)
    data = atomic_files.read_checked(file, atomic_files.AT_FEATURE_PARTY)
    values = np.frombuffer(data[: len(data) // 8 * 8], dtype="<i8")
    if len(data) % 8 or (values[1:] <= values[:-1]).any():
        raise atomic_files.damaged(file, atomic_files.AT_FEATURE_PARTY)
    return values
