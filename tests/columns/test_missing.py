from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import opboost as op
from opboost.randomness.streams import SeededRng
from tests.support.checks import ScriptedRng, assert_samples_follow, counts_of
from tests.support.strategies import levels, mechanisms

TEN = op.Domain(1, 10)


def full_distribution(m):
    """Return the whole noise matrix; its inputs and outputs are "missing" and every cell."""
    lie, bits = m.integer_flag()
    lie = lie / 2**bits
    p = m.mechanism.transition_matrix()
    at = m.constant - m.mechanism.domain.L
    return np.vstack(
        [np.r_[1 - lie, lie * p[at]], np.column_stack([np.full(len(p), lie), (1 - lie) * p])]
    )


@given(mechanisms(), levels, st.data())
def test_the_loss_is_that_of_the_whole_channel_and_within_the_bound(m, eps_missing, data):
    constant = data.draw(st.integers(m.domain.L, m.domain.R))
    column = op.WithMissing(m, eps_missing, constant)
    distribution, g = full_distribution(column), column.guarantee()
    values = [None, *m.domain.values().tolist()]
    for i, x in enumerate(values):
        for j, y in enumerate(values):
            loss = column.loss(x, y)
            assert loss <= g.bound(x, y) <= g.total
            if ((distribution[i] > 0) != (distribution[j] > 0)).any():
                assert math.isinf(loss)
            else:
                both = distribution[i] > 0
                worst = np.abs(np.log(distribution[i][both] / distribution[j][both])).max()
                assert loss == pytest.approx(worst, abs=1e-9)


def test_reports_and_values_follow_the_distribution():
    m = op.WithMissing(op.ClampMap(TEN, 0.5), eps_missing=1.0, constant=5)
    distribution = full_distribution(m)
    for value, gone in [(1, True), (2, False)]:
        y, reported = m.sample(np.full(40_000, value), np.full(40_000, gone), SeededRng(4))
        counts = [reported.sum(), *counts_of(y[~reported], TEN)]
        assert_samples_follow(counts, distribution[0 if gone else value])


def test_a_reported_missing_row_carries_nothing_but_the_public_constant():
    m = op.WithMissing(op.ClampMap(TEN, 0.5), eps_missing=0.1, constant=5)
    y, reported = m.sample(np.full(1000, 9), np.zeros(1000, dtype=bool), SeededRng(1))
    assert reported.any()
    assert set(y[reported].tolist()) == {5}


def test_a_coin_on_the_threshold_takes_more_bits():
    m = op.WithMissing(op.ClampMap(TEN, 0.5), eps_missing=1.0, constant=5)
    lie, bits = m.integer_flag()
    rest = bits - 64
    low = lie & ((1 << rest) - 1)
    for more, expected in [(low - 1, True), (low, False)]:
        rng = ScriptedRng([[lie >> rest]], [more])
        assert m._lies(1, rng).tolist() == [expected]


def test_bad_parameters_are_refused():
    with pytest.raises(op.ParameterError, match=r"cell of 1\.\.10; got 11"):
        op.WithMissing(op.ClampMap(TEN, 0.5), 1.0, 11)
    with pytest.raises(op.ParameterError, match="eps_missing must"):
        op.WithMissing(op.ClampMap(TEN, 0.5), 0.0, 5)
    m = op.WithMissing(op.ClampMap(TEN, 0.5), 1.0, 5)
    with pytest.raises(op.DataError, match="the same length"):
        m.sample(np.ones(3, int), np.zeros(2, bool))
