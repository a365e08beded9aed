from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from scipy.stats import kendalltau

import opboost as op
from opboost.randomness.streams import SeededRng

columns = st.lists(st.integers(0, 6), min_size=2, max_size=25)


def brute(r, s, normalise, ranks):
    """Compute the definition, pair by pair."""
    r, s = np.asarray(r), np.asarray(s)
    if ranks == "dense":
        place = np.unique(r, return_inverse=True)[1].astype(float)
    else:
        ordered = np.sort(r)
        place = np.array([np.flatnonzero(ordered == v).mean() for v in r])

    def product(a, b):
        return sum(
            np.sign(a[i] - a[j]) * np.sign(b[i] - b[j]) * abs(place[i] - place[j])
            for i in range(len(a))
            for j in range(i)
        )

    if normalise == "reference":
        return product(r, s) / product(r, r) if product(r, r) else math.nan
    bottom = math.sqrt(product(r, r) * product(s, s))
    return product(r, s) / bottom if bottom else math.nan


@given(
    columns,
    st.data(),
    st.sampled_from(["paper", "reference"]),
    st.sampled_from(["average", "dense"]),
)
def test_it_equals_the_definition_ties_included(r, data, normalise, ranks):
    s = data.draw(st.lists(st.integers(0, 6), min_size=len(r), max_size=len(r)))
    got = op.weighted_kendall(r, s, normalise=normalise, ranks=ranks)
    assert got == pytest.approx(brute(r, s, normalise, ranks), abs=1e-12, nan_ok=True)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40, unique=True))
def test_it_is_one_iff_the_order_is_kept(r):
    assert op.weighted_kendall(r, r) == pytest.approx(1)
    assert op.weighted_kendall(r, [-v for v in r]) == pytest.approx(-1)


def test_weights_make_far_pairs_count_more_than_in_plain_kendall():
    r = np.arange(50)
    near, far = r.copy(), r.copy()
    near[[10, 11]] = near[[11, 10]]
    far[[0, 49]] = far[[49, 0]]
    assert (
        kendalltau(r, near).statistic > op.weighted_kendall(r, far) < op.weighted_kendall(r, near)
    )
    assert 1 - op.weighted_kendall(r, near) < (1 - kendalltau(r, near).statistic) / 5


def test_a_mechanisms_expected_value_is_met_on_a_large_sample():
    """Errata 3: .582 for Global-map and .848 for Clamp-map at ε = .64 on ten even cells."""
    x = np.repeat(np.arange(1, 11), 20_000)
    for kind, expected in ((op.GlobalMap, 0.582), (op.ClampMap, 0.848)):
        y = kind(op.Domain(1, 10), 0.64).sample(x, rng=SeededRng(1))
        assert op.weighted_kendall(x, y) == pytest.approx(expected, abs=0.006)


@pytest.mark.parametrize(
    ("r", "s", "words"),
    [
        ([1, 2], [1, 2, 3], "differ in length: 2 and 3"),
        ([1], [1], "at least two rows"),
        ([1.0, math.nan], [1, 2], "r holds NaN"),
        ([1, 2], ["a", "b"], "s must be one column of numbers"),
        ([[1, 2]], [1, 2], "r must be one column"),
    ],
)
def test_bad_columns_are_refused(r, s, words):
    with pytest.raises(op.DataError, match=words):
        op.weighted_kendall(r, s)


def test_unknown_variants_are_refused():
    with pytest.raises(op.ParameterError, match="'paper' or 'reference'"):
        op.weighted_kendall([1, 2], [1, 2], normalise="other")
    with pytest.raises(op.ParameterError, match="'average' or 'dense'"):
        op.weighted_kendall([1, 2], [1, 2], ranks="min")


@given(columns, st.data(), st.lists(st.tuples(st.integers(-1, 7), st.integers(-1, 7)), min_size=1))
def test_range_queries_equal_counting(values, data, pairs):
    noisy = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=30))
    queries = np.sort(np.array(pairs), axis=1)

    def share(column, low, high):
        return sum(low <= v <= high for v in column) / len(column)

    expected = np.mean([(share(values, a, b) - share(noisy, a, b)) ** 2 for a, b in queries])
    assert op.range_query_mse(values, noisy, queries) == pytest.approx(expected)


def test_bad_queries_are_refused_and_random_ones_fit_the_grid():
    with pytest.raises(op.DataError, match=r"shape \(n, 2\)"):
        op.range_query_mse([1], [1], [1, 2])
    with pytest.raises(op.DataError, match="end before it begins"):
        op.range_query_mse([1], [1], [[2, 1]])
    with pytest.raises(op.DataError, match="without rows"):
        op.range_query_mse([], [1], [[1, 2]])
    queries = op.random_queries(op.Domain(1, 1024), 5000, SeededRng(1))
    assert queries.min() >= 1
    assert queries.max() <= 1024
    assert (queries[:, 0] <= queries[:, 1]).all()
