"""The piecewise mechanism on a grid, a baseline: a window of higher density around the value."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from opboost.distributions import Distribution, PiecewiseDensity
from opboost.errors import ParameterError
from opboost.grid import Domain
from opboost.mechanisms.integer_weights import table
from opboost.mechanisms.mechanism import fits_table
from opboost.mechanisms.one_level import OneLevel
from opboost.mechanisms.randomized_response import RATIO_BITS, ratio_below
from opboost.promises import LDP


@dataclass(frozen=True, slots=True)
class Piecewise(OneLevel):
    """The piecewise mechanism (Wang et al., ICDE 2019) on a grid.

    A point is drawn on a line that reaches beyond both ends of the grid, with higher density around
    the value, and rounded to the nearest cell.  ``clipped`` moves outputs beyond the grid to its
    ends; without it, outputs may lie far outside (at a small epsilon, very far).

    It is epsilon-LDP.  Proof: docs/proofs/baselines.md.

    >>> import opboost as op
    >>> op.Piecewise(op.Domain(1, 10), epsilon=0.08, clipped=False).outputs
    Domain(L=-220, R=231)
    """

    clipped: bool = True

    def __post_init__(self) -> None:
        OneLevel.__post_init__(self)
        distribution = self._distribution()
        reach = max(abs(self.domain.L), abs(self.domain.R)) + distribution.window
        if max(distribution.window * distribution.s, reach) >= 2**60:
            raise ParameterError(
                f"Piecewise at epsilon={self.epsilon!r} spreads {self.domain.size} cells beyond "
                "64 bits. Use a coarser grid or a larger epsilon."
            )

    @property
    def outputs(self) -> Domain:
        """The grid, or all cells that the line reaches."""
        return self._distribution().outputs

    def guarantee(self) -> LDP:
        """Return epsilon-LDP."""
        return LDP(self.epsilon)

    def _distribution(self) -> PiecewiseDensity:
        return PiecewiseDensity(self.domain, ratio_below(Fraction(self.epsilon) / 2), self.clipped)

    def _build_distribution(self) -> Distribution:
        distribution = self._distribution()
        if not (self.clipped and fits_table(self.domain.size, self.epsilon / self.domain.span)):
            return distribution
        cells = [int(v) for v in self.domain.values()]
        masses = [[distribution.exact_mass(x, y) for y in cells] for x in cells]
        common = (
            2 * (distribution.s.numerator**3) * (distribution.s.denominator**3) * self.domain.span
        )
        scale = common << (RATIO_BITS + 256)
        rows = [[int(mass * scale) for mass in row] for row in masses]
        return table(self.domain, rows, self.epsilon, self.epsilon)
