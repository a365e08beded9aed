"""The keys of all rows of a table, piece by piece: a table need not fit in memory."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from opboost._typing import IntArray
from opboost.columns.duplicate_ids import DuplicateIds
from opboost.errors import DataError
from opboost.psi.row_keys import Digests, key_digests
from opboost.storage.framing import framed

PIECE_ROWS = 65_536
"""The number of keys that are in memory at once."""


class Keys:
    """The keys of a table's rows, in its order, read again whenever they are needed.

    >>> keys = Keys.held([b"ann", b"bob"])
    >>> len(keys), keys.digests().shape
    (2, (2, 32))
    """

    def __init__(self, rows: int, pieces: Callable[[], Iterator[Sequence[bytes]]]) -> None:
        self._rows, self._read = rows, pieces
        self._known: dict[bytes, bytes] = {}

    @classmethod
    def held(cls, keys: Sequence[bytes]) -> Keys:
        """Return keys that are in memory."""
        starts = range(0, len(keys), PIECE_ROWS)
        return cls(len(keys), lambda: (keys[start : start + PIECE_ROWS] for start in starts))

    @classmethod
    def counted(cls, pieces: Callable[[], Iterator[Sequence[bytes]]], aside: Path | None) -> Keys:
        """Return keys read from elsewhere, after one pass that refuses a repeated key.

        ``aside`` is a folder for the comparison, which needs 16 bytes per key.
        """
        rows = _refuse_repeats((key_digests(piece) for piece in pieces()), aside)
        return cls(rows, pieces)

    @classmethod
    def of_digests(cls, digests: Digests, rows: IntArray) -> Keys:
        """Return the digests of some rows as keys, which identify rows once they are aligned."""
        return cls(len(rows), lambda: _pieces_of(digests, rows))

    def chosen(self, rows: IntArray, digests: Digests, nonce: bytes) -> Keys:
        """Return what :meth:`of_digests` returns, without keeping the digests in memory.

        ``digests`` are the digests of all these keys.  The result stores its keyed digest under
        ``nonce``; for any other nonce it reads these keys again.
        """
        found = Keys(len(rows), lambda: _pieces_of(self.digests(), rows))
        found._known[nonce] = Keys.of_digests(digests, rows).digest(nonce)
        return found

    def __len__(self) -> int:
        return self._rows

    def pieces(self) -> Iterator[Sequence[bytes]]:
        """Yield all keys, piece by piece; refuse if their number has changed."""
        seen = 0
        for piece in self._read():
            seen += len(piece)
            if seen > self._rows:
                break
            yield piece
        if seen != self._rows:
            raise DataError("The table's rows changed while it was read", hint="Begin again.")

    def digest(self, nonce: bytes) -> bytes:
        """Return a keyed digest of all keys in order, which parties compare before a release."""
        if nonce not in self._known:
            whole = hmac.new(nonce, digestmod="sha256")
            for piece in self.pieces():
                whole.update(framed(piece))
            self._known[nonce] = whole.digest()
        return self._known[nonce]

    def digests(self) -> Digests:
        """Return the digest of each key."""
        found = np.empty((self._rows, 32), dtype=np.uint8)
        start = 0
        for piece in self.pieces():
            found[start : start + len(piece)] = key_digests(piece)
            start += len(piece)
        return found


def _pieces_of(digests: Digests, rows: IntArray) -> Iterator[Sequence[bytes]]:
    for start in range(0, len(rows), PIECE_ROWS):
        yield [d.tobytes() for d in digests[rows[start : start + PIECE_ROWS]]]


def refuse_repeats(digests: Digests) -> None:
    """Refuse keys that occur more than once; the error shows counts, but no keys."""
    starts = range(0, len(digests), PIECE_ROWS)
    _refuse_repeats((digests[start : start + PIECE_ROWS] for start in starts), None)


def _refuse_repeats(pieces: Iterator[Digests], aside: Path | None) -> int:
    """Refuse repeated digests; return the number of digests."""
    count = 0
    with DuplicateIds(aside) as names:
        for piece in pieces:
            names.add(np.ascontiguousarray(piece[:, :16]).view("<u8"))
            count += len(piece)
        keys, rows = names.repeated()
    if keys:
        raise DataError(
            f"{keys:,} {'ID appears' if keys == 1 else 'IDs appear'} more than once, in {rows:,} "
            "rows, as IDs are normalised in this job",
            hint="Each ID identifies one person: keep one row per person.",
        )
    return count
