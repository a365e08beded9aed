"""Random streams: cryptographic by default, seeded only on request.

A sampler opens a :class:`Source` and takes 64-bit words from it: per draw, one word for each
value.  The sampler decides what the words mean.  There is no module-level generator that could
be seeded behind a user's back.
"""

from __future__ import annotations

import hashlib
import os
import threading
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from opboost._typing import FloatArray, IntArray, Words
from opboost.errors import ParameterError
from opboost.randomness.splitmix64 import splitmix64

BUFFER_BYTES = 256 * 1024
"""The largest piece of keystream made at once; it fits in the second-level cache."""

REKEY_BYTES = 2**30
"""After this many bytes, a stream takes a fresh key from the operating system."""

_ZEROS = memoryview(bytes(BUFFER_BYTES))


class Bits(Protocol):
    """Uniform random bits beyond those of the words, for the rare draw that needs more."""

    def bits(self, count: int) -> int:
        """Return a uniform integer of ``count`` bits."""
        ...


class Source(Protocol):
    """An open stream of uniform random bits."""

    def words(self, draws: int, start: int, stop: int) -> Words:
        """Return uniform words of shape ``(draws, stop - start)`` for the rows ``start..stop``.

        They are valid until the next call of ``words`` in the same thread.
        """
        ...

    def further(self, row: int) -> Bits:
        """Return a source of bits beyond the words of one row."""
        ...


class Rng(Protocol):
    """A generator that opens sources; ``secure`` says whether a promise may rely on them."""

    @property
    def secure(self) -> bool:
        """True when the stream is cryptographic."""
        ...

    def open(self) -> Source:
        """Return a source that no other caller shares."""
        ...


