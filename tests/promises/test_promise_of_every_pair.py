"""The promise of every mechanism, checked exactly for every pair."""

from __future__ import annotations

import math

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import opboost as op
from opboost.distributions import (
    CellRuns,
    ClampedLaplace,
    KeepOrRedraw,
    PiecewiseDensity,
    TruncatedGeometric,
    Window,
)
from opboost.mechanisms import mechanism, window_map
from opboost.mechanisms.mechanism import distribution_of
from tests.support.checks import assert_promise_kept, assert_rows_sum_to_a_power_of_two
from tests.support.strategies import domains, levels, mechanisms


@given(mechanisms())
@settings(max_examples=150)
def test_every_pair_and_every_output_keeps_the_promise_in_integers(m):
    weights, bits = m.integer_table()
    assert_rows_sum_to_a_power_of_two(weights, bits)
    assert_promise_kept(weights.tolist(), m.guarantee(), m.domain.L)


@given(mechanisms())
@settings(max_examples=150)
def test_the_loss_never_exceeds_the_bound(m):
    g = m.guarantee()
    for x in range(m.domain.L - 2, m.domain.R + 3):  # beyond the grid as well
        for y in range(m.domain.L - 2, m.domain.R + 3):
            assert m.loss(x, y) <= g.bound(x, y)


@given(mechanisms())
def test_the_loss_is_the_worst_log_ratio_of_the_published_matrix(m):
    matrix = m.transition_matrix()
    for i, x in enumerate(m.domain.values().tolist()):
        for j, y in enumerate(m.domain.values().tolist()):
            one, other = matrix[i], matrix[j]
            both = (one > 0) & (other > 0)
            if ((one > 0) != (other > 0)).any():
                assert math.isinf(m.loss(x, y))
            else:
                worst = max(
                    abs(math.log(a / b)) for a, b in zip(one[both], other[both], strict=True)
                )
                assert m.loss(x, y) == pytest.approx(worst, abs=1e-9)


@given(mechanisms())
def test_exact_epsilon_is_the_worst_loss_a_unit_of_distance(m):
    cells = m.domain.values().tolist()
    worst = max(m.loss(x, y) / abs(x - y) for x in cells for y in cells if x != y)
    assert m.exact_epsilon() == pytest.approx(worst, rel=1e-12)


@given(mechanisms())
@settings(max_examples=40)
def test_a_certificate_covers_every_pair(m):
    certificate = m.certificate()
    assert certificate.covered
    assert certificate.pairs == m.domain.size * (m.domain.size - 1) // 2
    assert certificate.exact_epsilon == m.exact_epsilon()
    assert certificate.total == m.guarantee().total


@given(mechanisms())
def test_a_mechanism_is_a_value_that_its_repr_rebuilds(m):
    again = eval(repr(m), vars(op))
    assert again == m
    assert hash(again) == hash(m)
    assert distribution_of(again) is distribution_of(m)


