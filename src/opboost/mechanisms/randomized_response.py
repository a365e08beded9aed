"""Randomised response on a grid, a baseline: keep the value, or draw any cell uniformly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from opboost.distributions import Distribution, KeepOrRedraw
from opboost.mechanisms.integer_weights import table
from opboost.mechanisms.mechanism import fits_table
from opboost.mechanisms.one_level import OneLevel
from opboost.mechanisms.order_kept import randomized_response_gamma
from opboost.promises import LDP
from opboost.randomness.exact import SLACK, exp_bounds

RATIO_BITS = 96


def ratio_below(level: Fraction) -> Fraction:
    """Return a fraction of at most ``e**level``, with the level lowered by ``SLACK``."""
    return Fraction(exp_bounds(level * (1 - SLACK), RATIO_BITS)[0], 1 << RATIO_BITS)


@dataclass(frozen=True, slots=True)
class RandomizedResponse(OneLevel):
    """Generalised randomised response: the value has weight ``e**epsilon``, any other cell 1.

    It is epsilon-LDP: every pair is protected alike, near or far, so little order survives.
    Proof: docs/proofs/baselines.md.

    >>> import opboost as op
    >>> op.RandomizedResponse(op.Domain(1, 4), epsilon=1.0).pmf(2).round(4).tolist()
    [0.1749, 0.4754, 0.1749, 0.1749]
    """

    def guarantee(self) -> LDP:
        """Return epsilon-LDP."""
        return LDP(self.epsilon)

    def _gamma_bound(self, distance: int) -> float:
        return randomized_response_gamma(math.exp(self.epsilon), distance, self.domain.size)

    def _gamma_as_printed(self, distance: int) -> float:
        """Return γ as in the paper's table: at one less than the distance."""
        return self._gamma_bound(distance - 1)

    def _build_distribution(self) -> Distribution:
        cells, ratio = self.domain.size, ratio_below(Fraction(self.epsilon))
        if not fits_table(cells, self.epsilon / self.domain.span):
            return KeepOrRedraw(self.domain, ratio)
        high, low = ratio.numerator, ratio.denominator
        rows = [[high if x == y else low for y in range(cells)] for x in range(cells)]
        return table(self.domain, rows, self.epsilon, self.epsilon)
