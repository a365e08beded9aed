"""The usefulness of a column: its share, and an error that matches how much the share varies."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from opboost.training.column_usefulness import columns_usefulness
from opboost.training.targets import Target
from tests.training.test_column_weights import pilot


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_error_is_the_spread_over_tables_drawn_anew(kind):
    shares, errors, useless = [], [], []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = pd.DataFrame(rng.random((600, 2)), columns=["useful", "useless"])
        y = X["useful"] + 0.3 * rng.normal(size=len(X))
        target = Target.of_numbers(y) if kind == "numbers" else Target.of_classes(y > 0.5)
        found = {c.name: c for c in columns_usefulness(pilot(X, seed, total=8), target)}
        shares.append(found["useful"].explained)
        errors.append(found["useful"].error)
        useless.append(found["useless"].explained / found["useless"].error)
    spread = float(np.std(shares, ddof=1))
    assert 0.6 * spread < np.mean(errors) < 1.7 * spread  # 40 tables give the spread within 20 %
    assert abs(np.mean(useless)) < 0.7
    assert np.mean(np.abs(useless) > 3) < 0.1


def test_the_order_of_rows_does_not_matter_to_the_error():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.random((2000, 1)), columns=["a"]).sort_values("a", ignore_index=True)
    target = Target.of_classes(X["a"] > 0.7)  # a table sorted by its label
    (found,) = columns_usefulness(pilot(X, total=8), target)
    assert 0 < found.error < 0.1 * found.explained


def test_too_few_rows_have_no_figure():
    X = pd.DataFrame({"a": [0.1, 0.9, 0.4]})
    (found,) = columns_usefulness(pilot(X), Target.of_classes([0, 1, 0]))
    assert (found.rows, found.explained) == (0, 0.0)
    assert np.isnan(found.error)
