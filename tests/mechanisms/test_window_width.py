"""The width of a plan's window: how much its outputs reveal about smooth distributions."""

from __future__ import annotations

import numpy as np
import pytest

import opboost as op
from opboost.mechanisms.window_width import COSINES, smooth_information, smooth_width


@pytest.mark.parametrize(
    ("cells", "total", "near"), [(8, 1.0, 1.0), (12, 3.0, 0.75), (32, 4.0, 4.0)]
)
def test_information_is_that_of_the_published_matrix(cells, total, near):
    """Small tilts of a uniform column change the distribution of outputs by this much."""
    width, tilt = 1, 1e-4
    m = op.WindowMap(op.Domain(1, cells), total, near, width, clipped=False)
    matrix = m.transition_matrix()
    even = matrix.mean(axis=0)
    told = 0.0
    for wave in range(1, COSINES + 1):
        cosine = np.sqrt(2) * np.cos(np.pi * wave * (np.arange(cells) + 0.5) / cells)
        tilted = (1 + tilt * cosine) @ matrix / cells
        told += ((tilted - even) ** 2 / even).sum() / tilt**2
    assert smooth_information(cells, total, near, width) == pytest.approx(told, rel=1e-4)


@pytest.mark.parametrize("total", [0.5, 1.0, 2.0, 4.0, 8.0])
def test_no_other_width_tells_more(total):
    best = smooth_width(20, total, total)
    told = [smooth_information(20, total, total, w) for w in range(10)]
    assert told[best] == max(told)
    assert max(told) <= COSINES


def test_the_window_narrows_as_the_level_grows_and_scales_with_the_grid():
    widths = [smooth_width(32, total, total) for total in (0.5, 1.0, 2.0, 4.0, 8.0)]
    assert widths == sorted(widths, reverse=True)
    assert smooth_width(640, 1.0, 1.0) == pytest.approx(20 * smooth_width(32, 1.0, 1.0), rel=0.2)


def test_two_cells_and_very_high_levels_have_no_window():
    assert [smooth_width(2, total, total) for total in (0.1, 1.0, 10.0)] == [0, 0, 0]
    assert [smooth_width(32, total, total) for total in (20.0, 2_000.0)] == [0, 0]
