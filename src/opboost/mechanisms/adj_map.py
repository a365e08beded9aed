"""Adj-map: Global-map over runs of cells, then Global-map inside the run that was drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from opboost.distributions import CellRuns, Distribution
from opboost.errors import ParameterError
from opboost.grid import Domain, Partition, checked_domain
from opboost.mechanisms.integer_weights import Rows, powers, scale_bits, table
from opboost.mechanisms.mechanism import Mechanism, fits_table
from opboost.mechanisms.order_kept import two_sided_bound, two_sided_printed
from opboost.promises import PartitionDLDP, checked_epsilon
from opboost.randomness.exact import Decay


@dataclass(frozen=True, slots=True, init=False)
class AdjMap(Mechanism):
    """A partition-dLDP mechanism: the bound counts borders between two values and their distance.

    Give either ``eps_prt`` and ``eps_ner``, or the paper's calibration ``epsilon`` and ``alpha``::

        eps_ner = epsilon / (alpha + theta / cells)
        eps_prt = alpha * theta * eps_ner

    The calibration makes Adj-map *resemble* Global-map at ``alpha=1``.  It does **not** make it
    epsilon-dLDP: close pairs on two sides of a border have a larger loss (docs/errata.md).  The
    promise is :class:`PartitionDLDP`, never "epsilon".

    ``theta`` is the width of the runs, counted from the lower end of the grid (the last may be
    shorter), or a tuple of the cells that start a new run.  With a tuple, only ``eps_prt`` and
    ``eps_ner`` are accepted.

    Proof: docs/proofs/adj-map.md.

    >>> m = AdjMap(Domain(1, 10), epsilon=0.64, theta=5, alpha=2)
    >>> round(m.loss(5, 6), 6)  # twice the nominal epsilon
    1.28
    """

    domain: Domain
    eps_prt: float
    eps_ner: float
    theta: int | tuple[int, ...]
    calibration: tuple[float, float] | None

    def __init__(
        self,
        domain: Domain,
        epsilon: float | None = None,
        *,
        theta: int | tuple[int, ...],
        alpha: float | None = None,
        eps_prt: float | None = None,
        eps_ner: float | None = None,
    ) -> None:
        partition = Partition(checked_domain(domain), theta)
        if epsilon is not None:
            if eps_prt is not None or eps_ner is not None:
                raise ParameterError(
                    "AdjMap takes epsilon (with alpha) or eps_prt and eps_ner, not both."
                )
            if not isinstance(partition.theta, int):
                raise ParameterError(
                    "AdjMap with borders takes eps_prt and eps_ner: the calibration by epsilon "
                    "and alpha works only for runs of equal width. Write "
                    f"AdjMap({domain!r}, eps_prt=..., eps_ner=..., theta={theta!r})."
                )
            epsilon = checked_epsilon("epsilon", epsilon)
            alpha = checked_epsilon("alpha", 1.0 if alpha is None else alpha)
            eps_ner = epsilon / (alpha + partition.theta / domain.size)
            eps_prt = alpha * partition.theta * eps_ner
            calibration = (epsilon, alpha)
        elif eps_prt is None or eps_ner is None or alpha is not None:
            raise ParameterError(
                "AdjMap needs epsilon (and alpha, by default 1), or both eps_prt and eps_ner."
            )
        else:
            calibration = None
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "eps_prt", checked_epsilon("eps_prt", eps_prt))
        object.__setattr__(self, "eps_ner", checked_epsilon("eps_ner", eps_ner))
        object.__setattr__(self, "theta", partition.theta)
        object.__setattr__(self, "calibration", calibration)

    def __repr__(self) -> str:
        if self.calibration is not None:
            epsilon, alpha = self.calibration
            return (
                f"AdjMap({self.domain!r}, epsilon={epsilon!r}, theta={self.theta!r}, "
                f"alpha={alpha!r})"
            )
        return (
            f"AdjMap({self.domain!r}, eps_prt={self.eps_prt!r}, eps_ner={self.eps_ner!r}, "
            f"theta={self.theta!r})"
        )

    @property
    def partition(self) -> Partition:
        """The runs of cells."""
        return Partition(self.domain, self.theta)

    def guarantee(self) -> PartitionDLDP:
        """Return the bound ``borders · eps_prt + min(distance, widest − 1) · eps_ner``."""
        return PartitionDLDP(self.eps_prt, self.eps_ner, self.partition)

    def on(self, domain: Domain) -> AdjMap:
        """Return the same runs on another grid; a calibration is recomputed for it."""
        if self.calibration is not None:
            epsilon, alpha = self.calibration
            return AdjMap(domain, epsilon, theta=self.theta, alpha=alpha)
        return AdjMap(domain, eps_prt=self.eps_prt, eps_ner=self.eps_ner, theta=self.theta)

    def scaled(self, factor: float) -> AdjMap:
        """Return the same mechanism with both levels multiplied by ``factor``."""
        if self.calibration is not None:
            epsilon, alpha = self.calibration
            return AdjMap(self.domain, epsilon * factor, theta=self.theta, alpha=alpha)
        return AdjMap(
            self.domain,
            eps_prt=self.eps_prt * factor,
            eps_ner=self.eps_ner * factor,
            theta=self.theta,
        )

    def nominal_epsilon(self) -> float | None:
        """Return the calibration's epsilon; None if two levels were given."""
        return None if self.calibration is None else self.calibration[0]

    def landmarks(self) -> tuple[int, ...]:
        """Return the first two and the last two borders."""
        return self.partition.some_borders()

    def _gamma_bound(self, distance: int) -> float:
        """Return theorem randmaputi's bound without its invalid second term (docs/errata.md)."""
        partition = self.partition
        apart = distance // partition.widest
        return two_sided_bound(math.exp(-self.eps_prt / 2), apart, partition.count)

    def _gamma_as_printed(self, distance: int) -> float:
        """Return γ as in the paper's table: calibrated with R − L as the number of cells."""
        if self.calibration is None or not isinstance(self.theta, int):
            raise ParameterError("The paper prints γ only for Adj-map with epsilon and alpha.")
        epsilon, alpha = self.calibration
        eps_prt = alpha * self.theta * epsilon / (alpha + self.theta / self.domain.span)
        return two_sided_printed(math.exp(-eps_prt / 2), distance // self.theta)

    def _build_distribution(self) -> Distribution:
        whole = self.guarantee().total
        if not fits_table(self.domain.size, whole / self.domain.span):
            return CellRuns(
                self.partition,
                Decay.of_rate(Fraction(self.eps_prt) / 2),
                Decay.of_rate(Fraction(self.eps_ner) / 2),
                self.domain,
            )
        return table(self.domain, self._rows(whole), whole, min(self.eps_prt, self.eps_ner))

    def _rows(self, whole: float) -> Rows:
        """Return the product of both stages; inside a run, only x clamped to the run matters."""
        partition = self.partition
        bits = scale_bits(whole, 1)
        outer = powers(Fraction(self.eps_prt) / 2, partition.count, bits)
        inner = powers(Fraction(self.eps_ner) / 2, partition.widest, bits)
        rows = []
        for x in range(self.domain.L, self.domain.R + 1):
            row: list[int] = []
            here = partition.index(x)
            for j, (first, last) in enumerate(partition.runs()):
                nearest = min(max(x, first), last)
                weights = [inner[abs(nearest - y)] for y in range(first, last + 1)]
                total = sum(weights)
                row += [(outer[abs(here - j)] * w) // total for w in weights]
            rows.append(row)
        return rows
