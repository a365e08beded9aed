"""Compress the codes of a column to about as many bits as their entropy.

Zstandard codes whole bytes, so it compresses poorly if values take less than one bit (as in unary
encoding) or more than eight.  Range coding with one table of frequencies per column handles both.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opboost._typing import IntArray
from opboost.errors import WireError
from opboost.protocol.rans_kernel import MAX_PRECISION_BITS, STATES, decode_symbols, encode_symbols

MAX_SYMBOLS = 2**16
"""With more symbols than this, the low bits of a code are sent uncompressed."""


@dataclass(frozen=True, eq=False)
class Coder:
    """A code for symbols 0..``symbols``−1 that occur in the given proportions.

    >>> coder = Coder.of_counts(np.array([900, 90, 10]))
    >>> column = np.repeat([0, 1, 2], [900, 90, 10]).astype(np.uint8)
    >>> packed = coder.encode(column)
    >>> bool((coder.decode(packed, 1000) == column).all()), len(packed) < 100
    (True, True)
    """

    symbols: int
    shift: int
    precision: int
    frequencies: IntArray

    def __post_init__(self) -> None:
        heads = -(-self.symbols >> self.shift)
        if not (
            0 < self.symbols <= 2**31
            and self.shift == _shift(self.symbols)
            and self.precision == _precision(heads)
            and self.frequencies.shape == (heads,)
            and self.frequencies.min() >= 1
            and self.frequencies.max() <= 1 << self.precision
            and int(self.frequencies.sum()) == 1 << self.precision
        ):
            raise WireError("A column's table of frequencies does not add up.")

    @classmethod
    def of_counts(cls, counts: IntArray) -> Coder:
        """Build the code for a column in which symbol k occurs ``counts[k]`` times."""
        shift = _shift(len(counts))
        heads = np.add.reduceat(counts, np.arange(0, len(counts), 1 << shift)) if shift else counts
        precision = _precision(len(heads))
        share = heads / max(1, int(heads.sum())) * ((1 << precision) - len(heads))
        whole = np.floor(share).astype(np.int64) + 1
        spare = (1 << precision) - int(whole.sum())
        whole[np.argsort(share - np.floor(share), kind="stable")[::-1][:spare]] += 1
        return cls(len(counts), shift, precision, whole)

    @classmethod
    def unpacked(cls, symbols: int, packed: bytes) -> Coder:
        """Build the code from the packed frequencies that a peer sent."""
        if not 0 < symbols <= 2**31:
            raise WireError("A column has an impossible number of symbols.")
        shift = _shift(symbols)
        heads = -(-symbols >> shift)
        return cls(symbols, shift, _precision(heads), unpack_integers(packed, heads))

    def encode(self, codes: IntArray) -> bytes:
        """Return the codes as bytes."""
        head = (codes >> self.shift).astype(np.uint32) if self.shift else codes
        words = np.empty(len(codes) + 2 * STATES, dtype=np.uint32)
        begin = encode_symbols(head, self.frequencies, self._starts, self.precision, words)
        packed = words[begin:].astype("<u4").tobytes()
        if not self.shift:
            return packed
        tail = (codes.astype(np.uint32)[:, None] >> np.arange(self.shift, dtype=np.uint32)) & 1
        return packed + np.packbits(tail.astype(np.bool_)).tobytes()

    def decode(self, data: bytes | memoryview, rows: int) -> IntArray:
        """Return the ``rows`` codes in these bytes; refuse what :meth:`encode` cannot write."""
        tail = -(-rows * self.shift // 8)
        most = tail + 4 * (rows + 2 * STATES)
        if not tail <= len(data) <= most or (len(data) - tail) % 4:
            raise WireError("A piece of codes has an impossible length.")
        words = np.frombuffer(data, dtype="<u4", count=(len(data) - tail) // 4)
        words = np.require(words, requirements="A")  # one memory layout, so one compiled loop
        words.flags.writeable = False
        heads = len(self.frequencies)
        out = np.empty(rows, dtype=np.min_scalar_type(heads - 1))
        used = decode_symbols(
            words, self.frequencies, self._starts, self._lookup, self.precision, out
        )
        if used != len(words):
            raise WireError("A piece of codes is damaged.")
        if not self.shift:
            return out
        bits = np.frombuffer(data, dtype=np.uint8, offset=len(data) - tail)
        low = np.unpackbits(bits, count=rows * self.shift).reshape(rows, self.shift)
        codes = out.astype(np.uint32) << self.shift
        codes |= (low.astype(np.uint32) << np.arange(self.shift, dtype=np.uint32)).sum(
            axis=1, dtype=np.uint32
        )
        if rows and int(codes.max()) >= self.symbols:
            raise WireError("A code lies beyond its table.")
        return codes

    @cached_property
    def _starts(self) -> IntArray:
        return np.cumsum(self.frequencies) - self.frequencies

    @cached_property
    def _lookup(self) -> IntArray:
        kind = np.min_scalar_type(len(self.frequencies) - 1)
        return np.repeat(np.arange(len(self.frequencies), dtype=kind), self.frequencies)


def _shift(symbols: int) -> int:
    return max(0, (symbols - 1).bit_length() - MAX_SYMBOLS.bit_length() + 1)


def _precision(symbols: int) -> int:
    return min(MAX_PRECISION_BITS, max(14, (symbols - 1).bit_length() + 5))


def pack_integers(values: IntArray) -> bytes:
    """Pack integers into 1, 2, 4 or 8 bytes each, as many as the largest needs.

    The first byte is the number of bytes per integer.  If 16 is added to it, the bytes follow in
    deflated planes, which are shorter for long lists.
    """
    width = next(w for w in (1, 2, 4, 8) if w == 8 or _fits(values, w))
    planes = values.astype(f"<i{width}").view(np.uint8).reshape(-1, width).T.tobytes()
    deflated = zlib.compress(planes, 9)
    if len(deflated) < len(planes):
        return bytes([16 + width]) + deflated
    return bytes([width]) + planes


def unpack_integers(data: bytes, count: int) -> IntArray:
    """Return the ``count`` packed integers; never inflate beyond their size."""
    form = data[0] if data else 0
    width = form & 15
    if form not in (1, 2, 4, 8, 17, 18, 20, 24):
        raise WireError("A packed list cannot be unpacked.")
    planes = bytes(data[1:]) if form < 16 else _inflated(data[1:], width * count)
    if len(planes) != width * count:
        raise WireError("A packed list does not have the length that it states.")
    rows = np.frombuffer(planes, dtype=np.uint8).reshape(width, count)
    return np.ascontiguousarray(rows.T).view(f"<i{width}").reshape(count).astype(np.int64)


def _fits(values: IntArray, width: int) -> bool:
    most = 1 << (8 * width - 1)
    return not len(values) or bool(-most <= values.min() and values.max() < most)


def _inflated(data: bytes, size: int) -> bytes:
    """Return the inflated data, at most one byte more than ``size``."""
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(data, size + 1)
    except zlib.error:
        raise WireError("A packed list cannot be unpacked.") from None
    if not unpacker.eof or unpacker.unused_data:
        raise WireError("A packed list does not have the length that it states.")
    return found


def warm_up() -> None:
    """Load the compiled loops before they are needed."""
    coder = Coder.of_counts(np.array([1, 1]))
    coder.decode(coder.encode(np.zeros(1, dtype=np.uint8)), 1)
