from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import opboost as op
from opboost.randomness.streams import SeededRng
from tests.support.checks import ScriptedRng, assert_samples_follow
from tests.support.strategies import levels

CITIES = ("north", "south", "east")


@given(levels, st.sampled_from(["oue", "sue"]))
def test_a_change_of_category_costs_no_more_than_epsilon(epsilon, kind):
    m = op.UnaryEncoding(CITIES, epsilon, kind)
    on, off, bits = m.integer_channel()
    assert 0 < off < on < 2**bits
    # Two bits change: the worst outcome sets the one and clears the other.
    worst = math.log(on / off) + math.log((2**bits - off) / (2**bits - on))
    assert m.loss("north", "east") == pytest.approx(worst, abs=1e-12)
    assert m.loss("north", "east") <= m.guarantee().bound("north", "east") == epsilon
    assert m.exact_epsilon() > epsilon * (1 - 1e-9)
    assert m.loss("north", "north") == 0


def test_the_channel_has_the_known_probabilities():
    oue = op.UnaryEncoding(CITIES, 1.0, "oue").bit_channel()
    assert oue == pytest.approx(np.array([[1 - 1 / (1 + math.e), 1 / (1 + math.e)], [0.5, 0.5]]))
    sue = op.UnaryEncoding(CITIES, 1.0, "sue").bit_channel()
    p = math.exp(0.5) / (1 + math.exp(0.5))
    assert sue == pytest.approx(np.array([[p, 1 - p], [1 - p, p]]))


@pytest.mark.parametrize("kind", ["oue", "sue"])
def test_bits_follow_the_channel_independently(kind):
    m = op.UnaryEncoding(CITIES, 0.7, kind)
    bits = m.sample(["south"] * 60_000, rng=SeededRng(3))
    assert bits.shape == (60_000, 3)
    assert bits.dtype == np.uint8
    channel = m.bit_channel()
    rows = [channel[0], channel[1], channel[0]]
    probabilities = [
        rows[0][a] * rows[1][b] * rows[2][c] for a in (0, 1) for b in (0, 1) for c in (0, 1)
    ]
    patterns = bits[:, 0] * 4 + bits[:, 1] * 2 + bits[:, 2]
    assert_samples_follow(np.bincount(patterns, minlength=8), probabilities)


def test_a_word_on_a_threshold_takes_more_bits():
    m = op.UnaryEncoding(CITIES, 0.7, "sue")
    on, off, bits = m.integer_channel()
    rest = bits - 64
    words = [[on >> rest], [off >> rest], [0]]
    low_on, low_off = on & ((1 << rest) - 1), off & ((1 << rest) - 1)
    below = m.sample(["north"], ScriptedRng(words, [low_on - 1, low_off - 1]))
    at = m.sample(["north"], ScriptedRng(words, [low_on, low_off]))
    assert below.tolist() == [[1, 1, 1]]
    assert at.tolist() == [[0, 0, 1]]


def test_an_undeclared_category_is_refused():
    with pytest.raises(op.DataError, match=r"1 of 2 rows, first: 'west' in row 1"):
        op.UnaryEncoding(CITIES, 1.0).sample(["north", "west"])
    with pytest.raises(op.ParameterError, match="'oue' or 'sue'"):
        op.UnaryEncoding(CITIES, 1.0, "rappor")


def test_it_is_a_value():
    m = op.UnaryEncoding(["a", "b"], epsilon=1.0)
    assert m == op.UnaryEncoding(("a", "b"), 1.0, "oue")
    assert eval(repr(m), vars(op)) == m
