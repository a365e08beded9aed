"""One released column on its way: a head, then pieces of entropy-coded codes.

The form is an Arrow stream, on a socket or in a file alike.  The head stands in the schema's
metadata: how many rows and symbols, the table of frequencies, the codebook (unless it is withheld)
and the digest of the codes.  A batch holds one piece.  A reader knows beforehand how many rows come
and how large each piece is, so an endless or inflated stream ends early.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray
from opboost.columns.codebook import Codebook
from opboost.errors import DataError, WireError
from opboost.protocol.entropy_coding import Coder, pack_integers, unpack_integers
from opboost.protocol.envelope import PROTOCOL_VERSION

PIECE_ROWS = 2**18
"""Rows of one piece."""

FIELDS = pa.schema([pa.field("data", pa.binary(), nullable=False)])
_NOTE = b"opboost"


class Outline(NamedTuple):
    """A head before its lists are unpacked; so the numbers are checked before anything grows.

    >>> Outline.unpacked(Outline(0, 150, 10, False, bytes(32), b"f", b"v").packed()).rows
    150
    """

    column: int
    rows: int
    symbols: int
    gaps: bool
    digest: bytes
    frequencies: bytes
    values: bytes = b""
    version: int = PROTOCOL_VERSION

    def packed(self) -> bytes:
        """As bytes."""
        lengths = len(self.frequencies), len(self.values)
        fixed = struct.pack(_FIXED, self.version, *self[:4], self.digest, *lengths)
        return fixed + self.frequencies + self.values

    @classmethod
    def unpacked(cls, data: bytes) -> Outline:
        """From a peer's bytes."""
        if data[:1] != bytes([PROTOCOL_VERSION]):
            raise WireError(
                f"A column is of version {data[0] if data else '?'}; this release speaks version "
                f"{PROTOCOL_VERSION}. Let both parties run the same release."
            )
        fixed = struct.unpack_from(_FIXED, data)
        version, column, rows, symbols, gaps, digest, frequencies, values = fixed
        lists = data[struct.calcsize(_FIXED) :]
        if len(lists) != frequencies + values:
            raise WireError("A column's head is longer or shorter than it says.")
        first, second = lists[:frequencies], lists[frequencies:]
        return cls(column, rows, symbols, gaps, digest, first, second, version)


_FIXED = "<B3I?32sII"


@dataclass(frozen=True, eq=False)
class ColumnHead:
    """What a column's stream begins with.

    Codes are 0..``symbols``−1; with ``gaps`` the last symbol stands for a missing value.  The
    codebook is that of the others.
    """

    column: int
    rows: int
    gaps: bool
    coder: Coder
    codebook: Codebook | None
    digest: bytes

    @property
    def symbols(self) -> int:
        """How many different symbols occur."""
        return self.coder.symbols

    @property
    def values(self) -> int:
        """How many different values occur: gaps are none."""
        return self.symbols - self.gaps

    def __post_init__(self) -> None:
        if self.rows < 1 or self.values < 0 or self.symbols > self.rows + 1:
            raise WireError("A column's head does not add up.")
        if self.codebook is not None and len(self.codebook) != self.values:
            raise WireError("A codebook has another length than its column's table.")

    def to_schema(self) -> pa.Schema:
        """The head as the schema of a stream."""
        values = b""
        if self.codebook is not None:
            cells = self.codebook.values.astype(np.int64)
            values = pack_integers(np.append(cells[:1], cells[1:] - cells[:-1]))
        outline = Outline(
            self.column,
            self.rows,
            self.symbols,
            self.gaps,
            self.digest,
            pack_integers(self.coder.frequencies),
            values,
        )
        return FIELDS.with_metadata({_NOTE: outline.packed()})

    @classmethod
    def from_schema(cls, schema: pa.Schema, most: int = 2**31) -> ColumnHead:
        """The head of a stream that a peer sends.

        One with more than ``most`` symbols is refused before its lists are unpacked: they are
        packed, and a few bytes may stand for many.
        """
        if not schema.equals(FIELDS, check_metadata=False):
            raise WireError("A column's stream has other fields than one of bytes.")
        notes = schema.metadata or {}
        if set(notes) - {_NOTE}:
            raise WireError("A column's head holds what no head of ours does.")
        try:
            outline = Outline.unpacked(notes[_NOTE])
            column, rows, symbols, gaps = outline[:4]
            if max(column, rows, symbols) >= 2**31:
                raise WireError("A column's head holds no sensible numbers.")
            if not 0 < symbols <= rows + 1:
                raise WireError("A column has more symbols than rows.")
            if symbols > most:
                raise WireError(f"A column has {symbols:,} codes, more than its grid has cells.")
            coder = Coder.unpacked(symbols, outline.frequencies)
            book = None
            if outline.values and symbols > gaps:
                steps = unpack_integers(outline.values, symbols - gaps)
                if np.abs(steps.astype(np.float64)).sum() > 2.0**62:
                    raise WireError("A codebook goes beyond any grid.")
                book = Codebook(np.cumsum(steps))
            return cls(column, rows, gaps, coder, book, outline.digest)
        except (KeyError, ValueError, struct.error, DataError) as error:
            raise WireError(f"A column's head cannot be read ({type(error).__name__}).") from None


