"""Noise without a grid: discrete Laplace, and Adj-map whose runs go on for ever."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from opboost.domain import Domain, Partition
from opboost.errors import ParameterError
from opboost.exact import Decay
from opboost.guarantee import DLDP, PartitionDLDP, checked_epsilon
from opboost.laws import LaplaceLaw, Law, RunsLaw
from opboost.mechanisms.base import Mechanism

INPUTS = Domain(-(2**60), 2**60)
"""Integers that may come in."""

OUTPUTS = Domain(-(2**61), 2**61)
"""Outputs are clamped to these, which is post-processing and as good as never happens."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Mechanism):
    """``x + noise`` on all integers, ``P[noise = z]`` proportional to ``exp(−epsilon·|z|)``.

    epsilon-dLDP without declared bounds.  Proof: docs/proofs/clamp-map.md.

    >>> DiscreteLaplace(epsilon=0.5).guarantee().bound(10, 14)
    2.0
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """All integers that may come in."""
        return INPUTS

    def guarantee(self) -> DLDP:
        """epsilon-dLDP at any distance."""
        return DLDP(self.epsilon)

    def on(self, domain: Domain) -> DiscreteLaplace:
        """Refused: this mechanism has no grid."""
        raise ParameterError(
            "DiscreteLaplace has no grid. On a grid ClampMap has the same noise and promise."
        )

    def scaled(self, factor: float) -> DiscreteLaplace:
        """The level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)

    def _build_law(self) -> Law:
        return LaplaceLaw(OUTPUTS, Decay.of_rate(Fraction(self.epsilon)))


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
        """All integers that may come in."""
        return INPUTS

    def guarantee(self) -> PartitionDLDP:
        """``borders · eps_prt + min(distance, theta − 1) · eps_ner``."""
        return PartitionDLDP(self.eps_prt, self.eps_ner, Partition(None, self.theta))

    def on(self, domain: Domain) -> AdjLaplace:
        """Refused: this mechanism has no grid."""
        raise ParameterError("AdjLaplace has no grid. Use AdjMap on a grid.")

    def scaled(self, factor: float) -> AdjLaplace:
        """Both levels multiplied by ``factor``."""
        return replace(self, eps_prt=self.eps_prt * factor, eps_ner=self.eps_ner * factor)

    def _build_law(self) -> Law:
        return RunsLaw(
            Partition(None, self.theta),
            Decay.of_rate(Fraction(self.eps_prt)),
            Decay.of_rate(Fraction(self.eps_ner) / 2),
            OUTPUTS,
        )