@given(st.data())
@settings(max_examples=60)
def test_a_closed_form_agrees_with_the_table_of_the_same_mechanism(data):
    m = data.draw(mechanisms(data.draw(domains(smallest=3))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mechanism, "MAX_TABLE_CELLS", 1)
        patch.setattr(window_map, "MAX_TABLE_CELLS", 1)
        closed = m._build_distribution()
    table = distribution_of(m)
    assert isinstance(
        closed,
        TruncatedGeometric | ClampedLaplace | CellRuns | KeepOrRedraw | PiecewiseDensity | Window,
    )
    for x in m.domain.values().tolist():
        assert closed.mass(x) == pytest.approx(table.mass(x), abs=1e-12)
        for y in m.domain.values().tolist():
            assert closed.gain(x, y) == pytest.approx(table.gain(x, y), abs=1e-11)
    assert closed.step_loss() == pytest.approx(table.step_loss(), abs=1e-11)


LARGE = op.Domain(-(2**39), 2**39)


@st.composite
def large_mechanisms(draw):
    grid = draw(st.sampled_from([op.Domain(1, 300), op.Domain(0, 1023), LARGE]))
    level = draw(levels)
    theta = draw(st.integers(1, 250))
    return draw(
        st.sampled_from(
            [
                op.GlobalMap(grid, level),
                op.ClampMap(grid, level),
                op.LocalMap(grid, epsilon=level, theta=theta),
                op.AdjMap(grid, level, theta=theta, alpha=draw(st.floats(0.1, 10))),
                op.AdjMap(grid, eps_prt=level, eps_ner=draw(levels), theta=(5, 9, 290)),
                op.RandomizedResponse(grid, level),
                op.Piecewise(grid, level),
                op.Piecewise(grid, level, clipped=False),
                op.DiscreteLaplace(level),
                op.AdjLaplace(eps_prt=level, eps_ner=draw(levels), theta=theta),
            ]
        )
    )


@given(large_mechanisms(), st.data())
@settings(max_examples=200)
def test_closed_forms_keep_the_promise_on_grids_of_any_size(m, data):
    far = st.integers(m.domain.L, m.domain.R)
    x = data.draw(far)
    near = st.integers(max(x - 400, m.domain.L), min(x + 400, m.domain.R))
    y = data.draw(far | near)
    assert m.loss(x, y) == m.loss(y, x) <= m.guarantee().bound(x, y)
    if not isinstance(m, op.Piecewise) or m.domain.size > 4096:
        step = m.exact_epsilon()
        assert m.loss(x, y) <= step * max(abs(x - y), 1) * (1 + 1e-12)


@given(large_mechanisms())
@settings(max_examples=30)
def test_certificates_of_large_grids_cover(m):
    assert m.certificate().covered


def test_large_grids_refuse_what_needs_a_matrix():
    m = op.GlobalMap(LARGE, 0.5)
    with pytest.raises(op.ParameterError, match=r"at most 4096 cells.*any size"):
        m.transition_matrix()
    with pytest.raises(op.ParameterError, match="at most 4096"):
        m.pmf(0)
    with pytest.raises(op.ParameterError, match="closed form"):
        m.integer_table()
    assert op.GlobalMap(op.Domain(1, 1024), 0.5).transition_matrix().shape == (1024, 1024)


@pytest.mark.parametrize("epsilon", [0.08, 1.28, 3.0])
@pytest.mark.parametrize("cells", [100, 256])
def test_tables_of_real_size_keep_the_promise(epsilon, cells):
    for m in (
        op.ClampMap(op.Domain(1, cells), epsilon),
        op.GlobalMap(op.Domain(1, cells), epsilon),
    ):
        weights, bits = m.integer_table()
        assert bits >= epsilon * m.domain.span / math.log(2) + 64  # errata 26
        assert weights.min() > 0  # no cell is impossible, which would be an infinite loss
        rows = weights.tolist()
        steps = op.DLDP(epsilon, m.domain)
        for x in range(cells - 1):  # the bounds of neighbours add up to those of all pairs
            assert_promise_kept(rows[x : x + 2], steps, 1)


def test_adj_map_takes_one_calibration_or_the_other():
    grid = op.Domain(1, 10)
    with pytest.raises(op.ParameterError, match="not both"):
        op.AdjMap(grid, 0.64, theta=2, eps_prt=1.0)
    with pytest.raises(op.ParameterError, match="both eps_prt and eps_ner"):
        op.AdjMap(grid, theta=2, eps_prt=1.0)
    with pytest.raises(op.ParameterError, match=r"borders.*eps_prt=\.\.\."):
        op.AdjMap(grid, 0.64, theta=(4, 8))
    m = op.AdjMap(grid, 0.64, theta=2, alpha=5)
    assert m.eps_ner == 0.64 / (5 + 2 / 10)
    assert m.eps_prt == 5 * 2 * m.eps_ner
