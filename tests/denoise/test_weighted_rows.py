"""Weighted rows: a weight of k has the same effect as k copies of a row."""

from __future__ import annotations

import numpy as np
import pytest

import opboost as op
from opboost.denoise import BitNoise, Groups, JointDistribution, Space, noise_matrix_of
from opboost.denoise.column_pairs import Pairing
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.mixture_kernel import UNSENT
from opboost.denoise.model_selection import Base, one_class, seeded, tally

GRID = op.Domain(0, 9)
CITY = op.UnaryEncoding(["a", "b", "c"], 1.5)
SPACE = Space(
    (noise_matrix_of(op.ClampMap(GRID, 0.8)), noise_matrix_of(op.ClampMap(GRID, 0.4), 0.7)),
    (10, 10),
    (BitNoise.of(CITY),),
    (4,),
)


def table(rows=1500):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, rows)
    first = np.clip(3 * y + rng.integers(0, 7, rows), 0, 9)
    second = np.where(rng.random(rows) < 0.7, rng.integers(0, 10, rows), 10)  # or not sent
    codes = np.column_stack([first, second, rng.integers(0, 4, rows)]).astype(np.uint8)
    bits = (rng.random((rows, 3)) < 0.4).astype(np.uint8)
    bits[rng.random(rows) < 0.2, 0] = UNSENT
    return codes, bits, y, rng.integers(0, 4, rows).astype(float)


def encoded(codes, bits, y, weight=None):
    groups = Groups.classes(y, 2, weight)
    return EncodedRows.of(codes, bits, groups.of, 2, weight), groups


def both_ways():
    """Return rows with weights, and the same rows repeated."""
    codes, bits, y, weight = table()
    many = np.repeat(np.arange(len(y)), weight.astype(int))
    return encoded(codes, bits, y, weight), encoded(codes[many], bits[many], y[many])


def test_weights_are_copies_in_tallies():
    (weighted, of_weights), (copied, of_copies) = both_ways()
    index = SPACE.index()
    assert np.array_equal(tally(weighted, index), tally(copied, index))
    assert np.array_equal(of_weights.sizes(), of_copies.sizes())
    part = np.random.default_rng(1).random(len(weighted)) < 0.5
    some = weighted.where(part)
    assert tally(some, index)[:, :10].sum() == some.weight.sum()


@pytest.mark.parametrize("classes", [1, 4])
def test_weights_are_copies_in_every_step_of_the_fit(classes):
    (weighted, groups), (copied, of_copies) = both_ways()
    near = np.eye(2, dtype=np.float32)
    one = one_class(
        SPACE, tally(copied, SPACE.index()), Base.alike(len(SPACE.channels), 0, 20), of_copies
    )
    start = seeded(one, copied, classes, near, of_copies, np.random.default_rng(2))
    first = second = start
    for _ in range(8):
        first, second = first.stepped(weighted), second.stepped(copied)
        score = first.likelihoods(weighted)[:, 0] @ weighted.weight
        assert score == pytest.approx(second.likelihoods(copied).sum(), rel=1e-4)
    assert np.allclose(first.P, second.P, atol=2e-4)
    assert np.allclose(first.pi, second.pi, atol=2e-4)
    pairs = Pairing(SPACE, (), (0, 1))
    shares = [JointDistribution.of(first, pairs, g).share for g in (groups, of_copies)]
    assert np.allclose(*shares)


def test_means_of_groups_count_weights():
    y = np.array([1.0, 3.0, 10.0, 20.0])
    groups = Groups(np.array([0, 0, 1, 1]), 3, True, None, np.array([1.0, 3.0, 0.0, 2.0]))
    assert groups.means(y).tolist() == [2.5, 20.0, 0.0]
    assert groups.where(np.array([0, 2])).means(y[[0, 2]]).tolist() == [1.0, 0.0, 0.0]


def test_the_unit_of_weights_does_not_matter_and_weights_do():
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 10, 3000)
    wrong = rng.random(3000) < 0.4
    y = np.where(wrong, x < 5, x > 5)
    weight = np.where(wrong, 1e-6, 1.0)  # rows that say the opposite have almost no weight

    def chances(given):
        model = op.OpBoostClassifier(
            op.ClampMap(GRID, 0.3),
            bounds=(0, 10),
            booster_params={"n_estimators": 20, "min_child_weight": 0, "reg_lambda": 0},
            denoise=True,
            random_state=0,
            noise_rng=op.SeededRng(1),
        ).fit(x[:, None], y, sample_weight=given)
        clear = np.array([[1.0], [9.0]])
        return model.predict_proba(clear)[:, 1], model.trained_model_.posterior

    seen, posterior = chances(weight)
    assert seen[0] < 0.1
    assert seen[1] > 0.9
    again = chances(1000 * weight)[1]
    P = posterior.distribution.member.P
    assert np.allclose(P, again.distribution.member.P, atol=1e-5)