def pieces(rows: int) -> Iterator[slice]:
    """The rows of each piece."""
    for start in range(0, rows, PIECE_ROWS):
        yield slice(start, min(start + PIECE_ROWS, rows))


def batch(data: bytes) -> pa.RecordBatch:
    """One piece as an Arrow batch."""
    return pa.record_batch([pa.array([data], pa.binary())], schema=FIELDS)


class Reader:
    """Takes a column's pieces one by one and refuses the first that does not fit its head."""

    def __init__(self, head: ColumnHead) -> None:
        self.head = head
        self.rows = self.bytes = 0
        self._digest = hashlib.sha256()

    @property
    def due(self) -> int:
        """Rows of the next piece; 0 after the last."""
        return min(PIECE_ROWS, self.head.rows - self.rows)

    def take(self, piece: pa.RecordBatch) -> IntArray:
        """The codes of the next piece."""
        rows = self.due
        if not rows:
            raise WireError("A column goes on after its last row.")
        try:
            piece.validate(full=True)
        except pa.ArrowInvalid:
            raise WireError("A piece of codes is no sound Arrow batch.") from None
        if piece.num_rows != 1 or not piece.schema.equals(FIELDS, check_metadata=False):
            raise WireError("A batch holds one piece of codes.")
        data = piece.column(0)[0].as_buffer()
        codes = self.head.coder.decode(memoryview(data), rows)
        self._digest.update(_plain(codes, self.head.symbols))
        self.rows += rows
        self.bytes += data.size
        return codes

    def finish(self) -> None:
        """Refuse a column that ended early or whose digest differs."""
        if self.rows != self.head.rows:
            raise WireError(
                f"A column ended after {self.rows:,} of its {self.head.rows:,} rows. Send it again."
            )
        if self._digest.digest() != self.head.digest:
            raise WireError("A column's codes do not have the digest that its head states.")


def checked_pieces(
    head: ColumnHead, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, IntArray]]:
    """Each batch of a stream with its codes, checked; the last step refuses what ended early."""
    reader = Reader(head)
    for piece in batches:
        yield piece, reader.take(piece)
    reader.finish()


def digest(codes: Iterable[IntArray], symbols: int) -> bytes:
    """The digest of a column's codes, piece by piece."""
    whole = hashlib.sha256()
    for piece in codes:
        whole.update(_plain(piece, symbols))
    return whole.digest()


def _plain(codes: IntArray, symbols: int) -> memoryview:
    """Codes as the digest reads them: 1, 2 or 4 bytes each, the fewest that hold every symbol."""
    kind = np.min_scalar_type(symbols - 1).newbyteorder("<")
    return np.ascontiguousarray(codes, kind).data
