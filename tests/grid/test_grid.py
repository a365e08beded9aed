from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given

import opboost as op
from tests.support.strategies import domains, thetas

numbers = st.floats(-1e6, 1e6, allow_nan=False)


@st.composite
def mappings(draw):
    domain = draw(domains())
    lower = draw(numbers)
    upper = lower + draw(st.floats(1e-3, 1e6))
    scale = draw(st.sampled_from(["linear", "log", "points"]))
    kind = "cells" if scale == "points" else draw(st.sampled_from(["cells", "paper"]))
    if scale == "log":
        lower, upper = abs(lower) + 0.01, abs(lower) + 0.01 + (upper - lower)
    if scale == "points":
        shares = st.floats(0.001, 0.999)
        many = domain.size - 1
        cuts = sorted(draw(st.sets(shares, min_size=many, max_size=many)))
        points = tuple(lower + (upper - lower) * c for c in cuts)
        edges = (lower, *points, upper)
        assume(all(a < b for a, b in pairwise(edges)))
        return op.NumericMapping(domain, (lower, upper), points)
    return op.NumericMapping(domain, (lower, upper), scale, kind)


@given(mappings(), st.lists(st.floats(-0.2, 1.2), min_size=1, max_size=30))
def test_a_value_is_in_the_interval_of_its_cell_and_in_no_other(mapping, shares):
    lower, upper = mapping.bounds
    values = np.array([lower + (upper - lower) * s for s in shares])
    for value, cell in zip(values, mapping.to_grid(values).tolist(), strict=True):
        inside = min(max(value, lower), upper)
        for other in mapping.domain.values().tolist():
            left, right = mapping.interval(other)
            if mapping.mapping == "cells":
                last = other == mapping.domain.R
                holds = left <= inside < right or (last and inside == right)
            else:
                first = other == mapping.domain.L
                holds = left < inside <= right or (first and inside == left)
            assert holds == (cell == other)


@given(mappings())
def test_a_cell_goes_to_raw_units_and_back(mapping):
    cells = mapping.domain.values()
    assert mapping.to_grid(mapping.to_raw(cells)).tolist() == cells.tolist()


@given(domains(), st.integers(-1000, 1000), st.integers(1, 1000), st.fractions(0, 1))
def test_the_papers_mapping_is_its_printed_formula(domain, lower, width, share):
    value = float(lower + width * share)
    exact = domain.L + (Fraction(value) - lower) / width * domain.span
    assume(abs(exact - round(exact)) > Fraction(1, 10**9) or exact.denominator == 1)
    mapping = op.NumericMapping(domain, (lower, lower + width), mapping="paper")
    assert int(mapping.to_grid([value])[0]) == math.ceil(exact)


def test_the_papers_mapping_wastes_its_first_cell_and_true_cells_do_not():
    values = np.random.default_rng(0).uniform(0, 1, 100_000)
    grid = op.Domain(1, 10)
    paper = op.NumericMapping(grid, (0, 1), mapping="paper").to_grid(values)
    cells = op.NumericMapping(grid, (0, 1)).to_grid(values)
    assert (paper == 1).sum() == 0
    assert abs((cells == 1).sum() - 10_000) < 500
    assert op.NumericMapping(grid, (0, 1), mapping="paper").to_grid([0.0])[0] == 1


def test_cells_have_equal_width_and_cover_the_bounds():
    mapping = op.NumericMapping(op.Domain(1, 10), (17, 90))
    intervals = [mapping.interval(g) for g in range(1, 11)]
    assert intervals[0][0] == 17
    assert intervals[-1][1] == 90
    widths = [b - a for a, b in intervals]
    assert max(widths) - min(widths) < 1e-12


def test_a_log_scale_makes_cells_of_equal_ratio():
    mapping = op.NumericMapping(op.Domain(1, 4), (1, 10_000), scale="log")
    assert [round(mapping.interval(g)[0], 9) for g in range(1, 5)] == [1, 10, 100, 1000]
    assert mapping.to_grid([1, 9.99, 10.01, 10_000]).tolist() == [1, 1, 2, 4]


def test_a_grid_of_2_to_the_40_cells_keeps_the_distribution():
    mapping = op.NumericMapping(op.Domain(0, 2**40 - 1), (0.0, 1000.0))
    values = np.random.default_rng(1).uniform(0, 1000, 1000)
    for value, cell in zip(values, mapping.to_grid(values).tolist(), strict=True):
        left, right = mapping.interval(cell)
        assert left <= value < right


