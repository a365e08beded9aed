from __future__ import annotations

import math
from decimal import Context, Decimal
from fractions import Fraction

import hypothesis.strategies as st
from hypothesis import given

from opboost.randomness.exact import SLACK, Decay, exp_bounds, float_above, float_below, log_ratio

WIDE = Context(prec=400, Emin=-999999, Emax=999999)


@given(st.floats(-200, 200), st.integers(1, 500))
def test_exp_bounds_enclose_the_truth(x, bits):
    low, high = exp_bounds(Fraction(x), bits)
    truth = WIDE.multiply(WIDE.exp(Decimal(x)), WIDE.power(Decimal(2), Decimal(bits)))
    assert low <= truth <= high
    assert high - low <= 2


@given(st.integers(1, 10**30), st.integers(1, 10**30))
def test_log_ratio_is_never_below_the_truth(a, b):
    got = log_ratio(a, b)
    truth = Fraction(WIDE.subtract(WIDE.ln(Decimal(a)), WIDE.ln(Decimal(b))))
    tiny = Fraction(1, 10**80)
    assert truth - tiny <= got <= truth + Fraction(2, 10**60) + tiny


@given(st.fractions())
def test_floats_are_rounded_to_the_safe_side(value):
    below, above = float_below(value), float_above(value)
    assert Fraction(below) <= value <= Fraction(above)
    assert above <= math.nextafter(below, math.inf)


@given(st.floats(1e-6, 30))
def test_a_decay_is_no_faster_than_its_rate(rate):
    decay = Decay.of_rate(Fraction(rate))
    assert 0 < decay.rational() < 1
    assert decay.log() <= Fraction(rate)
    assert decay.log() >= Fraction(rate) * (1 - 2 * SLACK)
    assert decay.log_below() <= decay.log()


@given(st.floats(0.001, 5), st.integers(0, 300), st.integers(8, 300))
def test_power_bounds_enclose_the_truth(rate, n, bits):
    decay = Decay.of_rate(Fraction(rate))
    low, high = decay.power(n, bits)
    truth = decay.rational() ** n * 2**bits
    assert low <= truth <= high
    assert high - low <= 2
