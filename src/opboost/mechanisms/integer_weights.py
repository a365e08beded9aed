"""Weights for the tables of small grids, as integers that :func:`rounded_rows` then scales."""

from __future__ import annotations

import math
from fractions import Fraction

from opboost.distributions import IntegerTable, rounded_rows
from opboost.grid import Domain
from opboost.randomness.exact import Decay

Rows = list[list[int]]


def table(domain: Domain, rows: Rows, levels: float, smallest: float) -> IntegerTable:
    """Return the table of these rows, wide enough to keep a promise of ``smallest`` per step.

    Even the smallest weight keeps 64 bits, plus 40 for the slack of the rate, 8 for the number of
    cells, and ``log2(1 / smallest)`` if that is positive.  ``levels`` is the promise across the
    whole grid: the width never falls below ``levels / ln 2 + 64``.
    """
    guard = 64 + 40 + 8 + max(0, math.ceil(-math.log2(smallest)))
    weights, bits = rounded_rows(rows, guard, math.ceil(levels * 1.4427) + 64)
    return IntegerTable(domain, domain, weights, bits)


def scale_bits(rate: float, span: int) -> int:
    """Return the fixed-point bits that hold ``e**(-rate·span)`` with 256 bits to spare."""
    return math.ceil(rate * span * 1.4427) + 256


def powers(rate: Fraction, count: int, bits: int) -> list[int]:
    """Return ``q**d * 2**bits`` for d below ``count``, each at most one too small."""
    decay = Decay.of_rate(rate)
    return [decay.power(d, bits)[0] for d in range(count)]


def two_sided_rows(cells: int, falling: list[int]) -> Rows:
    """Return the rows of ``q**|x−y|``."""
    return [[falling[abs(x - y)] for y in range(cells)] for x in range(cells)]
