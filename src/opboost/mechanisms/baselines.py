"""What others use on numbers, for comparison: randomised response and the piecewise mechanism."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from opboost.domain import Domain, checked_domain
from opboost.errors import ParameterError
from opboost.exact import SLACK, exp_bounds
from opboost.guarantee import LDP, checked_epsilon
from opboost.laws import KeepLaw, Law, PiecesLaw
from opboost.mechanisms.base import Mechanism, fits_table
from opboost.mechanisms.order import randomized_response_gamma
from opboost.mechanisms.rows import table

_RATIO_BITS = 96


def ratio_below(level: Fraction) -> Fraction:
    """A fraction that does not exceed ``e**level``, slowed by the slack of all rates."""
    return Fraction(exp_bounds(level * (1 - SLACK), _RATIO_BITS)[0], 1 << _RATIO_BITS)


@dataclass(frozen=True, slots=True)
class RandomizedResponse(Mechanism):
    """Generalised randomised response: the value with weight ``e**epsilon``, any other with 1.

    epsilon-LDP: every pair is protected alike, near or far, so little order survives.
    Proof: docs/proofs/baselines.md.

    >>> RandomizedResponse(Domain(1, 4), epsilon=1.0).pmf(2).round(4).tolist()
    [0.1749, 0.4754, 0.1749, 0.1749]
    """

    domain: Domain
    epsilon: float

    def __post_init__(self) -> None:
        checked_domain(self.domain)
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))

    def guarantee(self) -> LDP:
        """epsilon-LDP."""
        return LDP(self.epsilon)

    def on(self, domain: Domain) -> RandomizedResponse:
        """The same level on another grid."""
        return replace(self, domain=domain)

    def scaled(self, factor: float) -> RandomizedResponse:
        """The level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)

    def _gamma_bound(self, distance: int) -> float:
        return randomized_response_gamma(math.exp(self.epsilon), distance, self.domain.size)

    def _gamma_as_printed(self, distance: int) -> float:
        """As the paper's table has it: at one less than the distance."""
        return self._gamma_bound(distance - 1)

    def _build_law(self) -> Law:
        cells, ratio = self.domain.size, ratio_below(Fraction(self.epsilon))
        if not fits_table(cells, self.epsilon / self.domain.span):
            return KeepLaw(self.domain, ratio)
        high, low = ratio.numerator, ratio.denominator
        rows = [[high if x == y else low for y in range(cells)] for x in range(cells)]
        return table(self.domain, rows, self.epsilon, self.epsilon)


@dataclass(frozen=True, slots=True)
class Piecewise(Mechanism):
    """The piecewise mechanism (Wang et al., ICDE 2019) on a grid.

    A point is drawn on a line that reaches beyond both ends of the grid, more densely around the
    value, and rounded to the nearest cell.  ``clipped`` moves what falls beyond the grid to its
    ends; without it outputs may lie far outside (at a small epsilon, very far).

    epsilon-LDP.  Proof: docs/proofs/baselines.md.

    >>> Piecewise(Domain(1, 10), epsilon=0.08, clipped=False).outputs
    Domain(L=-220, R=231)
    """

    domain: Domain
    epsilon: float
    clipped: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))
        checked_domain(self.domain)
        law = self._law()
        reach = max(abs(self.domain.L), abs(self.domain.R)) + law.window
        if max(law.window * law.s, reach) >= 2**60:
            raise ParameterError(
                f"Piecewise at epsilon={self.epsilon!r} spreads {self.domain.size} cells beyond "
                "64 bits. Use a coarser grid or a larger epsilon."
            )

    def guarantee(self) -> LDP:
        """epsilon-LDP."""
        return LDP(self.epsilon)

    def on(self, domain: Domain) -> Piecewise:
        """The same level on another grid."""
        return replace(self, domain=domain)

    def scaled(self, factor: float) -> Piecewise:
        """The level multiplied by ``factor``."""
        return replace(self, epsilon=self.epsilon * factor)

    def _law(self) -> PiecesLaw:
        return PiecesLaw(self.domain, ratio_below(Fraction(self.epsilon) / 2), self.clipped)

    def _build_law(self) -> Law:
        law = self._law()
        if not (self.clipped and fits_table(self.domain.size, self.epsilon / self.domain.span)):
            return law
        cells = [int(v) for v in self.domain.values()]
        masses = [[law.exact_mass(x, y) for y in cells] for x in cells]
        common = 2 * (law.s.numerator**3) * (law.s.denominator**3) * self.domain.span
        scale = common << (_RATIO_BITS + 256)
        rows = [[int(mass * scale) for mass in row] for row in masses]
        return table(self.domain, rows, self.epsilon, self.epsilon)
