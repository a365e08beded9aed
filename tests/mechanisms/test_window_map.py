"""Window-map: the promise of every pair in integers, width, outputs and bad parameters."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import opboost as op
from opboost.mechanisms.window_map import mutual_information
from tests.support.checks import assert_promise_kept

NEARS = (None, 1 / 2, 1 / 2.5, 1 / 7)


@pytest.mark.parametrize("clipped", [True, False])
@pytest.mark.parametrize("share", NEARS)
@pytest.mark.parametrize("total", [0.72, 1.0, 4.0, 8.0])
def test_every_pair_keeps_the_promise_in_integers(total, share, clipped):
    near = None if share is None else total * share
    m = op.WindowMap(op.Domain(0, 15), total, near, clipped=clipped)
    weights, bits = m.integer_table()
    rows = weights.tolist()
    assert {sum(row) for row in rows} == {2**bits}
    promise = m.guarantee()
    assert promise.total <= total
    for x in range(16):
        for y in range(x + 1, 16):
            assert promise.bound(x, y) == pytest.approx(min((near or total) * (y - x), total))
            assert_promise_kept([rows[x], rows[y]], op.LDP(promise.bound(x, y)), 1)


def test_the_promise_is_nearly_used_up_at_every_distance():
    m = op.WindowMap(op.Domain(0, 31), 4.0, near=1.0, clipped=False)
    for distance in range(1, 32):
        assert m.loss(3, 3 + distance if distance < 29 else 3 - distance % 3 - 1) > 0
    assert m.loss(10, 11) == pytest.approx(1.0, abs=1e-9)
    assert m.loss(10, 13) == pytest.approx(3.0, abs=1e-9)
    assert m.loss(10, 30) == pytest.approx(4.0, abs=1e-9)


def test_known_special_cases():
    """Width 0 is randomised response, a wide ``near`` the square wave, and no cap a Laplace."""
    grid = op.Domain(1, 8)
    response = op.RandomizedResponse(grid, 2.0).transition_matrix()
    window = op.WindowMap(grid, 2.0, width=0).transition_matrix()
    assert window == pytest.approx(response, abs=1e-12)
    wave = op.WindowMap(grid, 1.0, width=2, clipped=False).pmf(4)
    high, low = wave.max(), wave.min()
    assert math.log(high / low) == pytest.approx(1.0, abs=1e-9)
    assert (np.isclose(wave, high)).sum() == 5
    assert (np.isclose(wave, low)).sum() == len(wave) - 5
    slope = op.WindowMap(op.Domain(1, 9), 40.0, near=0.5, width=0, clipped=False)
    laplace = op.DiscreteLaplace(0.5)
    assert slope.loss(2, 7) == pytest.approx(laplace.loss(2, 7), abs=1e-9)


@pytest.mark.parametrize(
    ("cells", "total", "width"),
    [(16, 1, 2), (16, 2, 1), (16, 4, 0), (32, 1, 5), (32, 2, 3), (32, 4, 1)],
)
def test_the_width_tells_most_about_a_uniform_column(cells, total, width):
    m = op.WindowMap(op.Domain(0, cells - 1), total, clipped=False)
    assert m.window == width

    def told(w):
        matrix = op.WindowMap(m.domain, total, width=w, clipped=False).transition_matrix()
        column = matrix.mean(axis=0)
        return float((matrix * np.log(matrix / column)).sum() / cells)

    assert max(range(cells // 2), key=told) == width
    assert told(width) == pytest.approx(mutual_information(cells, total, total, width), abs=1e-9)


def test_unclipped_outputs_reach_beyond_both_ends_and_clipping_moves_them_back():
    wide = op.WindowMap(op.Domain(1, 10), 1.0, near=0.25, width=1, clipped=False)
    narrow = op.WindowMap(op.Domain(1, 10), 1.0, near=0.25, width=1)
    assert wide.outputs == op.Domain(1 - wide.reach, 10 + wide.reach)
    assert wide.reach == 1 + math.ceil(Fraction(1.0) / Fraction(0.25)) - 1
    for x in (1, 5, 10):
        p, reach = wide.pmf(x), wide.reach
        moved = [p[: reach + 1].sum(), *p[reach + 1 : -reach - 1], p[-reach - 1 :].sum()]
        assert narrow.pmf(x) == pytest.approx(moved, abs=1e-12)


@pytest.mark.parametrize("clipped", [True, False])
@pytest.mark.parametrize(("cells", "near"), [(40, None), (40, 0.3), (400, None), (400, 0.02)])
def test_draws_follow_the_distribution(cells, near, clipped):
    m = op.WindowMap(op.Domain(-5, cells - 6), 2.0, near, clipped=clipped)
    n = 400_000
    for x in (m.domain.L, m.domain.L + cells // 3):
        drawn = m.sample(np.full(n, x), rng=op.SeededRng(3))
        counts = np.bincount(drawn - m.outputs.L, minlength=m.outputs.size)
        expected = m.pmf(x) * n
        kept = expected > 20
        chi = float((((counts - expected) ** 2) / expected)[kept].sum())
        assert chi < kept.sum() + 6 * math.sqrt(2 * kept.sum())
        assert counts.sum() == n


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"total": 0}, "total must lie between"),
        ({"total": float("nan")}, "total must lie between"),
        ({"total": 1.0, "near": 2.0}, "near must not exceed total"),
        ({"total": 1.0, "near": 0}, "near must lie between"),
        ({"total": 1.0, "width": -1}, "width must be a whole number"),
        ({"total": 1.0, "width": 10}, "from 0 to 9"),
        ({"total": 1.0, "width": 1.5}, "width must be a whole number"),
        ({"total": 1.0, "near": 1e-6}, "Use a coarser grid or a larger near"),
    ],
)
def test_bad_parameters_get_one_sentence(settings, words):
    with pytest.raises(op.ParameterError, match=words):
        op.WindowMap(op.Domain(1, 10), **settings)


def test_promises_add_up():
    one = op.WindowMap(op.Domain(0, 31), 4.0, near=0.5).guarantee()
    assert one == op.CappedDLDP(0.5, 4.0, op.Domain(0, 31))
    assert one + one == op.CappedDLDP(1.0, 8.0, op.Domain(0, 31))
    other = op.WindowMap(op.Domain(0, 31), 1.0, near=0.5).guarantee()
    both = one + other
    assert both.bound(0, 3) == 1.5 + 1.0
    assert both.total == 5.0
    assert str(one) == "0.5-dLDP per cell, and at most 4 for any pair"
    assert op.WindowMap(op.Domain(0, 31), 4.0).guarantee() == op.LDP(4.0)
