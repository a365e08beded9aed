"""The benchmark of scale: points are really played, and what is computed from them adds up."""

from __future__ import annotations

import pytest

from opboost.errors import OpBoostError
from opboost_lab.bench.scaling import Beside, Measured, OnPaper, growth, measure, played, points
from opboost_lab.bench.scaling_point import Point
from opboost_lab.bench.scaling_whole import Stage, Whole, limits


def made(rows, columns=10, axis="rows", a_value=2e-8, **more):
    values = rows * columns
    released = {"desensitise": values * a_value}
    trained = {"unpack and rewrite": values * 1e-8, "XGBoost": values * 20 * 3e-9}
    return Measured(axis, Point(rows, columns, **more), released, trained, values // 2, 1, 2, 0)


def test_a_point_is_played_by_both_sides():
    point = Point(3000, 4, trees=3, parties=2)
    found = measure(point)
    assert set(found.released) == {"desensitise", "put aside", "code and write"}
    assert set(found.trained) == {"unpack and rewrite", "XGBoost"}
    assert min(*found.released.values(), *found.trained.values()) > 0
    assert 0.3 < found.bytes / point.values < 2  # heads weigh much in so few rows
    assert min(found.feature_mb, found.label_mb, found.start_mb) > 50


def test_a_point_that_fails_says_why(tmp_path):
    with pytest.raises(OpBoostError, match=r"A point of 2,000 × 1 failed: .*no_such_part"):
        played("release", Point(2000, 1), tmp_path, module="opboost_lab.bench.no_such_part")


def test_growth_is_the_exponent_in_rows_and_columns():
    even = [made(n) for n in (10**5, 10**6)] + [made(10**5, 40, "columns")]
    assert growth(even) == pytest.approx(1.0)
    steep = [made(n, a_value=1e-12 * n) for n in (10**5, 10**6, 10**7)]
    assert growth(steep, lambda m: m.feature_seconds) == pytest.approx(2.0)
    assert growth([*even, made(10**5, axis="trees", a_value=1.0)]) == pytest.approx(1.0)


def test_points_change_one_thing_at_a_time():
    for axis, point in points((10**6,)):
        fixed = {"rows", "columns", "trees", "parties", "cells"} - {axis}
        base = Point(300_000, 10)
        assert all(getattr(point, name) == getattr(base, name) for name in fixed)


def test_theorems_stand_beside_what_was_measured():
    beside = Beside.of(made(2**20))
    assert beside.draws == 10 * 2**20
    assert beside.ns_a_draw == pytest.approx(20)
    assert beside.steps == 20 * 2**20 + 7 * 20
    assert beside.paper_bits == pytest.approx(20)
    assert beside.bits == pytest.approx(4)


def test_what_nobody_measured_follows_from_constants():
    of = OnPaper.of(made(10**6), rows=10**9, columns=2, parties=10, trees=40)
    assert of.party_hours == pytest.approx(10**9 * 2 * 2e-8 / 3600)
    assert of.party_gb == pytest.approx(1.0)
    assert of.all_tb == pytest.approx(0.01)
    assert of.unpack_core_hours == pytest.approx(2e10 * 1e-8 / 3600)
    assert of.train_core_hours == pytest.approx(2e10 * 40 * 3e-9 / 3600)
    assert of.label_tb == pytest.approx((2e10 + 4e10) / 1e12)


def test_limits_are_measured_and_a_job_is_compared_with_them(tmp_path):
    least = limits(Point(10**6, 2), tmp_path)
    assert set(least) == {"aes", "disk", "encode", "decode"}
    assert min(least.values()) > 0
    assert list(tmp_path.iterdir()) == []
    stages = (Stage("desensitise", 2.0, "x", 1.0), Stage("XGBoost", 3.0, "y", 2.0))
    whole = Whole(Point(1, 1), stages, 5.0, 0, 0, 0)
    assert whole.seconds == 8.0
    assert whole.limit_seconds == 3.0
    assert stages[1].ratio == 1.5
