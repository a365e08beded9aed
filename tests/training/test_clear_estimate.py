"""The fit of a link, compared with SciPy's, and its minimum within bounds."""

import numpy as np
import pytest
from scipy.optimize import minimize

from opboost.training import clear_estimate as estimate


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("strength", [0.0, 0.4, 1.0, 3.0])
@pytest.mark.parametrize("with_own", [False, True])
def test_a_link_is_as_likely_as_the_one_that_scipy_finds(monkeypatch, classes, strength, with_own):
    rng = np.random.default_rng([classes, int(10 * strength), with_own])
    drawn = rng.normal(size=(600, 1, classes)) + rng.normal(size=(600, 16, classes))
    own = rng.normal(size=(600, 1, classes))
    score = strength * drawn[:, 0] + own[:, 0] * with_own
    y = (score + rng.gumbel(size=score.shape)).argmax(axis=1)
    logs = [parts - np.log(np.exp(parts).sum(axis=2, keepdims=True)) for parts in (drawn, own)]
    found, error = estimate._fitted_link(logs[: 1 + with_own], y)
    asked = {}

    def by_scipy(loss, start, bounds):
        asked["loss"], asked["bounds"] = loss, bounds
        return minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x

    monkeypatch.setattr(estimate, "minimised", by_scipy)
    other, other_error = estimate._fitted_link(logs[: 1 + with_own], y)
    loss, (low, high) = asked["loss"], asked["bounds"].T
    assert loss(found)[0] <= loss(other)[0] + 1e-8
    assert np.abs(found - other).max() < 0.02
    assert error == pytest.approx(other_error, rel=0.02)
    assert (low <= found).all()
    assert (found <= high).all()


def test_a_minimum_is_found_where_the_loss_is_not_convex():
    bounds = np.array([(-3.0, 3.0), (-3.0, 3.0)])

    def loss(x):
        return float(np.cos(x).sum()), -np.sin(x)

    found = estimate.minimised(loss, np.array([0.5, -0.5]), bounds)
    assert found == pytest.approx([3.0, -3.0])
    found = estimate.minimised(loss, np.array([0.5, -0.5]), 2 * bounds)
    assert np.abs(found) == pytest.approx([np.pi, np.pi])
