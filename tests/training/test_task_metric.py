"""The metric by which predictions are judged, compared with scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import UndefinedMetricWarning
from sklearn.metrics import roc_auc_score

from opboost.training.task_metric import roc_auc


@given(st.integers(0, 2**32 - 1), st.integers(2, 3000), st.sampled_from([3, 40, 10**6]), st.data())
def test_the_auc_is_bit_for_bit_that_of_scikit_learn(seed, rows, levels, data):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    y[:2] = 0, 1
    kind = data.draw(st.sampled_from([np.float32, np.float64]))
    noise = data.draw(st.sampled_from([0.0, 0.3, 3.0]))  # straight, curved and ragged curves
    chances = (np.round((y + noise * rng.random(rows)) / 4 * levels) / levels).astype(kind)
    assert roc_auc(y, chances) == roc_auc_score(y, chances)


def test_rows_of_one_class_have_no_auc():
    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(roc_auc(np.ones(3, dtype=np.int64), np.array([0.1, 0.2, 0.3])))


def test_chances_that_are_no_numbers_are_refused():
    with pytest.raises(ValueError, match="NaN"):
        roc_auc(np.array([0, 1]), np.array([0.5, np.nan]))
