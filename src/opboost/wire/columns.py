"""One released column on its way: a head, then pieces of entropy-coded codes.

The form is an Arrow stream, on a socket or in a file alike.  The head stands in the schema's
metadata: how many rows and symbols, the table of frequencies, the codebook (unless it is withheld)
and the digest of the codes.  A batch holds one piece.  A reader knows beforehand how many rows come
and how large each piece is, so an endless or inflated stream ends early.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from opboost._typing import IntArray
from opboost.errors import DataError, WireError
from opboost.ordinals import Codebook
from opboost.wire.coding import Coder, pack_integers, unpack_integers
from opboost.wire.envelope import VERSION

PIECE = 2**18
"""Rows of one piece."""

FIELDS = pa.schema([pa.field("data", pa.binary(), nullable=False)])


@dataclass(frozen=True, eq=False)
class Head:
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
        plain = {
            "version": VERSION,
            "column": self.column,
            "rows": self.rows,
            "gaps": self.gaps,
            "symbols": self.symbols,
            "digest": self.digest.hex(),
            "codebook": self.codebook is not None,
        }
        notes = {b"opboost": json.dumps(plain).encode()}
        notes[b"frequencies"] = pack_integers(self.coder.frequencies)
        if self.codebook is not None:
            values = self.codebook.values.astype(np.int64)
            steps = np.append(values[:1], values[1:] - values[:-1])
            notes[b"values"] = pack_integers(steps)
        return FIELDS.with_metadata(notes)

    @classmethod
    def from_schema(cls, schema: pa.Schema, most: int = 2**31) -> Head:
        """The head of a stream that a peer sends.

        One with more than ``most`` symbols is refused before its lists are unpacked: they are
        packed, and a few bytes may stand for many.
        """
        if not schema.equals(FIELDS, check_metadata=False):
            raise WireError("A column's stream has other fields than one of bytes.")
        notes = schema.metadata or {}
        if set(notes) - {b"opboost", b"frequencies", b"values"}:
            raise WireError("A column's head holds what no head of ours does.")
        try:
            plain = json.loads(notes[b"opboost"])
            if plain["version"] != VERSION:
                raise WireError(f"A column is of version {plain['version']!r}, not {VERSION}.")
            numbers = [plain[name] for name in ("column", "rows", "symbols")]
            if not all(type(n) is int and 0 <= n < 2**31 for n in numbers):
                raise WireError("A column's head holds no sensible numbers.")
            column, rows, symbols = numbers
            if not 0 < symbols <= rows + 1:
                raise WireError("A column has more symbols than rows.")
            if symbols > most:
                raise WireError(f"A column has {symbols:,} codes, more than its grid has cells.")
            coder = Coder.unpacked(symbols, notes[b"frequencies"])
            book = None
            gaps = plain["gaps"] is True
            if plain["codebook"] is True and symbols > gaps:
                steps = unpack_integers(notes[b"values"], symbols - gaps)
                if np.abs(steps.astype(np.float64)).sum() > 2.0**62:
                    raise WireError("A codebook goes beyond any grid.")
                book = Codebook(np.cumsum(steps))
            return cls(column, rows, gaps, coder, book, bytes.fromhex(plain["digest"]))
        except (KeyError, TypeError, ValueError, RecursionError, DataError) as error:
            raise WireError(f"A column's head cannot be read ({type(error).__name__}).") from None


def pieces(rows: int) -> Iterator[slice]:
    """The rows of each piece."""
    for start in range(0, rows, PIECE):
        yield slice(start, min(start + PIECE, rows))


def batch(data: bytes) -> pa.RecordBatch:
    """One piece as an Arrow batch."""
    return pa.record_batch([pa.array([data], pa.binary())], schema=FIELDS)


class Reader:
    """Takes a column's pieces one by one and refuses the first that does not fit its head."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.rows = self.bytes = 0
        self._digest = hashlib.sha256()

    def take(self, piece: pa.RecordBatch) -> IntArray:
        """The codes of the next piece."""
        rows = min(PIECE, self.head.rows - self.rows)
        if rows <= 0:
            raise WireError("A column goes on after its last row.")
        try:
            piece.validate(full=True)
        except pa.ArrowInvalid:
            raise WireError("A piece of codes is no sound Arrow batch.") from None
        if piece.num_rows != 1 or not piece.schema.equals(FIELDS, check_metadata=False):
            raise WireError("A batch holds one piece of codes.")
        data = piece.column(0)[0].as_buffer()
        codes = self.head.coder.decode(memoryview(data), rows)
        self._digest.update(_plain(codes))
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


def digest(codes: Iterable[IntArray]) -> bytes:
    """The digest of a column's codes, piece by piece."""
    whole = hashlib.sha256()
    for piece in codes:
        whole.update(_plain(piece))
    return whole.digest()


def _plain(codes: IntArray) -> bytes:
    return codes.astype("<u4").tobytes()
