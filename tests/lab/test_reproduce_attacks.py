"""Attacks: none beats the best possible, order is read off, noise of a small level is not."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import opboost as op
from opboost_lab.reproduce import artefact
from opboost_lab.reproduce.measures import attacked, attacks
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.scope import Scope

PRIOR = np.array([0.05, 0.3, 0.1, 0.25, 0.02, 0.18, 0.1])


def test_order_is_read_off_by_who_knows_the_distribution():
    rng = np.random.default_rng(0)
    x = rng.choice(7, 20_000, p=PRIOR)
    key = b"k" * 32
    for release in (x * 3 + 5, op.OrderPreservingEncryption(op.Domain(0, 6), key=key).sample(x)):
        for attack in ("sorting", "frequency", "multinomial"):
            assert attacks.recovered(attacks.ORDER[attack](release, PRIOR), x, 0) == 1.0


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
    for attack in attacks.ORDER.values():
        assert attacks.recovered(attack(y, PRIOR), x, k) <= bound + slack
    bayes = attacks.recovered(attacks.posterior(y, PRIOR, channel, k), x, k)
    assert bayes == pytest.approx(bound, abs=slack)
    assert bound >= attacks.recovered(np.full_like(x, attacks.prior_guess(PRIOR, k)), x, k) - slack


def test_the_best_possible_is_the_best_of_all_rules():
    """By trying every rule from three outputs to three guesses."""
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


def test_multinomial_is_the_likeliest_rising_assignment():
    rng = np.random.default_rng(2)
    for _ in range(20):
        prior = rng.dirichlet(np.ones(6))
        counts = rng.integers(1, 9, 4)
        release = np.repeat(np.arange(4), counts)
        guess = attacks.multinomial(release, prior)[np.cumsum(counts) - 1]
        best = max(
            itertools.combinations(range(6), 4),
            key=lambda values: (counts * np.log(prior[list(values)])).sum(),
        )
        assert tuple(guess) == best


def test_a_second_column_helps_and_an_independent_one_does_not():
    domain = op.Domain(0, 6)
    channel = op.ClampMap(domain, 0.5).transition_matrix()
    apart = np.outer(PRIOR, PRIOR)
    together = np.diag(PRIOR)
    alone = attacks.best_possible(PRIOR, channel, 0)
    assert attacks.best_of_two(apart, channel, channel, 0) == pytest.approx(alone)
    assert attacks.best_of_two(together, channel, channel, 0) > alone + 0.02


def test_posterior_of_two_reaches_the_best_of_two():
    domain, rng = op.Domain(0, 6), np.random.default_rng(3)
    m = op.ClampMap(domain, 0.5)
    joint = rng.dirichlet(np.ones(49) / 4).reshape(7, 7)
    flat = rng.choice(49, 60_000, p=joint.reshape(-1))
    x1, x2 = flat // 7, flat % 7
    y1, y2 = (m.sample(x, rng=op.SeededRng(i)).astype(np.int64) for i, x in enumerate((x1, x2)))
    channel = m.transition_matrix()
    share = attacks.recovered(attacks.posterior_of_two(y1, y2, joint, channel, channel, 1), x1, 1)
    assert share == pytest.approx(attacks.best_of_two(joint, channel, channel, 1), abs=0.01)


def test_order_and_cipher_fall_where_noise_of_a_small_level_stands():
    ope = attacked.on_order("age", attacked.OPE, bundled=True, seeds=1)
    within_five = attacked.WITHIN.index(5)
    assert ope["sorting"][within_five][0] > 0.95
    prior = ope["prior alone"][within_five][0]
    assert prior < 0.5
    clamp = Method("Clamp-map").as_json()
    by_level = [
        attacked.on_method("age", clamp, e, bundled=True, seeds=1)["best possible"][within_five][0]
        for e in (0.001, 0.08, 0.64, 5.12)
    ]
    assert by_level == sorted(by_level)
    assert by_level[0] < prior + 0.15
    assert by_level[-1] > 0.99


def test_the_big_jump_is_seen_in_a_cipher_and_not_in_strong_noise():
    assert attacked.big_jump("age", attacked.OPE, 0.0, True, 1_000, 0)["won"] > 0.9
    weak = Method("Clamp-map").as_json()
    assert abs(attacked.big_jump("age", weak, 0.001, True, 4_000, 0)["won"] - 0.5) < 0.05


def test_the_artefact_shows_what_it_asks_for():
    chosen = artefact("attacks")
    share = [[0.2, 0.3]] * 3
    names = ("gaps", "sorting", "frequency", "multinomial", "posterior", "prior alone",
             "best possible", "alone", "both")  # fmt: skip
    made = dict.fromkeys(names, share) | {"total": 5.0, "correlation": 0.9, "won": 0.6}
    for scope in (Scope(quick=True, bundled=True), Scope()):
        finding = chosen.show(scope, dict.fromkeys(chosen.tasks(scope), made))
        assert len(finding.panels) == 4
        assert all(len(row) == len(g.header) for g in finding.grids for row in g.rows)
