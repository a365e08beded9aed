"""A comparison of the promise with the exact loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opboost.grid import Domain

if TYPE_CHECKING:
    from opboost.mechanisms.mechanism import Mechanism

MAX_ALL_PAIRS_CELLS = 256
"""Up to this many cells, every pair is checked; on larger grids, a selection (see Certificate)."""


@dataclass(frozen=True, slots=True)
class DistanceLine:
    """The largest loss of a pair at one distance, and its bound; only pairs with a promise count.

    ``without_promise`` counts the pairs at this distance without a promise (``LocalMap`` across
    runs).  If no pair has one, loss and bound are infinite.
    """

    distance: int
    x: int
    y: int
    loss: float
    bound: float
    without_promise: int


@dataclass(frozen=True, slots=True)
class Certificate:
    """The promise of a mechanism and its exact loss.

    On grids up to 256 cells, every pair was compared with its bound.  On larger grids, the
    compared pairs are powers of two apart, at both ends, in the middle and across the first and
    last borders of runs; the proof of the closed form covers all others.

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
    violations: int

    @property
    def covered(self) -> bool:
        """Whether every computed loss stays within its bound."""
        return self.violations == 0

    @classmethod
    def of(cls, mechanism: Mechanism) -> Certificate:
        """Compute the certificate of a mechanism.  Cost: O(cells³) on small grids."""
        guarantee = mechanism.guarantee()
        lines, pairs, violations = [], 0, 0
        for distance, starts in _pairs(mechanism.domain, mechanism.landmarks()):
            worst = (-1.0, starts[0], math.inf)
            without = 0
            for x in starts:
                loss, bound = mechanism.loss(x, x + distance), guarantee.bound(x, x + distance)
                pairs += 1
                violations += loss > bound
                without += math.isinf(bound)
                if math.isfinite(bound) and loss > worst[0]:
                    worst = (loss, x, bound)
            loss, x, bound = worst
            lines.append(
                DistanceLine(
                    distance, x, x + distance, loss if loss >= 0 else math.inf, bound, without
                )
            )
        return cls(
            mechanism,
            str(guarantee),
            guarantee.total,
            mechanism.exact_epsilon(),
            tuple(lines),
            pairs,
            violations,
        )


def _pairs(domain: Domain, borders: Sequence[int]) -> list[tuple[int, list[int]]]:
    """Return each distance with the lower ends of its pairs."""
    if domain.size <= MAX_ALL_PAIRS_CELLS:
        return [(t, list(range(domain.L, domain.R - t + 1))) for t in range(1, domain.size)]
    found = []
    for k in range(domain.span.bit_length()):
        t = 1 << k
        middle = domain.L + (domain.span - t) // 2
        starts = {domain.L, domain.L + 1, middle, domain.R - t - 1, domain.R - t}
        for border in borders:
            starts |= {border - 1, border - t - 1, border - t, border - t + 1, border - t // 2}
        found.append((t, sorted(s for s in starts if domain.L <= s <= domain.R - t)))
    return found
