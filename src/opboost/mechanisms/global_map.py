"""Global-map: the exponential mechanism on distance (the paper's algorithm 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from opboost.distributions import Distribution, TruncatedGeometric
from opboost.mechanisms.integer_weights import powers, scale_bits, table, two_sided_rows
from opboost.mechanisms.mechanism import fits_table
from opboost.mechanisms.one_level import OneLevel
from opboost.mechanisms.order_kept import two_sided_bound
from opboost.promises import DLDP
from opboost.randomness.exact import Decay


@dataclass(frozen=True, slots=True)
class GlobalMap(OneLevel):
    """``P[y | x]`` proportional to ``exp(−epsilon/2 · |x−y|)``: epsilon-dLDP.

    This is the distribution of discrete Laplace noise of scale 2/epsilon, resampled until it falls
    on the grid.  Its exact level lies between half of the promise and all of it; :class:`ClampMap`
    uses all of it.

    Cost: one word per value on small grids, two to six on large ones.
    Proof: docs/proofs/global-map.md.

    >>> import opboost as op
    >>> m = op.GlobalMap(op.Domain(1, 10), epsilon=0.64)
    >>> m.loss(3, 5) <= m.guarantee().bound(3, 5)
    True
    """

    def guarantee(self) -> DLDP:
        """Return epsilon-dLDP."""
        return DLDP(self.epsilon, self.domain)

    def _gamma_bound(self, distance: int) -> float:
        return two_sided_bound(math.exp(-self.epsilon / 2), distance, self.domain.size)

    def _gamma_as_printed(self, distance: int) -> float:
        return self._gamma_bound(distance)

    def _build_distribution(self) -> Distribution:
        cells, span = self.domain.size, self.domain.span
        rate = Fraction(self.epsilon) / 2
        if not fits_table(cells, self.epsilon):
            return TruncatedGeometric(self.domain, Decay.of_rate(rate))
        falling = powers(rate, cells, scale_bits(self.epsilon, span))
        return table(self.domain, two_sided_rows(cells, falling), self.epsilon * span, self.epsilon)