def test_values_outside_take_the_end_cells_and_are_counted():
    mapping = op.NumericMapping(op.Domain(1, 10), (0, 1))
    assert mapping.to_grid([-5, 0.5, 7]).tolist() == [1, 6, 10]
    assert mapping.outside([-5, 0.5, 7]).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((5, 5),), ["lower < upper", "5.0"]),
        (((9, 2),), ["lower < upper", "(9.0, 2.0)"]),
        (((0, math.inf),), ["finite"]),
        (((math.nan, 1),), ["finite"]),
        ((("a", 1),), ["two numbers", "'a'"]),
        ((7,), ["two numbers", "7"]),
        (((-1, 5), "log"), ["above zero", "-1"]),
        (((1, 5), "cubic"), ["'linear', 'log'", "cubic"]),
        (((0, 1), (0.5,)), ["9 breakpoints", "got 1", "2 cells"]),
        (((0, 1), tuple([0.5] * 9)), ["increase strictly", "0.5"]),
        (((0, 1), tuple(range(9))), ["increase strictly"]),
        (((1e15, 1e15 + 0.25),), ["coarser grid"]),
        (((0, 1), "linear", "cell"), ["'cells' or 'paper'", "'cell'"]),
        (((0, 1), tuple(i / 10 for i in range(1, 10)), "paper"), ["no breakpoints"]),
    ],
)
def test_a_bad_mapping_is_refused_with_rule_and_value(arguments, words):
    with pytest.raises(op.ParameterError) as error:
        op.NumericMapping(op.Domain(1, 10), *arguments)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ((1, 1), ["L < R", "L=1, R=1"]),
        ((5, 2), ["L < R"]),
        ((1.5, 3), ["integer", "1.5"]),
        ((0, 2**63), ["2**61"]),
    ],
)
def test_a_bad_grid_is_refused(ends, words):
    with pytest.raises(op.ParameterError) as error:
        op.Domain(*ends)
    for word in words:
        assert word in str(error.value)


def test_a_grid_picks_the_narrowest_type():
    assert op.Domain(1, 10).dtype() == np.uint8
    assert op.Domain(-5, 5).dtype() == np.int8
    assert op.Domain(1, 1024).dtype() == np.uint16
    assert op.Domain(0, 2**40).dtype() == np.int64
    assert op.Domain(-(2**40), 1).dtype() == np.int64


def test_the_way_back_survives_narrow_types():
    mapping = op.NumericMapping(op.Domain(-100, 100), (0, 1))
    assert mapping.to_raw(mapping.to_grid([0, 0.5, 1])) == pytest.approx(
        [0.0025, 0.5, 0.9975], abs=0.003
    )
    names = [f"c{i}" for i in range(200)]
    order = op.OrdinalMapping(op.Domain(-100, 99), op.Ordered(names))
    assert order.to_raw(order.to_grid(["c150", "c199"])) == ["c150", "c199"]


def test_ordered_categories_keep_their_order():
    order = op.OrdinalMapping(op.Domain(1, 3), op.Ordered(["low", "mid", "high"]))
    assert order.to_grid(["high", "low", "mid"]).tolist() == [3, 1, 2]
    assert order.to_raw([1, 2, 3, 9]) == ["low", "mid", "high", "high"]
    with pytest.raises(
        op.DataError, match=r"1 of 2 rows, first: 'huge' in row 1.*Declared are 'low'"
    ):
        order.to_grid(["low", "huge"])
    with pytest.raises(op.ParameterError, match="twice"):
        op.Ordered(["a", "b", "a"])
    with pytest.raises(op.ParameterError, match="at least two"):
        op.Ordered(["a"])
    with pytest.raises(op.ParameterError, match="not the text"):
        op.Ordered("abc")
    with pytest.raises(op.ParameterError, match="must be a list; got 5"):
        op.Ordered(5)
    with pytest.raises(op.ParameterError, match=r"text, a number or a date; got \[1\]"):
        op.Ordered([[1], [2]])
    assert op.Ordered(["a", float("nan")]).categories == ("a", None)
    with pytest.raises(op.ParameterError, match=r"Domain\(1, 3\)"):
        op.OrdinalMapping(op.Domain(1, 10), op.Ordered(["low", "mid", "high"]))


@given(st.data())
def test_a_partition_covers_the_grid_once_in_order(data):
    domain = data.draw(domains())
    partition = op.Partition(domain, data.draw(thetas(domain)))
    cells = [x for first, last in partition.runs() for x in range(first, last + 1)]
    assert cells == domain.values().tolist()
    index = [partition.index(x) for x in cells]
    assert index == sorted(index)
    assert partition.indices(np.array(cells)).tolist() == index
    first, last = partition.ends(np.array(index))
    assert all(f <= x <= e for f, x, e in zip(first, cells, last, strict=True))
    assert partition.widest == max(e - f + 1 for f, e in partition.runs())


@pytest.mark.parametrize(
    ("theta", "words"),
    [
        (0, ["between 1 and", "got 0"]),
        (11, ["1 and 10", "got 11"]),
        ((1,), ["2..10"]),
        ((5, 3), ["increase strictly"]),
        ((11,), ["2..10"]),
        (2.5, ["integer width"]),
        ("ab", ["tuple of borders"]),
        ((4.7,), ["tuple of borders"]),
    ],
)
def test_a_bad_partition_is_refused(theta, words):
    with pytest.raises(op.ParameterError) as error:
        op.Partition(op.Domain(1, 10), theta)
    for word in words:
        assert word in str(error.value)
