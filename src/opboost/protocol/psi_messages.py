"""Messages by which parties find their common rows, and prove that they know them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from opboost.protocol.message_rules import BYTES, INT, TEXT, arrow, check, check_job, check_party
from opboost.psi.curve_points import check_points, piece_count, piece_of

Step = Literal["label", "feature", "raised"]
"""The label party's points, the feature party's, or the label party's raised by its peer."""
MAX_POINTS = 30_000_000
"""The most rows that can be aligned: a bitmap of them must fit into one message."""


@dataclass(frozen=True, slots=True)
class PointsQuery:
    """A feature party's request for a piece of the label party's points."""

    job: str
    piece: int

    KIND: ClassVar = "points query"
    ARROW: ClassVar = arrow(job=TEXT, piece=INT)

    def __post_init__(self) -> None:
        check_job(self.job)
        check(self.piece >= 0, "Pieces are numbered from 0.")


@dataclass(frozen=True, slots=True)
class Points:
    """A piece of blinded IDs, in an order that only the holder of the IDs knows.

    ``tag`` identifies the sender's secret, so that pieces under two secrets are never mixed.
    """

    job: str
    step: Step
    tag: bytes
    total: int
    piece: int
    points: bytes

    KIND: ClassVar = "points"
    ARROW: ClassVar = arrow(job=TEXT, step=TEXT, tag=BYTES, total=INT, piece=INT, points=BYTES)

    def __post_init__(self) -> None:
        check_job(self.job)
        check(self.step in ("label", "feature", "raised"), "Points are of one of three steps.")
        check(len(self.tag) == 16, "A secret's tag has 16 bytes.")
        check(0 < self.total <= MAX_POINTS, "There are too few or too many points.")
        check(0 <= self.piece < piece_count(self.total), "A piece lies beyond the last point.")
        place = piece_of(self.piece, self.total)
        check_points(self.points, place.stop - place.start)


@dataclass(frozen=True, slots=True)
class Aligned:
    """Which of a feature party's points are common to all parties: a bitmap in their order.

    ``share`` is the label party's half of the proof that both know these rows: one blinded point.
    """

    job: str
    tag: bytes
    total: int
    count: int
    bitmap: bytes
    share: bytes

    KIND: ClassVar = "aligned"
    ARROW: ClassVar = arrow(job=TEXT, tag=BYTES, total=INT, count=INT, bitmap=BYTES, share=BYTES)

    def __post_init__(self) -> None:
        check_job(self.job)
        check_points(self.share, 1)
        check(0 < self.total <= MAX_POINTS, "There are too few or too many points.")
        check(len(self.bitmap) == -(-self.total // 8), "A bitmap has one bit per point.")
        ones = int.from_bytes(self.bitmap, "big").bit_count()
        spare = int.from_bytes(self.bitmap[-1:], "big") & ((1 << -self.total % 8) - 1)
        check(ones == self.count and not spare, "A bitmap must have as many ones as it says.")


@dataclass(frozen=True, slots=True)
class Claim:
    """A feature party's proof that it knows the common rows, with its share of the exchange."""

    party: str
    job: str
    rows: int
    share: bytes
    proof: bytes

    KIND: ClassVar = "claim"
    ARROW: ClassVar = arrow(party=TEXT, job=TEXT, rows=INT, share=BYTES, proof=BYTES)

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        check(self.rows > 0 and len(self.proof) == 32, "A claim has rows and a proof of 32 bytes.")
        check_points(self.share, 1)


@dataclass(frozen=True, slots=True)
class Proof:
    """The label party's proof that it knows the rows which it calls common."""

    job: str
    proof: bytes

    KIND: ClassVar = "proof"
    ARROW: ClassVar = arrow(job=TEXT, proof=BYTES)

    def __post_init__(self) -> None:
        check_job(self.job)
        check(len(self.proof) == 32, "A proof of rows has 32 bytes.")


@dataclass(frozen=True, slots=True)
class Rows:
    """The number of rows and the keyed digest of their IDs, compared before anything is drawn.

    It is sent only if rows are given; if they are aligned, both parties prove that they know them.
    """

    party: str
    job: str
    rows: int
    ids: bytes

    KIND: ClassVar = "rows"
    ARROW: ClassVar = arrow(party=TEXT, job=TEXT, rows=INT, ids=BYTES)

    def __post_init__(self) -> None:
        check_party(self.party)
        check_job(self.job)
        check(self.rows > 0 and len(self.ids) == 32, "A release has rows and their digest.")
