"""Attacks: none beats the best possible one; order reveals values, unless noise is large."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opboost as op
from opboost_lab.reproduce import artefact
from opboost_lab.reproduce.measures import attacks
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Scope

PRIOR = np.array([0.05, 0.3, 0.1, 0.25, 0.02, 0.18, 0.1])


def test_order_reveals_values_if_the_distribution_is_known():
    rng = np.random.default_rng(0)
    x = rng.choice(7, 20_000, p=PRIOR)
    key = b"k" * 32
    for release in (x * 3 + 5, op.OrderPreservingEncryption(op.Domain(0, 6), key=key).sample(x)):
        assert attacks.recovered(attacks.sorting(release, PRIOR), x, 0) == 1.0


@pytest.mark.parametrize("k", [0, 1, 2])
@pytest.mark.parametrize(
    "mechanism",
    [
        op.GlobalMap(op.Domain(0, 6), 0.5),
        op.ClampMap(op.Domain(0, 6), 1.0),
        op.LocalMap(op.Domain(0, 6), epsilon=0.3, theta=3),
        op.RandomizedResponse(op.Domain(0, 6), 1.0),
    ],
    ids=lambda m: type(m).__name__,
)
def test_no_attack_beats_the_best_possible(mechanism, k):
    rng = np.random.default_rng(1)
    x = rng.choice(7, 60_000, p=PRIOR)
    y = mechanism.sample(x, rng=op.SeededRng(1)).astype(np.int64)
    channel = mechanism.transition_matrix()
    bound = attacks.best_possible(PRIOR, channel, k)
    slack = 4 * np.sqrt(0.25 / len(x))
    assert attacks.recovered(attacks.sorting(y, PRIOR), x, k) <= bound + slack
    assert bound >= attacks.recovered(attacks.prior_guess(PRIOR, k), x, k) - slack


def test_the_best_possible_is_the_best_of_all_rules():
    """Try every rule from three outputs to three guesses."""
    prior, channel = (
        np.array([0.5, 0.2, 0.3]),
        op.ClampMap(op.Domain(0, 2), 0.7).transition_matrix(),
    )
    for k in (0, 1):
        best = max(
            sum(
                prior[x] * channel[x, y]
                for x in range(3)
                for y in range(3)
                if abs(rule[y] - x) <= k
            )
            for rule in itertools.product(range(3), repeat=3)
        )
        assert attacks.best_possible(prior, channel, k) == pytest.approx(best)


def test_order_and_cipher_reveal_values_that_noise_at_a_small_level_hides():
    found = attacks.by_order("age, ten cells", bundled=True)
    assert found["plain order"] == found[attacks.OPE] > 0.7
    assert found["prior alone"] < 0.4
    by_level = [
        attacks.by_noise("age, ten cells", Method("Clamp-map").as_json(), e, bundled=True)
        for e in (0.08, 0.64, 1.28, 5.12)
    ]
    assert by_level == sorted(by_level)
    assert by_level[0] < found["prior alone"] + 0.15
    assert by_level[-1] > 0.95


def test_the_artefact_shows_what_it_asks_for():
    chosen = artefact("attacks")
    order = {"plain order": 0.9, attacks.OPE: 0.9, "prior alone": 0.2}
    for scope in (Scope(quick=True, bundled=True), Scope()):
        tasks = chosen.tasks(scope)
        made = {t: order if t.function.endswith("by_order") else 0.3 for t in tasks}
        finding = chosen.show(scope, made)
        assert len(finding.panels) == 2
        assert all(len(row) == len(g.header) for g in finding.grids for row in g.rows)
