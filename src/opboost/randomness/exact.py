"""Arithmetic that never rounds in the unsafe direction.

Promises are compared with exact losses, so float rounding must not decide.  Everything here works
on integers: a real number ``r`` is represented by bounds ``low <= r * 2**bits <= high``.  Only the
final result becomes a float, rounded in the direction that is safe: a loss up, a bound down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction

SLACK = Fraction(1, 2**40)
"""The fraction by which a noise rate stays below the promised one.

Rounding a distribution to integers moves a log-ratio by less than this, so the promise stays exact.
"""


def _context(bits: int) -> Context:
    """Return a decimal context for ``bits`` binary digits and twenty more decimal ones."""
    return Context(prec=int(bits * 0.30103) + 20, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])


def exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with ``low <= e**x * 2**bits <= high``, at most two apart."""
    size = bits + max(0, int(float(x) * 1.5)) + 64
    ctx = _context(size)
    quotient = ctx.divide(Decimal(x.numerator), Decimal(x.denominator))
    scaled = ctx.multiply(ctx.exp(quotient), ctx.power(Decimal(2), Decimal(bits)))
    centre = int(scaled.to_integral_value(context=_context(size)))
    return max(0, centre - 1), centre + 1


def log_ratio(a: int, b: int) -> Fraction:
    """Return ``ln(a / b)``, never below the true value and at most 1e-59 above it."""
    if a == b:
        return Fraction(0)
    # Take ln of the quotient, so that a quotient near one loses no digits.
    ctx = _context(256)
    value = ctx.ln(ctx.divide(Decimal(a), Decimal(b)))
    return Fraction(value) + Fraction(1, 10**60)


def float_above(value: Fraction) -> float:
    """Return the smallest float that is not below ``value``."""
    return 0.0 - float_below(-value)


def float_below(value: Fraction) -> float:
    """Return the largest float that does not exceed ``value``."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    return near if Fraction(near) <= value else math.nextafter(near, -math.inf)


@dataclass(frozen=True, slots=True)
class Decay:
    """The factor ``q = numerator / 2**bits`` by which probabilities fall from cell to cell.

    ``e**-rate <= q < 1`` holds exactly, hence ``ln(1/q) <= rate``: probabilities fall no faster
    than the promise allows.
    """

    numerator: int
    bits: int

    @classmethod
    def of_rate(cls, rate: Fraction) -> Decay:
        """Return the decay for a promise of ``rate`` per cell, slowed by :data:`SLACK`."""
        slowed = rate * (1 - SLACK)
        bits = 128 + math.ceil(float(rate) * 1.4427)
        return cls(min(exp_bounds(-slowed, bits)[1], 2**bits - 1), bits)

    def power(self, n: int, bits: int) -> tuple[int, int]:
        """Return integers with ``low <= q**n * 2**bits <= high``, at most two apart.

        Cost: O(log n) products of ``bits + 2 * log2(n) + 16`` bits.
        """
        if n == 0:
            return 1 << bits, 1 << bits
        work = bits + 2 * n.bit_length() + 16
        low, high = _rescale(self.numerator, self.numerator, self.bits, work)
        base = (low, high)
        result: tuple[int, int] | None = None
        while True:
            if n & 1:
                result = base if result is None else _product(result, base, work)
            n >>= 1
            if not n:
                break
            base = _product(base, base, work)
        assert result is not None
        return _rescale(*result, work, bits)

    def log(self) -> Fraction:
        """Return ``ln(1/q)``, rounded up: the exact loss of one step."""
        return log_ratio(1 << self.bits, self.numerator)

    def log_below(self) -> Fraction:
        """Return ``ln(1/q)``, rounded down."""
        return -log_ratio(self.numerator, 1 << self.bits)

    def rational(self) -> Fraction:
        """Return the decay as an exact fraction."""
        return Fraction(self.numerator, 1 << self.bits)


def _rescale(low: int, high: int, have: int, want: int) -> tuple[int, int]:
    if want >= have:
        return low << (want - have), high << (want - have)
    shift = have - want
    return low >> shift, -(-high >> shift)


def _product(a: tuple[int, int], b: tuple[int, int], bits: int) -> tuple[int, int]:
    return (a[0] * b[0]) >> bits, -((-a[1] * b[1]) >> bits)


def quotient_bounds(top: tuple[int, int], bottom: tuple[int, int], bits: int) -> tuple[int, int]:
    """Return bounds on ``2**bits * top / bottom`` from equally scaled bounds on positive reals."""
    low = (max(top[0], 0) << bits) // bottom[1]
    high = -((-top[1] << bits) // max(bottom[0], 1))
    return low, min(high, 1 << bits)
