"""What mechanisms on a grid with a single level share: their fields and how these change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from opboost.grid import Domain, checked_domain
from opboost.mechanisms.mechanism import Mechanism
from opboost.promises import checked_epsilon


@dataclass(frozen=True, slots=True)
class OneLevel(Mechanism):
    """A mechanism that a grid and one level describe."""

    domain: Domain
    epsilon: float

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))

    def on(self, domain: Domain) -> Self:
        """The same level on another grid."""
        return replace(self, domain=domain)

    def scaled(self, factor: float) -> Self:
        """The level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)
