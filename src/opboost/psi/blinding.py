"""Blinding on an elliptic curve: two parties compare keys without seeing each other's.

Each party raises points to a secret power: one turns H(x) into H(x)^a, the other turns H(x)^a into
H(x)^ab.  This is called *raising* points.  The order of raising does not matter, so equal keys give
equal points (Meadows 1986; Huberman, Franklin and Hogg 1999).  A party that follows the protocol
learns which keys are common and how many the other has; everything else looks random to it under
the decisional Diffie-Hellman assumption on Curve25519, with hashing to the curve as a random
oracle.  ``docs/decisions/0013-alignment.md`` has the argument.

Raising is X25519 (RFC 7748), computed by libsodium in constant time through PyNaCl.  X25519 makes
every secret a multiple of 8, so every raised point lies in the subgroup of prime order.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from nacl.bindings import crypto_scalarmult

from opboost._typing import IntArray
from opboost.errors import WireError
from opboost.psi.curve_points import POINT_BYTES, check_on_curve, check_points
from opboost.psi.hash_to_curve import hash_to_curve
from opboost.psi.point_matching import order_by_first
from opboost.psi.row_keys import Digests
from opboost.runtime.threads import most_threads

SECRET_BYTES = 32

_ORDER_ROWS = 65_536
"""The number of rows hashed at a time: Python objects take four times the bytes."""

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Secret:
    """A party's secret for one peer and one job; it is never sent, and is deleted after use.

    >>> ours, theirs = Secret.fresh(), Secret.fresh()
    >>> from opboost.psi.row_keys import key_digests
    >>> keys = key_digests([b"ann", b"bob"])
    >>> theirs.raised(ours.blinded(keys)) == ours.raised(theirs.blinded(keys))
    True
    """

    key: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != SECRET_BYTES:
            raise ValueError(f"A secret has {SECRET_BYTES} bytes; got {len(self.key)}.")

    @classmethod
    def fresh(cls) -> Secret:
        """Return a new secret."""
        return cls(secrets.token_bytes(SECRET_BYTES))

    @property
    def tag(self) -> bytes:
        """Sixteen bytes that distinguish this secret from others and reveal nothing about it."""
        return self._derived("tag")[:16]

    def order(self, digests: Digests) -> IntArray:
        """Return the rows in an order that only the holder of this secret knows."""
        key = self._derived("order")

        def drawn(rows: Digests, size: int) -> np.ndarray[Any, Any]:
            names = [hmac.digest(key, row.tobytes(), "sha256")[:size] for row in rows]
            return np.frombuffer(b"".join(names), ">u8").reshape(len(rows), -1)

        first = np.empty(len(digests), np.uint64)
        for start in range(0, len(digests), _ORDER_ROWS):
            rows = digests[start : start + _ORDER_ROWS]
            first[start : start + len(rows)] = drawn(rows, 8)[:, 0]
        return order_by_first(first, lambda rows: drawn(digests[rows], 16))

    def blinded(self, digests: Digests) -> bytes:
        """Return one point per key, in the order given."""
        return self._multiplied(hash_to_curve(digests))

    def raised(self, points: bytes, *, checked: bool = False) -> bytes:
        """Return another party's points, raised by this secret, in the order given.

        ``checked`` says that the caller has already checked that they lie on the curve.
        """
        if not checked:
            check_points(points, len(points) // POINT_BYTES)
            check_on_curve(points)
        return self._multiplied(points)

    def _multiplied(self, points: bytes) -> bytes:
        # Each call releases the interpreter's lock while libsodium computes.
        key, starts = self.key, range(0, len(points), POINT_BYTES)
        try:
            return b"".join([crypto_scalarmult(key, points[i : i + POINT_BYTES]) for i in starts])
        except RuntimeError:
            raise WireError("A point does not lie on the curve.") from None

    def _derived(self, purpose: str) -> bytes:
        return hashlib.sha256(f"opboost psi {purpose} 1\0".encode() + self.key).digest()


def at_once(
    work: Callable[[T], R], items: Iterable[T], *, threads: int | None = None
) -> Iterator[R]:
    """Yield results in the order of the items; compute several at once, and keep few in memory.

    libsodium and compiled loops release the interpreter's lock, so threads use all cores.
    """
    threads = threads or most_threads()
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(work, item))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
