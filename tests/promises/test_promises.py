from __future__ import annotations

import math
from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import given

import opboost as op
from opboost.promises import Choice, Sum
from tests.support.strategies import domains, mechanisms

GRID = op.Domain(1, 10)


@given(mechanisms(), st.data())
def test_a_bound_is_a_distance_and_total_is_its_largest(m, data):
    g = m.guarantee()
    cells = st.integers(m.domain.L, m.domain.R)
    x, y, z = data.draw(cells), data.draw(cells), data.draw(cells)
    assert g.bound(x, x) == 0
    assert g.bound(x, y) == g.bound(y, x) <= g.reach(x) <= g.total
    assert g.bound(x, z) <= (g.bound(x, y) + g.bound(y, z)) * (1 + 1e-12)


def test_levels_of_one_attribute_add():
    assert op.DLDP(0.25, GRID) + op.DLDP(0.5, GRID) == op.DLDP(0.75, GRID)
    assert op.LDP(0.25) + op.LDP(0.5) == op.LDP(0.75)
    halves = op.Partition(GRID, 5)
    one, two = op.PartitionDLDP(1.0, 0.25, halves), op.PartitionDLDP(0.5, 0.25, halves)
    assert one + two == op.PartitionDLDP(1.5, 0.5, halves)
    assert op.LocalDLDP(0.25, halves) + op.LocalDLDP(0.5, halves) == op.LocalDLDP(0.75, halves)


@given(st.data())
def test_composition_of_one_attribute_adds_bounds_pair_by_pair(data):
    grid = data.draw(domains())
    parts = [data.draw(mechanisms(grid)).guarantee() for _ in range(3)]
    whole = parts[0] + parts[1] + parts[2]
    x = data.draw(st.integers(grid.L, grid.R))
    y = data.draw(st.integers(grid.L, grid.R))
    assert whole.bound(x, y) == pytest.approx(sum(p.bound(x, y) for p in parts))


def test_partitions_of_different_width_do_not_merge_into_one():
    one = op.PartitionDLDP(1.0, 0.1, op.Partition(GRID, 5))
    two = op.PartitionDLDP(1.0, 0.1, op.Partition(GRID, 2))
    both = one + two
    assert isinstance(both, Sum)
    assert both.bound(5, 6) == pytest.approx(one.bound(5, 6) + two.bound(5, 6))
    thrice = both + one
    assert isinstance(thrice, Sum)
    assert len(thrice.parts) == 2  # equal kinds are matched
    assert thrice.total == pytest.approx(both.total + one.total)


def test_attributes_compose_into_a_joint_with_its_own_distances():
    record = op.DLDP(0.64, GRID).on("age") + op.LDP(1.0).on("city")
    assert record.bound({"age": 2, "city": "a"}, {"age": 4, "city": "a"}) == 1.28
    assert record.bound({"age": 2, "city": "a"}, {"age": 4, "city": "b"}) == 2.28
    assert record.total == pytest.approx(9 * 0.64 + 1)
    again = record + op.DLDP(0.36, GRID).on("age")
    assert again.parts["age"] == op.DLDP(1.0, GRID)
    assert "one person's record: at most" in str(again)


def test_the_total_of_pen_digits_is_part_of_the_statement():
    record = op.DLDP(0.64, GRID).on("input1")
    for i in range(2, 17):
        record += op.DLDP(0.64, GRID).on(f"input{i}")
    assert round(record.total, 1) == 92.2  # errata 24


def test_a_few_columns_a_row_cost_the_largest_few_bounds():
    parts = {"a": op.LDP(1.0), "b": op.LDP(2.0), "c": op.LDP(4.0)}
    sampled = op.Joint(parts, columns_per_row=2)
    assert sampled.total == 6
    assert sampled.bound({"a": 1, "b": 1, "c": 1}, {"a": 0, "b": 0, "c": 1}) == 3
    of_parties = op.Joint(parts, choices=(Choice(1, ("a", "b")), Choice(1, ("c",))))
    assert of_parties.total == max(parts["a"].total, parts["b"].total) + parts["c"].total
    assert (sampled + sampled).total == 14  # two draws of columns may cover every column


def test_parties_that_sample_add_the_largest_few_bounds_of_each():
    parts = {"a": op.LDP(1.0), "b": op.LDP(2.0), "c": op.LDP(4.0), "d": op.LDP(8.0)}
    joint = op.Joint(parts, choices=(Choice(1, ("a", "b")), Choice(1, ("c",))))
    assert joint.total == 2 + 4 + 8
    zero, one = dict.fromkeys(parts, 0), {"a": 1, "b": 1, "c": 0, "d": 0}
    assert joint.bound(zero, one) == 2
    assert "sent for each row: 1 of a, b, chosen at random" in str(joint)
    assert (joint + joint).total == 30


def test_nothing_plus_something_is_nothing():
    none = op.NoGuarantee("seeded")
    record = op.LDP(1.0).on("age")
    assert record + none is none
    assert none + record is none
    for whole in (none + op.LDP(1.0), op.LDP(1.0) + none, (op.LDP(1.0) + op.DLDP(1.0)) + none):
        assert str(whole) == "none: seeded"
        assert math.isinf(whole.total)


def test_a_missing_value_costs_the_flag_and_the_way_from_the_constant():
    g = op.Flagged(op.DLDP(0.5, GRID), 1.0, 5)
    assert g.bound(None, 5) == 1.0
    assert g.bound(None, 9) == g.bound(9, None) == 3.0
    assert g.bound(2, 4) == 1.0
    assert g.bound(None, None) == 0
    assert g.total == 4.5  # across the grid; from missing to the far end it is 1 + 2.5
    assert op.Flagged(op.DLDP(0.5, GRID), 3.0, 1).total == 7.5


def test_a_release_that_knows_no_gaps_promises_nothing_about_them():
    both = op.Flagged(op.DLDP(0.5, GRID), 1.0, 5) + op.PartitionDLDP(1, 1, op.Partition(GRID, 2))
    assert math.isinf(both.bound(None, 3))
    assert both.bound(3, 4) > 0


def test_bounds_are_rounded_down():
    g = op.DLDP(0.1, op.Domain(0, 1000))
    for t in range(1, 1000):
        assert Fraction(g.bound(0, t)) <= t * Fraction(0.1)


@pytest.mark.parametrize("level", [0, -1, math.nan, math.inf, "much", None, 1e-12, 5000])
def test_a_bad_level_is_refused(level):
    with pytest.raises(op.ParameterError, match="epsilon must"):
        op.GlobalMap(GRID, level)
