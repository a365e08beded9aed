"""The promise beside the exact loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from opboost.domain import Domain

if TYPE_CHECKING:
    from opboost.mechanisms.base import Mechanism

ALL_PAIRS = 256
"""Up to this many cells every pair is checked; beyond, the pairs named in ``Certificate``."""


@dataclass(frozen=True, slots=True)
class DistanceLine:
    """The worst pair at one distance: the pair whose loss comes closest to its bound."""

    distance: int
    x: int
    y: int
    loss: float
    bound: float


@dataclass(frozen=True, slots=True)
class Certificate:
    """What a mechanism promises and what it does, computed exactly.

    On grids up to 256 cells ``lines`` rest on every pair; on larger ones on the pairs at each power
    of two from both ends and from the middle, beside the proof of the closed form.

    >>> import opboost as op
    >>> c = op.GlobalMap(op.Domain(1, 10), epsilon=0.08).certificate()
    >>> c.covered, round(c.exact_epsilon / 0.08, 2)
    (True, 0.89)
    """

    mechanism: Mechanism
    promise: str
    total: float
    exact_epsilon: float
    lines: tuple[DistanceLine, ...]
    pairs: int

    @property
    def covered(self) -> bool:
        """Whether every loss that was computed stays within its bound."""
        return all(line.loss <= line.bound for line in self.lines)

    @classmethod
    def of(cls, mechanism: Mechanism) -> Certificate:
        """Compute the certificate of a mechanism.  Cost: O(cells³) on small grids."""
        guarantee = mechanism.guarantee()
        lines, pairs = [], 0
        for distance, starts in _pairs(mechanism.domain):
            worst: DistanceLine | None = None
            for x in starts:
                y = x + distance
                line = DistanceLine(distance, x, y, mechanism.loss(x, y), guarantee.bound(x, y))
                pairs += 1
                if worst is None or _slack(line) < _slack(worst):
                    worst = line
            if worst is not None:
                lines.append(worst)
        return cls(
            mechanism,
            str(guarantee),
            guarantee.total,
            mechanism.exact_epsilon(),
            tuple(lines),
            pairs,
        )


def _slack(line: DistanceLine) -> float:
    if line.bound == line.loss:
        return 0.0
    return line.bound - line.loss


def _pairs(domain: Domain) -> list[tuple[int, list[int]]]:
    """Each distance with the lower ends of its pairs."""
    if domain.size <= ALL_PAIRS:
        return [(t, list(range(domain.L, domain.R - t + 1))) for t in range(1, domain.size)]
    found = []
    for k in range(domain.span.bit_length()):
        t = 1 << k
        middle = domain.L + (domain.span - t) // 2
        starts = {domain.L, domain.L + 1, middle, domain.R - t - 1, domain.R - t}
        found.append((t, sorted(s for s in starts if domain.L <= s <= domain.R - t)))
    return found
