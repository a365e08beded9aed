"""Points of Curve25519 as bytes: first coordinates, little-endian, below 2**255 - 19."""

from __future__ import annotations

from typing import Any

import numpy as np

from opboost.errors import WireError
from opboost.psi.hash_to_curve import is_on_curve

POINT_BYTES = 32
"""Bytes of a point, which is sent as its first coordinate only."""

PIECE_POINTS = 8192
"""The number of points that are processed, and sent, together."""

LOW_ORDER = (
    0,
    1,
    325606250916557431795983626356110631294008115727848805560023387167927233504,
    39382357235489614581723060781553021112529911719440698176882885853963445705823,
)
"""First coordinates of the points of order 1, 2, 4 and 8: every secret raises them to 0."""

Words = np.ndarray[Any, np.dtype[np.uint64]]
"""One row of four words per point, the lowest first."""

_TOP, _FULL = np.uint64(2**63 - 1), np.uint64(2**64 - 1)
_LAST = np.uint64(2**64 - 19)


def check_points(points: bytes, count: int) -> None:
    """Refuse bytes that are not the encoding of this many points.

    A number of p or more is refused, since it would be a second encoding of another point.
    """
    if len(points) != count * POINT_BYTES:
        raise WireError(f"A piece of {len(points):,} bytes does not hold {count:,} points.")
    words = words_of(points)
    above = (words[:, 1:] == (_FULL, _FULL, _TOP)).all(axis=1) & (words[:, 0] >= _LAST)
    if (above | (words[:, 3] > _TOP)).any():
        raise WireError("A point is not in its shortest form.")


def check_on_curve(points: bytes) -> None:
    """Refuse points that are not on the curve, and those of low order.

    A point of the curve's twist, or one that every secret raises to zero, is not a hashed ID.
    """
    words = words_of(points)
    low = np.zeros(len(words), np.bool_)
    for value in LOW_ORDER:
        low |= (words == words_of(value.to_bytes(POINT_BYTES, "little"))).all(axis=1)
    if low.any() or not is_on_curve(points).all():
        raise WireError("A point does not lie on the curve.")


def words_of(points: bytes) -> Words:
    """Return the words of each point."""
    return np.frombuffer(points, "<u8").reshape(-1, POINT_BYTES // 8)


def piece_of(number: int, total: int) -> slice:
    """Return which of ``total`` points a piece holds."""
    return slice(number * PIECE_POINTS, min(total, (number + 1) * PIECE_POINTS))


def piece_count(total: int) -> int:
    """Return how many pieces there are."""
    return -(-total // PIECE_POINTS)
