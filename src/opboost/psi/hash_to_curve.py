"""Hashing to Curve25519 by RFC 9380: the suite ``curve25519_XMD:SHA-512_ELL2_NU_``, x-only.

A message becomes 48 pseudo-random bytes (``expand_message_xmd``), and these become a field element,
which Elligator 2 maps to the first coordinate u of a point.  The point is on the curve and never on
its twist.  A random u could be on either, and which one would still be visible after the point is
raised. The RFC then multiplies by the cofactor 8.  This module leaves that to X25519, whose scalars
are multiples of 8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from opboost.psi import field25519 as field
from opboost.psi.row_keys import Digests

A = 486662
"""The curve is v**2 = u**3 + A * u**2 + u."""

DOMAIN = b"OPBOOST-PSI-V01-with-curve25519_XMD:SHA-512_ELL2_NU_"
"""The domain separation tag: no other protocol hashes an ID to the same point."""

_FIELD_BYTES = 48
_BLOCK = bytes(128)


def hash_to_curve(digests: Digests) -> bytes:
    """Return one point per digest, 32 bytes each: what RFC 9380 calls Q, before the cofactor.

    >>> len(hash_to_curve(np.zeros((3, 32), dtype=np.uint8)))
    96
    """
    return mapped(hashed_to_field((row.tobytes() for row in digests), DOMAIN))


def hashed_to_field(messages: Iterable[bytes], domain: bytes) -> bytes:
    """Return 48 bytes per message, little-endian: the RFC's ``hash_to_field`` before reduction."""
    sha512 = hashlib.sha512
    tag = domain + bytes([len(domain)])
    start, tail, last = sha512(_BLOCK), bytes([0, _FIELD_BYTES, 0]) + tag, b"\1" + tag
    found = []
    for message in messages:
        first = start.copy()
        first.update(message + tail)
        found.append(sha512(first.digest() + last).digest()[_FIELD_BYTES - 1 :: -1])
    return b"".join(found)


def mapped(wide: bytes) -> bytes:
    """Return Elligator 2 of field elements of 48 bytes each, as first coordinates of 32 bytes.

    For r the element, t = 2 r**2 and d = 1 + t, the map takes u = -A / d where that is on the
    curve, and u = -A - (-A / d) = -A t / d elsewhere.  As -A / d is on the curve iff
    A d (A**2 t - d**2) is a square, one power decides, and one inversion serves all elements.
    """
    count = len(wide) // _FIELD_BYTES
    if not count:
        return b""
    r = field.from_bytes(wide, _FIELD_BYTES)
    one, a = field.constant(1, r), field.constant(A, r)
    half = field.product(r, r)
    t = field.total(half, half)
    d = field.total(t, one)
    inner = field.difference(
        field.product(field.constant(A * A, r), t),
        field.product(d, d),
    )
    on_curve = field.is_square(field.product(field.product(a, d), inner), count)
    numerator = field.product(field.constant(-A, r), field.select(on_curve, one, t))
    return field.to_bytes(field.product(numerator, field.inverse(d)), count)


def is_on_curve(points: bytes) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return whether the curve has a point with each of these first coordinates, 32 bytes below p.

    >>> is_on_curve((9).to_bytes(32, "little") + (2).to_bytes(32, "little")).tolist()
    [True, False]
    """
    count = len(points) // 32
    u = field.from_bytes(points)
    inner = field.total(
        field.product(u, u),
        field.product(field.constant(A, u), u),
    )
    inner = field.total(inner, field.constant(1, u))
    return field.is_square(field.product(u, inner), count)
