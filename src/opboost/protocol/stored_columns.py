"""Received columns in files of streams: read into memory, or unpacked on disk.

A stream can only be read from its beginning.  Once unpacked, a column is a plain file of one or two
bytes per code, any rows of which can be read directly, so training needs no column in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import BoolArray, IntArray
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.errors import WireError
from opboost.protocol.column_streams import ColumnHead, checked_pieces
from opboost.storage import atomic_files

_SYMBOLS = 1 << 22
"""The number of symbols that are copied at a time."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A received column whose symbols are in a plain file."""

    file: Path
    head: ColumnHead
    kind: np.dtype[Any]

    @property
    def book(self) -> Codebook | None:
        """The values behind codes; None if they are withheld."""
        return self.head.codebook

    def rows(self, rows: slice) -> CodedColumn:
        """Return some rows of the column."""
        count = rows.stop - rows.start
        begin = rows.start * self.kind.itemsize
        symbols = np.fromfile(self.file, self.kind, count, offset=begin)
        if len(symbols) != count:
            raise atomic_files.damaged(self.file, "Run it again to unpack the column anew.")
        return coded_column(self.head, symbols)

    def where(self, rows: BoolArray) -> StoredColumn:
        """Keep only some rows, in a file that replaces this one, and return their column."""
        symbols = np.memmap(self.file, self.kind, mode="r")
        if len(symbols) != len(rows):
            raise atomic_files.damaged(self.file, "Run it again to unpack the column anew.")
        target = self.file.with_suffix(".kept")
        with atomic_files.naming(target), target.open("wb") as out:
            for start in range(0, len(rows), _SYMBOLS):
                piece = slice(start, start + _SYMBOLS)
                symbols[piece][rows[piece]].tofile(out)
        self.file.unlink()
        return replace(self, file=target)


def read_column(file: Path) -> tuple[ColumnHead, CodedColumn]:
    """Read a column from the file of its stream."""
    with _reading(file) as (head, pieces):
        symbols = list(pieces)
    return head, coded_column(head, np.concatenate(symbols))


def unpack_column(file: Path, target: Path) -> StoredColumn:
    """Write all symbols of a stream into a plain file, or refuse the stream."""
    with _reading(file) as (head, pieces), atomic_files.naming(target), target.open("wb") as out:
        kind: np.dtype[Any] = np.dtype(np.uint8)
        for piece in pieces:
            piece.tofile(out)
            kind = piece.dtype
    return StoredColumn(target, head, kind)


def read_head(file: Path) -> ColumnHead:
    """Read the head of a column's stream in a file."""
    with _stream(file) as stream:
        return ColumnHead.from_schema(stream.schema)


@contextmanager
def _reading(file: Path) -> Iterator[tuple[ColumnHead, Iterator[IntArray]]]:
    """Yield the head of a stream and its pieces; refuse a truncated or altered stream."""
    atomic_files.verify_checksum(file, atomic_files.AT_LABEL_PARTY)
    with _stream(file) as stream:
        head = ColumnHead.from_schema(stream.schema)
        yield head, (codes for _, codes in checked_pieces(head, stream))


@contextmanager
def _stream(file: Path) -> Iterator[pa.ipc.RecordBatchStreamReader]:
    try:
        with pa.OSFile(str(file)) as source, pa.ipc.open_stream(source) as stream:
            yield stream
    except (pa.ArrowException, OSError) as error:
        raise WireError(f"A column's file cannot be read ({type(error).__name__}).") from None


def coded_column(head: ColumnHead, symbols: IntArray) -> CodedColumn:
    """Convert the symbols of a stream to codes and gaps."""
    if not head.gaps:
        return CodedColumn(symbols, head.codebook)
    missing = symbols == head.values
    return CodedColumn(np.where(missing, 0, symbols), head.codebook, missing)
