"""Local-map: Global-map inside the run of cells that a value lies in."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from opboost.distributions import CellRuns, Distribution
from opboost.grid import Domain, Partition, checked_domain
from opboost.mechanisms.integer_weights import powers, scale_bits, table
from opboost.mechanisms.mechanism import Mechanism, fits_table
from opboost.mechanisms.order_kept import two_sided_bound
from opboost.promises import LocalDLDP, checked_epsilon
from opboost.randomness.exact import Decay


@dataclass(frozen=True, slots=True, kw_only=True, init=False)
class LocalMap(Mechanism):
    """epsilon-dLDP inside a run of the partition; **which run a value lies in is revealed**.

    ``theta`` is the width of the runs, counted from the lower end of the grid (the last may be
    shorter), or a tuple of the cells that start a new run.

    Proof: docs/proofs/local-map.md.

    >>> m = LocalMap(Domain(1, 10), epsilon=0.64, theta=5)
    >>> m.loss(1, 2) < 0.64, m.loss(5, 6)
    (True, inf)
    """

    domain: Domain
    epsilon: float
    theta: int | tuple[int, ...]

    def __init__(self, domain: Domain, *, epsilon: float, theta: int | tuple[int, ...]) -> None:
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", epsilon))
        object.__setattr__(self, "theta", Partition(checked_domain(domain), theta).theta)

    def __repr__(self) -> str:
        return f"LocalMap({self.domain!r}, epsilon={self.epsilon!r}, theta={self.theta!r})"

    @property
    def partition(self) -> Partition:
        """The runs of cells."""
        return Partition(self.domain, self.theta)

    def guarantee(self) -> LocalDLDP:
        """Return epsilon-dLDP inside a run, with no bound across runs."""
        return LocalDLDP(self.epsilon, self.partition)

    def on(self, domain: Domain) -> LocalMap:
        """Return the same level and runs on another grid."""
        return replace(self, domain=domain)

    def scaled(self, factor: float) -> LocalMap:
        """Return the same mechanism with its level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)

    def landmarks(self) -> tuple[int, ...]:
        """Return the first two and the last two borders."""
        return self.partition.some_borders()

    def _gamma_bound(self, distance: int) -> float:
        """Return the smallest bound over the runs that are wide enough for this distance."""
        widths = {last - first + 1 for first, last in self.partition.runs()}
        q = math.exp(-self.epsilon / 2)
        return min((two_sided_bound(q, distance, w) for w in widths if w > distance), default=1.0)

    def _gamma_as_printed(self, distance: int) -> float:
        """Return γ as in the paper's table: on the whole grid, at one less than the distance."""
        if distance >= self.partition.widest:
            return 1.0
        return two_sided_bound(math.exp(-self.epsilon / 2), distance - 1, self.domain.size)

    def _build_distribution(self) -> Distribution:
        partition, rate = self.partition, Fraction(self.epsilon) / 2
        if not fits_table(self.domain.size, self.epsilon):
            return CellRuns(partition, None, Decay.of_rate(rate), self.domain)
        span = partition.widest - 1
        falling = powers(rate, partition.widest, scale_bits(self.epsilon, span))
        rows = []
        for first, last in partition.runs():
            for x in range(first, last + 1):
                row = [0] * self.domain.size
                for y in range(first, last + 1):
                    row[y - self.domain.L] = falling[abs(x - y)]
                rows.append(row)
        return table(self.domain, rows, self.epsilon * span, self.epsilon)
