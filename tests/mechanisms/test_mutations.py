"""Break distributions on purpose: the suite's checks must catch each defect."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import opboost as op
from opboost.distributions import IntegerTable
from opboost.mechanisms.mechanism import distribution_of
from opboost.randomness.streams import SeededRng
from tests.support.checks import (
    assert_alias_table_is_the_distribution,
    assert_promise_kept,
    assert_rows_sum_to_a_power_of_two,
    assert_samples_follow,
    counts_of,
)

GRID = op.Domain(1, 10)
SOUND = [op.ClampMap(GRID, 0.64), op.GlobalMap(GRID, 0.64), op.AdjMap(GRID, 0.64, theta=2)]


def with_weights(distribution, weights):
    return IntegerTable(
        distribution.inputs, distribution.outputs, tuple(map(tuple, weights)), distribution.bits
    )


def run_all_checks(m, distribution):
    """Run the suite's checks of a mechanism on a distribution that may differ from its own."""
    assert_rows_sum_to_a_power_of_two(distribution.weights, distribution.bits)
    assert_promise_kept(distribution.weights, m.guarantee(), m.domain.L)
    assert_alias_table_is_the_distribution(distribution)
    for x in (1, 5):
        drawn = distribution.draw(np.full(40_000, x), SeededRng(x).open(), 0)
        assert_samples_follow(counts_of(drawn, distribution.outputs), distribution_of(m).mass(x))


@pytest.mark.parametrize("m", SOUND, ids=repr)
def test_a_sound_distribution_passes(m):
    run_all_checks(m, distribution_of(m))


@pytest.mark.parametrize("m", SOUND, ids=repr)
def test_a_swapped_row_is_caught(m):
    rows = list(distribution_of(m).weights)
    rows[0], rows[4] = rows[4], rows[0]
    with pytest.raises(AssertionError):
        run_all_checks(m, with_weights(distribution_of(m), rows))


@pytest.mark.parametrize("m", SOUND, ids=repr)
@pytest.mark.parametrize("step", [-1, 1])
def test_an_off_by_one_threshold_is_caught(m, step):
    distribution = distribution_of(m)
    share = 1 << (distribution.bits - distribution.alias.column_bits)
    thresholds = [list(row) for row in distribution.alias.thresholds]
    i, j = next(
        (i, j) for i, row in enumerate(thresholds) for j, t in enumerate(row) if 0 < t < share
    )
    thresholds[i][j] += step
    broken = with_weights(distribution, distribution.weights)
    alias = dataclasses.replace(broken.alias, thresholds=tuple(map(tuple, thresholds)))
    object.__setattr__(broken, "alias", alias)
    with pytest.raises(AssertionError):
        run_all_checks(m, broken)


@pytest.mark.parametrize("m", SOUND, ids=repr)
def test_an_off_by_one_packed_threshold_is_caught(m):
    distribution = distribution_of(m)
    broken = with_weights(distribution, distribution.weights)
    packed = broken.alias.packed.copy()
    packed[3] += np.uint64(1 << 16)
    object.__setattr__(broken, "alias", dataclasses.replace(broken.alias, packed=packed))
    with pytest.raises(AssertionError):
        run_all_checks(m, broken)


@pytest.mark.parametrize("m", SOUND, ids=repr)
def test_a_doubled_epsilon_is_caught(m):
    with pytest.raises(AssertionError):
        run_all_checks(m, distribution_of(m.scaled(2)))


def test_a_doubled_epsilon_is_caught_by_the_promise_alone():
    m = op.ClampMap(GRID, 0.64)
    with pytest.raises(AssertionError):
        assert_promise_kept(distribution_of(m.scaled(2)).weights, m.guarantee(), 1)
    with pytest.raises(AssertionError):  # and so is one part in a million
        assert_promise_kept(distribution_of(m.scaled(1 + 1e-6)).weights, m.guarantee(), 1)


def test_a_table_of_64_bits_would_be_caught():
    """Errata 26: at epsilon 1.28 on 100 cells it has cells of probability zero."""
    m = op.ClampMap(op.Domain(1, 100), 1.28)
    distribution = distribution_of(m)
    narrow = [[w >> (distribution.bits - 64) for w in row] for row in distribution.weights]
    assert min(map(min, narrow)) == 0
    with pytest.raises(AssertionError):
        assert_promise_kept(narrow[:2], m.guarantee(), 1)
