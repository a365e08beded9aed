"""The stream of one released column: a head, then pieces of entropy-coded codes.

It is an Arrow stream, the same on a socket and in a file.  The schema's metadata contain the head:
how many rows and symbols, the table of frequencies, the codebook (unless it is withheld) and the
digest of the codes.  Each batch holds one piece.  A reader knows the number of rows and the size of
each piece beforehand, so it refuses an endless or inflated stream early.
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
"""The number of rows in each piece but the last."""

FIELDS = pa.schema([pa.field("data", pa.binary(), nullable=False)])
_NOTE = b"opboost"


class Outline(NamedTuple):
    """A head with packed lists, so that its numbers are checked before anything is unpacked.

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
        """Return the head as bytes."""
        lengths = len(self.frequencies), len(self.values)
        fixed = struct.pack(_FIXED, self.version, *self[:4], self.digest, *lengths)
        return fixed + self.frequencies + self.values

    @classmethod
    def unpacked(cls, data: bytes) -> Outline:
        """Read a head from a peer's bytes."""
        if data[:1] != bytes([PROTOCOL_VERSION]):
            raise WireError(
                f"A column is of version {data[0] if data else '?'}; this release speaks version "
                f"{PROTOCOL_VERSION}. Run the same release at both parties."
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
    """The head of a column's stream.

    Codes are 0..``symbols``−1; with ``gaps`` the last symbol means a missing value.  The codebook
    lists the values of the other symbols.
    """

    column: int
    rows: int
    gaps: bool
    coder: Coder
    codebook: Codebook | None
    digest: bytes

    @property
    def symbols(self) -> int:
        """The number of distinct symbols."""
        return self.coder.symbols

    @property
    def values(self) -> int:
        """The number of distinct values, without the gap."""
        return self.symbols - self.gaps

    def __post_init__(self) -> None:
        if self.rows < 1 or self.values < 0 or self.symbols > self.rows + 1:
            raise WireError("A column's head does not add up.")
        if self.codebook is not None and len(self.codebook) != self.values:
            raise WireError("A codebook is not as long as its column's table of frequencies.")

    def to_schema(self) -> pa.Schema:
        """Return the head as the schema of a stream."""
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
        """Read the head of a stream that a peer sends.

        A head with more than ``most`` symbols is refused before its lists are unpacked, since a few
        packed bytes may expand to many.
        """
        if not schema.equals(FIELDS, check_metadata=False):
            raise WireError("A column's stream must have one field, of bytes.")
        notes = schema.metadata or {}
        if set(notes) - {_NOTE}:
            raise WireError("A column's head has unknown entries.")
        try:
            outline = Outline.unpacked(notes[_NOTE])
            column, rows, symbols, gaps = outline[:4]
            if max(column, rows, symbols) >= 2**31:
                raise WireError("A column's head has impossible numbers.")
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
    """Yield the rows of each piece."""
    for start in range(0, rows, PIECE_ROWS):
        yield slice(start, min(start + PIECE_ROWS, rows))


def batch(data: bytes) -> pa.RecordBatch:
    """Return one piece as an Arrow batch."""
    return pa.record_batch([pa.array([data], pa.binary())], schema=FIELDS)


class Reader:
    """A reader of a column's pieces, which refuses the first piece that does not fit the head."""

    def __init__(self, head: ColumnHead) -> None:
        self.head = head
        self.rows = self.bytes = 0
        self._digest = hashlib.sha256()

    @property
    def due(self) -> int:
        """The number of rows of the next piece; 0 after the last."""
        return min(PIECE_ROWS, self.head.rows - self.rows)

    def take(self, piece: pa.RecordBatch) -> IntArray:
        """Return the codes of the next piece."""
        rows = self.due
        if not rows:
            raise WireError("A column continues after its last row.")
        try:
            piece.validate(full=True)
        except pa.ArrowInvalid:
            raise WireError("A piece of codes is not a valid Arrow batch.") from None
        if piece.num_rows != 1 or not piece.schema.equals(FIELDS, check_metadata=False):
            raise WireError("A batch must hold one piece of codes.")
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
            raise WireError("A column's codes do not match the digest in its head.")


def checked_pieces(
    head: ColumnHead, batches: Iterable[pa.RecordBatch]
) -> Iterator[tuple[pa.RecordBatch, IntArray]]:
    """Yield each batch of a stream with its checked codes; refuse a stream that ends early."""
    reader = Reader(head)
    for piece in batches:
        yield piece, reader.take(piece)
    reader.finish()


def digest(codes: Iterable[IntArray], symbols: int) -> bytes:
    """Return the digest of a column's codes, which are given piece by piece."""
    whole = hashlib.sha256()
    for piece in codes:
        whole.update(_plain(piece, symbols))
    return whole.digest()


def _plain(codes: IntArray, symbols: int) -> memoryview:
    """Return codes in the fewest bytes that hold every symbol (1, 2 or 4), for the digest."""
    kind = np.min_scalar_type(symbols - 1).newbyteorder("<")
    return np.ascontiguousarray(codes, kind).data
