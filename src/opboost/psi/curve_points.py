"""Points of the curve as bytes."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import ec

from opboost.errors import WireError

POINT_BYTES = 33
"""Bytes of a point of the curve P-256: its sign, and its first coordinate."""

PIECE_POINTS = 8192
"""Points that are worked on, and travel, together."""


def check_points(points: bytes, count: int) -> None:
    """Refuse bytes that are not so many points by their form."""
    if len(points) != count * POINT_BYTES:
        raise WireError(f"A piece of {len(points):,} bytes does not hold {count:,} points.")
    if not set(points[::POINT_BYTES]) <= {2, 3}:
        raise WireError("A point is not in its compressed form.")


def check_on_curve(points: bytes) -> None:
    """Refuse points that the curve does not have."""
    curve = ec.SECP256R1()
    try:
        for start in range(0, len(points), POINT_BYTES):
            ec.EllipticCurvePublicKey.from_encoded_point(curve, points[start : start + POINT_BYTES])
    except ValueError:
        raise WireError("A point does not lie on the curve.") from None


def piece_of(number: int, total: int) -> slice:
    """Which of ``total`` points stand in a piece."""
    return slice(number * PIECE_POINTS, min(total, (number + 1) * PIECE_POINTS))


def piece_count(total: int) -> int:
    """How many pieces there are."""
    return -(-total // PIECE_POINTS)
