"""The base class of mechanisms that have a grid and a single level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from opboost.grid import Domain, checked_domain
from opboost.mechanisms.mechanism import Mechanism
from opboost.promises import checked_epsilon


@dataclass(frozen=True, slots=True)
class OneLevel(Mechanism):
    """A mechanism given by a grid and one level."""

    domain: Domain
    epsilon: float

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))

    def on(self, domain: Domain) -> Self:
        """Return the same level on another grid."""
        return replace(self, domain=domain)

    def scaled(self, factor: float) -> Self:
        """Return the same mechanism with its level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)
