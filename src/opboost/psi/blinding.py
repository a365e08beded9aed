"""Blinding on an elliptic curve: neither party sees the other's keys, both can compare.

Each party raises points by a secret: H(x) to H(x)^a by one, to H(x)^ab by the other, and the order
does not matter, so equal keys meet in equal points (Meadows 1986; Huberman, Franklin and Hogg
1999).  Who follows the protocol learns what is common and how many keys the other has; the rest
looks random under the decisional Diffie–Hellman assumption on P-256, with hashing to the curve as
a random oracle.  The curve is that of OpenMined's PSI library, whose client blinds and whose server
raises in the order given.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import private_set_intersection.python as library

from opboost._typing import IntArray
from opboost.errors import WireError
from opboost.psi.curve_points import POINT_BYTES, check_points
from opboost.psi.row_keys import Digests

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Secret:
    """One party's secret for one peer and one job; it never leaves, and goes when it has served.

    >>> ours, theirs = Secret.fresh(), Secret.fresh()
    >>> from opboost.psi.row_keys import key_digests
    >>> keys = key_digests([b"ann", b"bob"])
    >>> theirs.raised(ours.blinded(keys)) == ours.raised(theirs.blinded(keys))
    True
    """

    key: bytes = field(repr=False)

    @classmethod
    def fresh(cls) -> Secret:
        """A new one."""
        return cls(library.client.CreateWithNewKey(True).GetPrivateKeyBytes())

    @property
    def tag(self) -> bytes:
        """Sixteen bytes that tell this secret from others, and nothing of it."""
        return self._derived("tag")[:16]

    def order(self, digests: Digests) -> IntArray:
        """The rows in an order that only the holder of this secret knows."""
        key = self._derived("order")
        drawn = b"".join(hmac.digest(key, bytes(row), "sha256")[:16] for row in digests)
        return np.argsort(np.frombuffer(drawn, dtype="S16"), kind="stable")

    def blinded(self, digests: Digests) -> bytes:
        """One point a key, in the order given."""
        # A library object is not safe for two threads; a new one takes two milliseconds.
        client = library.client.CreateFromKey(self.key, True)
        return b"".join(client.CreateRequest([bytes(d).hex() for d in digests]).encrypted_elements)

    def raised(self, points: bytes) -> bytes:
        """Another party's points, raised by this secret, in the order given."""
        count = len(points) // POINT_BYTES
        check_points(points, count)
        request = library.Request(reveal_intersection=True)
        request.encrypted_elements.extend(
            points[i : i + POINT_BYTES] for i in range(0, len(points), POINT_BYTES)
        )
        server = library.server.CreateFromKey(self.key, True)
        try:
            response = server.ProcessRequest(request)
        except RuntimeError:
            raise WireError("A point does not lie on the curve.") from None
        return b"".join(response.encrypted_elements)

    def _derived(self, purpose: str) -> bytes:
        return hashlib.sha256(f"opboost psi {purpose} 1\0".encode() + self.key).digest()


def at_once(
    work: Callable[[T], R], items: Iterable[T], *, threads: int | None = None
) -> Iterator[R]:
    """Results in the order of the items, several made at a time, few of them waiting in memory.

    The library lets go of the interpreter's lock while it computes, so threads use all cores.
    """
    threads = threads or os.cpu_count() or 1
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
