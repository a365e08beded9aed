"""Weights of columns from a pilot: which columns are informative about the label."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.training.column_weights import column_weights, label_features, quantised, score
from opboost.training.released_columns import ReleasedColumn, from_sample
from opboost.training.targets import Target

COUNT = 20


def pilot(X, seed=0, total=4, **declared):
    d = op.Desensitizer(
        bounds={n: (0, 1) for n in X if n not in declared.get("categories", {})},
        budget=op.Budget.record(total),
        noise_rng=op.SeededRng(seed),
        **declared,
    )
    _, released = d.fit_release(X)
    return from_sample(d.columns_, released, d.sent)


def table(rows=8_000, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.random((rows, COUNT)), columns=[f"c{k}" for k in range(COUNT)])


def told_apart(weights, useful):
    others = [w for name, w in weights.items() if name not in useful]
    assert all(weights[name] >= 0.5 for name in useful)
    assert np.mean(others) < 0.25


@pytest.mark.parametrize("seed", range(3))
def test_useful_columns_get_the_largest_weights(seed):
    X = table(seed=seed)
    noise = np.random.default_rng(seed + 50).normal(size=len(X))
    release = pilot(X, seed)
    told_apart(column_weights(release, Target.of_classes(X["c3"] + 0.2 * noise > 0.5)), ["c3"])
    told_apart(column_weights(release, Target.of_numbers(X["c4"] + 0.2 * noise)), ["c4"])
    bump = np.abs(X["c5"] - 0.5) + 0.05 * noise
    told_apart(column_weights(release, Target.of_classes(bump > 0.25)), ["c5"])
    three = np.digitize(X["c6"] + 0.1 * noise, [0.33, 0.66])
    told_apart(column_weights(release, Target.of_classes(three)), ["c6"])


def test_categories_are_weighed_by_their_frequencies():
    X = table()
    rng = np.random.default_rng(4)
    X["city"] = rng.choice(list("abcdefghijkl"), len(X))
    X["kind"] = rng.choice(["x", "y", "z"], len(X))
    categories = {"city": list("abcdefghijkl"), "kind": ["x", "y", "z"]}
    y = np.where(rng.random(len(X)) < 0.9, X["city"].isin(list("abcdef")), rng.random(len(X)) < 0.5)
    told_apart(column_weights(pilot(X, categories=categories), Target.of_classes(y)), ["city"])


def test_columns_that_tell_nothing_weigh_about_the_same():
    X = table()
    y = np.random.default_rng(9).integers(0, 2, len(X))
    squares = [
        score(c, label_features(Target.of_classes(y))).squares.sum() for c in pilot(X, seed=2)
    ]
    assert 2.5 < np.mean(squares) < 5.5  # four degrees of freedom each


def test_withheld_codebooks_and_empty_columns_do_no_harm():
    X = table()
    release = pilot(X)
    withheld = [
        ReleasedColumn(c.private, tuple(type(p)(p.codes, None, p.missing) for p in c.parts), c.sent)
        for c in release
    ]
    told_apart(column_weights(withheld, Target.of_classes(X["c3"] > 0.5)), ["c3"])
    few = [c.where(np.arange(8)) for c in release]
    found = column_weights(few, Target.of_classes(np.arange(8) % 2))
    assert len(found) == COUNT


def test_label_noise_hides_labels_at_its_level():
    X = table()
    release, target = pilot(X), Target.of_classes(X["c3"] > 0.5)
    told_apart(column_weights(release, target, epsilon=3.0, rng=op.SeededRng(0)), ["c3"])
    hidden = column_weights(release, target, epsilon=0.01, rng=op.SeededRng(0))
    assert np.mean(list(hidden.values())) > 0.2 or hidden["c3"] < 1
    flipped = label_features(target, 1.0, op.SeededRng(1))[:, 0]
    truth = label_features(target)[:, 0]
    agree = max((flipped == truth).mean(), (flipped != truth).mean())
    assert agree == pytest.approx(np.e / (1 + np.e), abs=0.02)
    assert label_features(Target.of_numbers(X["c3"]), 1.0, op.SeededRng(1)).shape[1] == 4


def test_weights_take_two_bits():
    found = quantised({"a": 1.0, "b": 0.49, "c": 0.01, "d": 0.0})
    assert found == {"a": 1.0, "b": 0.5, "c": 0.125, "d": 0.125}
    assert quantised({"a": 0.0, "b": 0.0}) == {"a": 1.0, "b": 1.0}
