"""Training on noisy rows while models of clean rows are fitted."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from opboost.boosting import booster as boosters
from opboost.boosting import make_booster
from opboost.runtime import threads
from opboost.training.denoised_rows import (
    MAX_CELLS_BESIDE_FIT,
    _beside_fit,
    trains_beside_fit,
)

PART = np.array([1, 0, 2])


def test_training_begins_once_the_part_is_drawn_and_the_fit_does_not_wait_for_it():
    begun = threading.Event()

    def fitted(parted):
        parted(PART)
        assert begun.wait(30)
        return "denoiser"

    def train(part):
        begun.set()
        return part.tolist()

    assert _beside_fit(train, fitted) == ([1, 0, 2], "denoiser")


@pytest.mark.parametrize("draws", [False, True])
def test_the_error_of_the_fit_is_raised_whether_or_not_training_had_begun(draws):
    def fitted(parted):
        if draws:
            parted(PART)
        raise MemoryError("fit")

    with pytest.raises(MemoryError, match="fit"):
        _beside_fit(lambda part: part, fitted)


def test_the_error_of_training_is_raised_when_the_fit_is_done():
    done = []

    def fitted(parted):
        parted(PART)
        done.append(True)

    with pytest.raises(ZeroDivisionError):
        _beside_fit(lambda part: 1 / 0, fitted)
    assert done


def test_only_reentrant_boosters_train_beside_the_fit_of_a_small_table(monkeypatch):
    for module in (threads, boosters):
        monkeypatch.setattr(module, "most_threads", lambda: 2)
    xgboost, most = make_booster("xgboost"), MAX_CELLS_BESIDE_FIT
    assert trains_beside_fit(xgboost, most)
    assert not trains_beside_fit(xgboost, most + 1)
    assert not trains_beside_fit(make_booster("xgboost", {"n_jobs": 2}), most)
    assert not trains_beside_fit(make_booster("lightgbm"), most)
    for module in (threads, boosters):
        monkeypatch.setattr(module, "most_threads", lambda: 1)
    assert not trains_beside_fit(xgboost, most)