class _Keystream:
    """AES-256-CTR with a key and counter from the operating system, for one thread."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._buffer = np.empty(BUFFER_BYTES // 8 + 2, dtype=np.uint64)
        self._rekey()

    def _rekey(self) -> None:
        seed = os.urandom(48)
        self._left = REKEY_BYTES
        self._cipher: CipherContext = Cipher(
            algorithms.AES256(seed[:32]), modes.CTR(seed[32:])
        ).encryptor()

    def take(self, count: int) -> Words:
        """Return the next ``count`` words, valid until the next call if they fit the buffer."""
        # The cipher needs room for one block more than it writes, hence two spare words.
        out = self._buffer if 8 * count <= BUFFER_BYTES else np.empty(count + 2, dtype=np.uint64)
        room = out.view(np.uint8)
        for start in range(0, 8 * count, BUFFER_BYTES):
            size = min(BUFFER_BYTES, 8 * count - start)
            if self._left < size:
                self._rekey()
            self._left -= size
            self._cipher.update_into(_ZEROS[:size], room[start : start + size + 16].data)
        return out[:count]


class _SecureSource:
    """The calling thread's keystream; a forked child gets a new one."""

    def words(self, draws: int, start: int, stop: int) -> Words:
        return _keystream().take(draws * (stop - start)).reshape(draws, stop - start)

    def further(self, row: int) -> Bits:
        return self

    def bits(self, count: int) -> int:
        # This is rare and happens while words are in use, so ask the operating system directly.
        return int.from_bytes(os.urandom(-(-count // 8)), "little") >> (-count % 8)


_local = threading.local()


def _keystream() -> _Keystream:
    stream: _Keystream | None = getattr(_local, "stream", None)
    if stream is None or stream.pid != os.getpid():
        stream = _local.stream = _Keystream()
    return stream


def _forget_keystreams() -> None:
    global _local
    _local = threading.local()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    os.register_at_fork(after_in_child=_forget_keystreams)


@dataclass(frozen=True, slots=True)
class SecureRng:
    """Cryptographic randomness: AES-256-CTR, keyed from the operating system.

    Each thread has a keystream of its own, so threads share nothing and never wait for each other.
    A forked child never repeats its parent's noise: a hook that runs in the child drops all
    keystreams.  Every use also compares the process ID, for forks that run no hook.

    >>> from opboost import ClampMap, Domain, SecureRng
    >>> y = ClampMap(Domain(1, 10), epsilon=0.64).sample([3, 7], rng=SecureRng())
    """

    @property
    def secure(self) -> bool:
        """Always true: a promise may rely on this stream."""
        return True

    def open(self) -> Source:
        """Return the stream of the calling thread."""
        return _SecureSource()


class _SeededSource:
    def __init__(self, seed: int, spawn: tuple[int, ...]) -> None:
        self._generator = np.random.Generator(
            np.random.Philox(np.random.SeedSequence(seed, spawn_key=spawn))
        )

    def words(self, draws: int, start: int, stop: int) -> Words:
        shape = (draws, stop - start)
        return self._generator.integers(0, 2**64, size=shape, dtype=np.uint64)

    def further(self, row: int) -> Bits:
        return self

    def bits(self, count: int) -> int:
        return int.from_bytes(self._generator.bytes(-(-count // 8)), "little") >> (-count % 8)


@dataclass(frozen=True, slots=True)
class SeededRng:
    """Repeatable randomness for tests and for reproducing figures; it protects nothing.

    It is a value, not a generator: it has no state, so the same call gives the same answer.
    ``child(name)`` is an independent stream.  Wherever it is used, the guarantee reads
    ``none: seeded``.

    >>> from opboost import ClampMap, Domain, SeededRng
    >>> m = ClampMap(Domain(1, 10), epsilon=0.64)
    >>> m.sample([3, 7], rng=SeededRng(7)).tolist() == m.sample([3, 7], rng=SeededRng(7)).tolist()
    True
    """

    seed: int
    path: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.seed, int) or isinstance(self.seed, bool) or self.seed < 0:
            raise ParameterError(f"A seed must be a whole number, 0 or more; got {self.seed!r}.")

    @property
    def secure(self) -> bool:
        """Always false: anyone who knows the seed can remove the noise."""
        return False

    def child(self, name: object) -> SeededRng:
        """Return the stream that belongs to ``name``, independent of every other name's."""
        digest = hashlib.blake2b(repr(name).encode(), digest_size=4).digest()
        return SeededRng(self.seed, (*self.path, int.from_bytes(digest, "little")))

    def open(self) -> Source:
        """Return a source at the start of this stream."""
        return _SeededSource(self.seed, self.path)


@dataclass(frozen=True, slots=True, eq=False)
class KeyedRng:
    """Repeatable randomness that depends on rows, not on positions: equal keys give equal words.

    So a row's noise does not depend on the order of the table or on its other rows.  Like
    :class:`SeededRng`, it protects nothing.
    """

    seeded: SeededRng
    keys: Words

    @property
    def secure(self) -> bool:
        """Always false: anyone who knows the seed can remove the noise."""
        return False

    def child(self, name: object) -> KeyedRng:
        """Return the stream that belongs to ``name``."""
        return KeyedRng(self.seeded.child(name), self.keys)

    def open(self) -> Source:
        """Return a source whose words depend on the keys."""
        return _KeyedSource(self.seeded, self.keys)


class _KeyedSource:
    def __init__(self, seeded: SeededRng, keys: Words) -> None:
        self._tail = _SeededSource(seeded.seed, seeded.path)
        self._salt = self._tail.bits(64)
        self._keys = keys
        self._draws: dict[int, int] = {}

    def words(self, draws: int, start: int, stop: int) -> Words:
        first = self._draws.get(start, 0)
        self._draws[start] = first + draws
        order = np.arange(first, first + draws, dtype=np.uint64)[:, None] ^ np.uint64(self._salt)
        return splitmix64(splitmix64(order) ^ self._keys[None, start:stop])

    def further(self, row: int) -> Bits:
        return self._tail


def row_keys(values: FloatArray | IntArray) -> Words:
    """Return a key for each row, from its value and how many earlier rows have the same value."""
    column = np.ascontiguousarray(values)
    if column.dtype.kind == "f":
        column = column.astype(np.float64) + 0.0  # turns -0.0 into 0.0
    else:
        column = column.astype(np.int64)
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    fresh = np.r_[True, ordered[1:] != ordered[:-1]][: len(column)]
    starts = np.maximum.accumulate(np.where(fresh, np.arange(len(column)), 0))
    repeats = np.empty(len(column), dtype=np.uint64)
    repeats[order] = np.arange(len(column)) - starts
    return splitmix64(column.view(np.uint64) ^ splitmix64(repeats))


def default_rng(rng: Rng | None) -> Rng:
    """Return the generator that was asked for, or the cryptographic one."""
    if rng is None:
        return SecureRng()
    if not (hasattr(rng, "open") and hasattr(rng, "secure")):
        raise ParameterError(
            f"rng must be None (cryptographic) or op.SeededRng(7); got {rng!r}. "
            "numpy's generators are predictable from their output."
        )
    return rng
