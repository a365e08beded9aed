"""Figures of the paper and its errata, worked out by hand or printed there."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

import opboost as op
from opboost.randomness.exact import Decay

TEN, HUNDRED = op.Domain(1, 10), op.Domain(1, 100)


def test_errata_1_a_pair_across_a_border_loses_twice_the_nominal_level():
    m = op.AdjMap(TEN, 0.64, theta=5, alpha=2)
    assert m.eps_ner == pytest.approx(0.256)
    assert m.eps_prt == pytest.approx(2.56)
    assert m.loss(5, 6) == pytest.approx(1.28, abs=1e-11)


@pytest.mark.parametrize(
    ("grid", "theta", "epsilon", "alpha", "ratio", "digits"),
    [
        (HUNDRED, 10, 0.1, 0.5, 6.2, 1),
        (HUNDRED, 10, 0.1, 1, 6.6, 1),
        (HUNDRED, 10, 0.1, 5, 7.0, 1),
        (TEN, 2, 0.64, 0.5, 0.99, 2),
        (TEN, 2, 0.64, 1, 1.13, 2),
        (TEN, 2, 0.64, 5, 1.27, 2),
    ],
)
def test_errata_1_adj_map_exceeds_its_nominal_level(grid, theta, epsilon, alpha, ratio, digits):
    m = op.AdjMap(grid, epsilon, theta=theta, alpha=alpha)
    assert round(m.exact_epsilon() / epsilon, digits) == ratio
    assert m.certificate().covered  # and keeps the promise that it makes


@pytest.mark.parametrize(
    ("nominal", "theta", "alpha", "loss"),
    [
        (0.08, 4, 0.4, 0.255),
        (0.08, 4, 1, 0.268),
        (0.08, 4, 10, 0.277),
        (0.08, 10, 0.4, 0.495),
        (0.08, 10, 1, 0.551),
        (0.08, 10, 10, 0.591),
        (1.28, 4, 0.4, 2.41),
        (1.28, 4, 1, 2.54),
        (1.28, 4, 10, 2.62),
        (1.28, 10, 0.4, 5.13),
        (1.28, 10, 1, 5.82),
        (1.28, 10, 10, 6.34),
    ],
)
def test_tight_losses_of_adj_map_on_a_hundred_cells(nominal, theta, alpha, loss):
    m = op.AdjMap(HUNDRED, nominal, theta=theta, alpha=alpha)
    digits = 3 if nominal < 1 else 2
    assert round(m.exact_epsilon(), digits) == loss


@pytest.mark.parametrize(
    ("grid", "epsilon", "exact", "digits"),
    [(TEN, 0.08, 0.89, 2), (TEN, 1.28, 0.67, 2), (HUNDRED, 0.08, 0.0769 / 0.08, 2)],
)
def test_errata_2_global_map_wastes_budget(grid, epsilon, exact, digits):
    ratio = op.GlobalMap(grid, epsilon).exact_epsilon() / epsilon
    assert round(ratio, digits) == round(exact, digits)


def test_errata_2_tight_levels_on_a_hundred_cells():
    assert round(op.GlobalMap(HUNDRED, 0.08).exact_epsilon(), 4) == 0.0769
    assert round(op.GlobalMap(HUNDRED, 1.28).exact_epsilon(), 4) == 0.8625


@pytest.mark.parametrize(
    ("mechanism", "mae", "rmse", "kept"),
    [
        (op.GlobalMap(HUNDRED, 0.08), 17.63, 24.00, 0.027),
        (op.ClampMap(HUNDRED, 0.08), 10.86, 15.26, 0.050),
        (op.GlobalMap(HUNDRED, 1.28), 1.430, 2.133, 0.316),
        (op.ClampMap(HUNDRED, 1.28), 0.594, 1.023, 0.569),
    ],
)
def test_clamp_map_has_about_half_the_noise(mechanism, mae, rmse, kept):
    matrix = mechanism.transition_matrix()
    cells = np.arange(100)
    gaps = np.abs(cells[:, None] - cells[None, :])
    assert (matrix * gaps).sum(axis=1).mean() == pytest.approx(mae, abs=0.005)
    assert math.sqrt((matrix * gaps**2).sum(axis=1).mean()) == pytest.approx(rmse, abs=0.005)
    assert np.diag(matrix).mean() == pytest.approx(kept, abs=0.0006)


def expected_kendall(mechanism):
    """Return the expected weighted Kendall on a uniform grid, over sqrt(<r,r> · E<s,s>)."""
    p = mechanism.transition_matrix()
    k = len(p)
    cumulative = p.cumsum(axis=1)
    above = np.array(
        [[(p[i] * np.r_[0, cumulative[j][:-1]]).sum() for j in range(k)] for i in range(k)]
    )
    gap = np.abs(np.subtract.outer(np.arange(k), np.arange(k)))
    sign = np.sign(np.subtract.outer(np.arange(k), np.arange(k)))
    concordance = (sign * (above - above.T) * gap).sum()
    return concordance / math.sqrt(gap.sum() * ((above + above.T) * gap).sum())


@pytest.mark.parametrize(
    ("epsilon", "of_global", "of_clamp"),
    [(0.08, 0.085, 0.228), (0.64, 0.582, 0.848), (1.28, 0.836, 0.961)],
)
def test_errata_3_clamp_map_keeps_more_order(epsilon, of_global, of_clamp):
    assert expected_kendall(op.GlobalMap(TEN, epsilon)) == pytest.approx(of_global, abs=6e-4)
    assert expected_kendall(op.ClampMap(TEN, epsilon)) == pytest.approx(of_clamp, abs=6e-4)


def test_errata_3_the_price_of_clamp_map_is_mass_on_the_ends():
    matrix = op.ClampMap(TEN, 0.08).transition_matrix()
    assert round((matrix[:, 0] + matrix[:, -1]).mean(), 2) == 0.74

    def worst_order(m):
        p = m.transition_matrix()
        above = [(p[i + 1] * np.r_[0, p[i].cumsum()[:-1]]).sum() for i in range(9)]
        return min(above)

    assert round(worst_order(op.ClampMap(TEN, 0.08)), 3) == 0.357
    assert round(worst_order(op.GlobalMap(TEN, 0.08)), 3) == 0.453


def test_errata_4_resampled_discrete_laplace_is_global_map():
    epsilon, q = 0.64, math.exp(-0.32)
    matrix = op.GlobalMap(TEN, epsilon).transition_matrix()
    for x in range(1, 11):
        noise = np.array([(1 - q) / (1 + q) * q ** abs(y - x) for y in range(1, 11)])
        assert matrix[x - 1] == pytest.approx(noise / noise.sum(), abs=1e-12)


@pytest.mark.parametrize("rate", [0.04, 0.64, 1.28])
def test_errata_5_the_printed_normaliser_is_wrong_and_the_corrected_one_right(rate):
    q = Decay.of_rate(Fraction(rate)).rational()
    lower, upper = -3, 6
    whole = sum(q ** abs(z) for z in range(lower, upper + 1)) * (1 - q) / (1 + q)
    corrected = (1 + q) / (1 + q - q ** (1 - lower) - q ** (upper + 1))
    assert corrected * whole == 1
    printed = 2 / (1 + q - q ** (1 - lower) - q ** (upper + 1))
    assert float(printed * whole) == pytest.approx(float(2 / (1 + q)))
    if rate == 1.28:
        assert round(float(printed * whole), 2) == 1.56


def test_the_paper_calibration_nearly_fits_global_map_at_alpha_one():
    """Equation fit_base and figure distribution: [-50, 50], epsilon .1, theta 10."""
    grid = op.Domain(-50, 50)
    like = op.AdjMap(grid, 0.1, theta=10, alpha=1.0)
    assert like.eps_ner == pytest.approx(0.1 / (1 + 10 / 101))
    assert like.eps_prt == pytest.approx(10 * like.eps_ner)
    reference = op.GlobalMap(grid, 0.1).transition_matrix()

    def distance(alpha):
        matrix = op.AdjMap(grid, 0.1, theta=10, alpha=alpha).transition_matrix()
        return 0.5 * np.abs(matrix - reference).sum(axis=1)

    middle_of_a_run = 50 + 4
    assert distance(1)[middle_of_a_run] < 0.04
    distances = {alpha: distance(alpha).mean() for alpha in (0.2, 0.5, 1, 2, 5)}
    assert min(distances, key=distances.get) == 1


def test_inputs_outside_the_range_are_covered():
    """Theorem the:pribounded-laplace: pairs beyond [l, u] keep the bound of their own distance."""
    m = op.GlobalMap(TEN, 0.64)
    assert m.loss(-5, 20) == m.loss(1, 10) <= m.guarantee().bound(-5, 20)
    assert m.pmf(-5).tolist() == m.pmf(1).tolist()
