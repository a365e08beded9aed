"""Adj-map without a grid: its runs continue without end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from opboost.distributions import CellRuns, Distribution
from opboost.errors import ParameterError
from opboost.grid import Domain, Partition
from opboost.mechanisms.discrete_laplace import INPUTS, OUTPUTS
from opboost.mechanisms.mechanism import Mechanism
from opboost.promises import PartitionDLDP, checked_epsilon
from opboost.randomness.exact import Decay


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjLaplace(Mechanism):
    """Adj-map without a grid: discrete Laplace noise on the run, Global-map inside it.

    Runs are ``theta`` cells wide and start at the multiples of ``theta``.
    Proof: docs/proofs/adj-map.md.

    >>> m = AdjLaplace(eps_prt=1.0, eps_ner=0.1, theta=10)
    >>> round(m.guarantee().bound(9, 10), 9), m.loss(9, 10) <= 1.1
    (1.1, True)
    """

    eps_prt: float
    eps_ner: float
    theta: int

    def __post_init__(self) -> None:
        for name in ("eps_prt", "eps_ner"):
            object.__setattr__(self, name, checked_epsilon(name, getattr(self, name)))
        Partition(None, self.theta)

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The integers that are accepted as inputs."""
        return INPUTS

    @property
    def outputs(self) -> Domain:
        """The range of outputs, which are clamped to ±2**61."""
        return OUTPUTS

    def guarantee(self) -> PartitionDLDP:
        """Return the bound ``borders · eps_prt + min(distance, theta − 1) · eps_ner``."""
        return PartitionDLDP(self.eps_prt, self.eps_ner, Partition(None, self.theta))

    def on(self, domain: Domain) -> AdjLaplace:
        """Refuse a grid: this mechanism has none."""
        raise ParameterError("AdjLaplace has no grid. Use AdjMap on a grid.")

    def scaled(self, factor: float) -> AdjLaplace:
        """Return the same mechanism with both levels multiplied by ``factor``."""
        return replace(self, eps_prt=self.eps_prt * factor, eps_ner=self.eps_ner * factor)

    def _build_distribution(self) -> Distribution:
        return CellRuns(
            Partition(None, self.theta),
            Decay.of_rate(Fraction(self.eps_prt)),
            Decay.of_rate(Fraction(self.eps_ner) / 2),
            OUTPUTS,
        )
