"""Discrete Laplace: noise without a grid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

from opboost.distributions import ClampedLaplace, Distribution
from opboost.errors import ParameterError
from opboost.grid import Domain
from opboost.mechanisms.mechanism import Mechanism
from opboost.promises import DLDP, checked_epsilon
from opboost.randomness.exact import Decay

INPUTS = Domain(-(2**60), 2**60)
"""The integers that are accepted as inputs."""

OUTPUTS = Domain(-(2**61), 2**61)
"""Outputs are clamped to this range, which is post-processing and practically never happens."""


@dataclass(frozen=True, slots=True)
class DiscreteLaplace(Mechanism):
    """``x + noise`` on all integers, with ``P[noise = z]`` proportional to ``exp(−epsilon·|z|)``.

    It is epsilon-dLDP without declared bounds.  Proof: docs/proofs/clamp-map.md.

    >>> DiscreteLaplace(epsilon=0.5).guarantee().bound(10, 14)
    2.0
    """

    epsilon: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))

    @property
    def domain(self) -> Domain:  # type: ignore[override]
        """The integers that are accepted as inputs."""
        return INPUTS

    @property
    def outputs(self) -> Domain:
        """The range of outputs, which are clamped to ±2**61."""
        return OUTPUTS

    def guarantee(self) -> DLDP:
        """Return epsilon-dLDP at any distance."""
        return DLDP(self.epsilon)

    def on(self, domain: Domain) -> DiscreteLaplace:
        """Refuse a grid: this mechanism has none."""
        raise ParameterError(
            "DiscreteLaplace has no grid. On a grid, ClampMap has the same noise and promise."
        )

    def scaled(self, factor: float) -> DiscreteLaplace:
        """Return the same mechanism with its level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)

    def _build_distribution(self) -> Distribution:
        return ClampedLaplace(OUTPUTS, Decay.of_rate(Fraction(self.epsilon)))
