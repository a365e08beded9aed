"""Mutual information, and the most that any mechanism with a given promise can reach."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import opboost as op
from opboost.theory import mutual_information, optimal_information

PAGE = Path(__file__).parents[2] / "docs" / "proofs" / "window-map.md"
GRID = op.Domain(1, 10)


def told(mechanism):
    return mutual_information(mechanism.transition_matrix())


def test_the_table_of_the_proof_page_comes_back():
    rows = re.findall(r"^\| ([\d.]+) \| ((?:[\d.]+ \| ?){6})$", PAGE.read_text(), re.M)
    assert [float(total) for total, _ in rows] == [1, 2, 4, 8]
    for total, figures in rows:
        level = float(total)
        window, clamp, piecewise, response, best, share = map(float, figures.split("|")[:6])
        assert told(op.WindowMap(GRID, level, clipped=False)) == pytest.approx(window, abs=6e-5)
        assert told(op.ClampMap(GRID, level / 9)) == pytest.approx(clamp, abs=6e-5)
        assert told(op.Piecewise(GRID, level, clipped=False)) == pytest.approx(piecewise, abs=6e-5)
        assert told(op.RandomizedResponse(GRID, level)) == pytest.approx(response, abs=6e-5)
        assert optimal_information(10, level) == pytest.approx(best, abs=6e-5)
        assert window / best == pytest.approx(share, abs=6e-4)


@pytest.mark.parametrize("epsilon", [0.2, 0.64, 1.5])
@pytest.mark.parametrize("skewed", [False, True])
def test_clamp_map_is_the_best_under_pure_distance(epsilon, skewed):
    prior = np.arange(1, 8) ** 2 if skewed else None
    best = optimal_information(7, 6 * epsilon, epsilon, prior)
    clamp = op.ClampMap(op.Domain(1, 7), epsilon).transition_matrix()
    assert mutual_information(clamp, prior) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize(("total", "steps"), [(1.0, 1), (4.0, 2), (4.0, 4), (8.0, 4)])
def test_no_window_tells_more_than_the_best(total, steps):
    near = None if steps == 1 else total / steps
    best = optimal_information(8, total, near)
    for width in range(4):
        window = op.WindowMap(op.Domain(1, 8), total, near, width, clipped=False)
        assert told(window) <= best + 1e-9
    assert told(op.WindowMap(op.Domain(1, 8), total, near, clipped=False)) > 0.9 * best


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 1.0), "two or more"),
        ((5.5, 1.0), "whole number of cells"),
        ((5, 0.0), "positive, finite total"),
        ((5, float("inf")), "positive, finite total"),
        ((5, 1.0, -1.0), "whole multiple of near"),
        ((5, 1.0, 0.3), "whole multiple of near"),
        ((40, 1.0), "Use fewer cells"),
        ((5, 1.0, None, [1, 2]), "prior must be 5 weights"),
    ],
)
def test_bad_parameters_get_one_sentence(arguments, words):
    with pytest.raises(op.ParameterError, match=words):
        optimal_information(*arguments)


@pytest.mark.parametrize("matrix", [[[1, 2], [3]], [0.5, 0.5], [], [["a"]], [[-1.0, 2.0]]])
def test_what_is_no_matrix_of_chances_is_refused(matrix):
    with pytest.raises(op.ParameterError, match="one row per cell"):
        mutual_information(matrix)
