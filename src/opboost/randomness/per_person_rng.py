"""Noise determined by a person and a value, under a secret that is destroyed afterwards.

A scheduler may repeat a task.  If the repeated task drew fresh noise, anyone who saw both runs
could average them.  If noise depended on the position in a block, a row that moved would get
another row's noise, and two outputs would differ by the difference of two values.  So each word is
a pseudo-random function of the release's secret, the row's ID, its value, and the noise's purpose:

    mask  = AES[k1](name of the row)                       128 bits; k1 and k2 by HKDF-SHA256
    words = AES[k2](mask xor (value, number of the draw))  from the secret and the purpose

This is CBC-MAC of two blocks under two keys, a pseudo-random function on inputs of equal length.
A repeated task repeats its words; a different value, column, mechanism or release gets other words.
Why this keeps the promise: docs/proofs/repeatable-noise.md.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from opboost._typing import IntArray, Words
from opboost.errors import ParameterError
from opboost.randomness.streams import Bits, Source
from opboost.storage.framing import framed

SECRET_BYTES = 32
"""The length of a release's secret."""

MAX_SHORT_ID_BYTES = 15
"""An ID of up to this many bytes is its own name; a longer one is named by a keyed digest."""

_FIRST_EXTRA_BLOCK = 1 << 32
"""The first block of a row's extra bits; blocks below it hold the words that every row takes."""


def derived(secret: bytes, *purpose: str) -> bytes:
    """Return a separate key for each purpose, by HKDF-SHA256."""
    if len(secret) != SECRET_BYTES:
        raise ParameterError(f"A release's secret has {SECRET_BYTES} bytes; got {len(secret)}.")
    info = framed(part.encode() for part in purpose)
    return HKDF(algorithm=SHA256(), length=32, salt=None, info=info).derive(secret)


def row_names(secret: bytes, ids: pa.LargeBinaryArray) -> Words:
    """Return two words for each row's ID: different IDs have different words.

    A short ID is padded and followed by its length, so no other ID gets the same words.  A longer
    one becomes 120 bits of BLAKE2b under the secret: among a billion IDs, the chance that any two
    collide is below 10**-18.

    >>> row_names(bytes(32), pa.array([b"7", b"a much longer identifier"], pa.large_binary())).shape
    (2, 2)
    """
    _, offsets, data = ids.buffers()
    places = np.frombuffer(offsets, dtype=np.int64)[ids.offset : ids.offset + len(ids) + 1]
    text = np.frombuffer(data or b"", dtype=np.uint8)
    sizes = np.diff(places)
    blocks = np.zeros((len(ids), MAX_SHORT_ID_BYTES + 1), dtype=np.uint8)
    blocks[:, MAX_SHORT_ID_BYTES] = np.minimum(sizes, MAX_SHORT_ID_BYTES)
    for at in range(min(MAX_SHORT_ID_BYTES, int(sizes.max(initial=0)))):
        here = sizes > at
        blocks[here, at] = text[places[:-1][here] + at]
    key = derived(secret, "long IDs")
    for row in np.flatnonzero(sizes > MAX_SHORT_ID_BYTES).tolist():
        digest = hashlib.blake2b(ids[row].as_py(), key=key, digest_size=MAX_SHORT_ID_BYTES).digest()
        blocks[row] = np.frombuffer(digest + b"\xff", dtype=np.uint8)
    return blocks.view("<u8").astype(np.uint64)


@dataclass(frozen=True, slots=True, eq=False)
class RowRng:
    """Cryptographic noise that depends on rows and values, not on positions: a retry repeats it.

    ``names`` are the rows' names (:func:`row_names`), ``states`` the numbers of their values, and
    ``purpose`` says what the noise is for (column, mechanism, levels).  Anyone who has ``secret``
    can remove the noise, so it is destroyed when the release is complete.

    >>> import numpy as np, secrets
    >>> from opboost import ClampMap, Domain
    >>> m, secret = ClampMap(Domain(1, 10), epsilon=0.64), secrets.token_bytes(32)
    >>> ids, cells = pa.array([b"ann", b"bob", b"eve"], pa.large_binary()), np.array([3, 3, 7])
    >>> names = row_names(secret, ids)
    >>> y = m.sample(cells, RowRng(secret, names, cells, ("age", repr(m))))
    >>> back = RowRng(secret, names[::-1], cells[::-1], ("age", repr(m)))
    >>> m.sample(cells[::-1], back).tolist() == y.tolist()[::-1]
    True
    """

    secret: bytes
    names: Words
    states: IntArray
    purpose: tuple[str, ...]

    @property
    def secure(self) -> bool:
        """True: a promise may rely on this noise as long as nobody learns the secret."""
        return True

    def child(self, name: object) -> RowRng:
        """Return noise for the same rows and values, for a purpose within this one."""
        return RowRng(self.secret, self.names, self.states, (*self.purpose, repr(name)))

    def open(self) -> Source:
        """Return a source whose words depend on rows and values."""
        masks = masked(derived(self.secret, "mask", *self.purpose), self.names)
        masks[:, 0] ^= self.states.astype(np.uint64)
        return _RowSource(derived(self.secret, "words", *self.purpose), masks)


class _RowSource:
    def __init__(self, key: bytes, masks: Words) -> None:
        self._key, self._masks = key, masks
        self._taken: dict[int, int] = {}
        self._tails: dict[int, _RowBits] = {}

    def words(self, draws: int, start: int, stop: int) -> Words:
        first = self._taken.get(start, 0)
        self._taken[start] = first + draws
        blocks = np.arange(first // 2, (first + draws + 1) // 2, dtype=np.uint64)
        made = self._blocks(slice(start, stop), blocks).transpose(0, 2, 1)
        whole = made.reshape(2 * len(blocks), stop - start)
        return np.array(whole[first % 2 :][:draws], order="C")

    def further(self, row: int) -> Bits:
        return self._tails.setdefault(row, _RowBits(self, row))

    def _blocks(self, rows: slice, numbers: Words) -> Words:
        """Return 128 bits for each number and row, as two words."""
        masks = self._masks[rows]
        inputs = np.empty((len(numbers), *masks.shape), dtype="<u8")
        inputs[..., 0] = masks[:, 0]
        inputs[..., 1] = masks[:, 1] ^ numbers[:, None]
        return masked(self._key, inputs)


class _RowBits:
    """The bits of one row beyond its words, one block after another."""

    def __init__(self, source: _RowSource, row: int) -> None:
        self._source, self._row, self._at = source, slice(row, row + 1), _FIRST_EXTRA_BLOCK

    def bits(self, count: int) -> int:
        numbers = np.arange(self._at, self._at + -(-count // 128), dtype=np.uint64)
        self._at += len(numbers)
        made = self._source._blocks(self._row, numbers).tobytes()
        return int.from_bytes(made, "little") >> (-count % 128)


def masked(key: bytes, blocks: Words) -> Words:
    """Return each pair of words encrypted with AES-256: different pairs stay different."""
    cipher = Cipher(algorithms.AES256(key), modes.ECB()).encryptor()
    sealed = cipher.update(np.asarray(blocks, dtype="<u8").tobytes())
    return np.array(np.frombuffer(sealed, dtype="<u8").reshape(blocks.shape), dtype=np.uint64)
