from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import opboost as op
from opboost.randomness.streams import SeededRng

NAMES = ["a", "b", "c", "d"]


@given(st.dictionaries(st.sampled_from(NAMES), st.floats(0.1, 10), min_size=1))
def test_shares_add_up_to_one(weights):
    names = list(weights)
    for budget in (op.Budget.even(), op.Budget.weighted(weights)):
        assert sum(budget.shares(names).values()) == pytest.approx(1)
    shares = op.Budget.weighted(weights).shares(names)
    assert shares[names[0]] / shares[names[-1]] == pytest.approx(
        weights[names[0]] / weights[names[-1]]
    )


@given(st.integers(1, 4), st.integers(0, 2**32))
def test_so_many_columns_of_each_row_are_drawn(k, seed):
    drawn = op.Budget.sampled(k).drawn(200, 4, SeededRng(seed))
    assert (drawn.sum(axis=1) == k).all()
    assert sum(op.Budget.sampled(k).shares(NAMES).values()) == pytest.approx(4 / k)


def test_columns_are_drawn_evenly_and_without_a_look_at_the_data():
    drawn = op.Budget.sampled(2).drawn(40_000, 4, SeededRng(1))
    assert np.abs(drawn.mean(axis=0) - 0.5).max() < 0.012
    pairs = [(drawn[:, i] & drawn[:, j]).mean() for i in range(4) for j in range(i)]
    assert np.abs(np.array(pairs) - 1 / 6).max() < 0.012


def test_a_split_record_spends_no_more_than_one_column_would():
    m = op.ClampMap(op.Domain(1, 10), 0.64)
    table = np.random.default_rng(0).uniform(0, 1, (50, 4))
    whole = op.Desensitizer(m, bounds=(0, 1)).fit(table).guarantee_
    for budget in (
        op.Budget.even(),
        op.Budget.weighted({0: 4, 1: 1, 2: 1, 3: 2}),
        op.Budget.sampled(2),
    ):
        split = op.Desensitizer(m, bounds=(0, 1), budget=budget).fit(table).guarantee_
        assert split.total == pytest.approx(m.guarantee().total)
        assert whole.total == pytest.approx(4 * split.total)


def test_unsampled_cells_are_missing_downstream():
    m = op.ClampMap(op.Domain(1, 10), 0.64)
    table = np.random.default_rng(0).uniform(0, 1, (300, 4))
    d = op.Desensitizer(m, bounds=(0, 1), budget=op.Budget.sampled(1))
    released = d.fit_transform(table)
    assert (np.isfinite(released).sum(axis=1) == 1).all()
    assert d.columns_[0].mechanism.epsilon == 0.64
    assert "sent for each row: 1 of the columns" in str(d.guarantee_)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: op.Budget({"a": 1}, 2), "not both"),
        (lambda: op.Budget.weighted({"a": 0}), "'a' must be above zero"),
        (lambda: op.Budget.sampled(0), "1 or more; got 0"),
        (lambda: op.Budget.sampled(True), "1 or more; got True"),
        (lambda: op.Budget.weighted({"a": "x"}), "'a' must be above zero; got 'x'"),
        (lambda: op.Budget.sampled(5).shares(NAMES), "4 private columns"),
        (lambda: op.Budget.weighted({"a": 1}).shares(NAMES), "'b' has no weight"),
    ],
)
def test_a_bad_budget_is_refused(make, words):
    with pytest.raises(op.ParameterError, match=words):
        make()
