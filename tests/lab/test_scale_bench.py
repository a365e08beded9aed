"""The scale benchmark: points run, and the figures computed from them are right."""

from __future__ import annotations

import pytest

from opboost.errors import OpBoostError
from opboost_lab.bench.scaling import Measured, growth, measure, played, points
from opboost_lab.bench.scaling_point import Point


def made(rows, columns=10, axis="rows", a_value=2e-8, **more):
    values = rows * columns
    released = {"desensitise": values * a_value}
    trained = {"unpack and rewrite": values * 1e-8, "XGBoost": values * 20 * 3e-9}
    return Measured(axis, Point(rows, columns, **more), released, trained, values // 2, 1, 2, 0)


def test_both_sides_of_a_point_are_measured():
    point = Point(3000, 4, trees=3, parties=2)
    found = measure(point)
    assert set(found.released) == {"desensitise", "put aside", "code and write"}
    assert set(found.trained) == {"unpack and rewrite", "XGBoost"}
    assert min(*found.released.values(), *found.trained.values()) > 0
    assert 0.3 < found.bytes / point.values < 2  # headers are a large part of so few rows
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
