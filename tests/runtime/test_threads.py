"""The number of threads, and results that do not depend on it."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

import opboost as op
from opboost.boosting import Problem, make_booster
from opboost.denoise import encoded_rows
from opboost.runtime import threads
from opboost.runtime.threads import (
    CELLS_PER_THREAD,
    most_threads,
    side_by_side,
    threads_for,
    threads_limited,
)


@pytest.fixture
def eight_cores(monkeypatch):
    monkeypatch.setattr(threads, "usable_cores", lambda: 8.0)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def test_threads_follow_from_the_size(eight_cores):
    sizes = [0, 11_000, CELLS_PER_THREAD, 2 * CELLS_PER_THREAD - 1, 3 * CELLS_PER_THREAD, 10**9]
    assert [threads_for(cells) for cells in sizes] == [1, 1, 1, 1, 3, 8]


@pytest.mark.parametrize(("said", "most"), [("3", 3), ("99", 8), ("2,4", 2), ("", 8), ("0", 8)])
def test_omp_num_threads_is_the_most(eight_cores, monkeypatch, said, most):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert most_threads() == threads_for(10**9) == most


def pools():
    return {pool["num_threads"] for pool in threadpool_info()}


def test_a_limit_holds_inside_and_ends(eight_cores):
    import lightgbm  # noqa: F401
    import xgboost  # noqa: F401

    before = threadpool_info()
    with threads_limited(3 * CELLS_PER_THREAD):
        assert pools() == {3}
        with threads_limited(10):
            assert pools() == {1}
    assert threadpool_info() == before


def test_two_calls_run_side_by_side_and_limits_end(eight_cores):
    meet = threading.Barrier(2, timeout=60)

    def limited(cells):
        with threads_limited(cells):
            meet.wait()  # both are running, whichever ends first
        return cells

    before = threadpool_info()
    assert side_by_side(lambda: limited(10), lambda: limited(3 * CELLS_PER_THREAD)) == (10, 300_000)
    assert threadpool_info() == before
    with pytest.raises(ZeroDivisionError):
        side_by_side(lambda: 1 / 0, lambda: None)


def people(n):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{k}": rng.normal(size=n) for k in range(5)})
    return table, (table["c0"] + table["c1"] + rng.normal(size=n) > 0).astype(int)


def classifier(booster, **changes):
    return op.OpBoostClassifier(
        op.ClampMap(op.Domain(1, 10), 1.0),
        bounds={f"c{k}": (-3, 3) for k in range(4)},
        booster=booster,
        noise_rng=op.SeededRng(1),
        random_state=0,
        **changes,
    )


def test_small_tables_are_trained_denoised_and_predicted_by_one_thread(eight_cores, monkeypatch):
    seen = []

    class Watching:
        def train(self, problem):
            seen.append(pools())
            return make_booster("xgboost", {"n_estimators": 3}).train(problem)

    X, y = people(600)
    plain = encoded_rows.in_threads
    monkeypatch.setattr(
        encoded_rows,
        "in_threads",
        lambda work, size, count: (seen.append({count}), plain(work, size, count)),
    )
    kind = type(make_booster("xgboost").train(Problem(np.eye(9), np.arange(9), "regression")))
    predict = kind.predict
    monkeypatch.setattr(
        kind, "predict", lambda self, X: (seen.append(pools()), predict(self, X))[1]
    )
    with ThreadpoolController().limit(limits=4):  # as if there were more cores
        model = classifier(Watching(), denoise=True).fit(X, y)
        assert len(seen) > 2  # the loops of the denoiser, and the booster
        model.predict(X)
        assert pools() == {4}
    assert all(found == {1} for found in seen)


@pytest.mark.parametrize("booster", ["xgboost", "lightgbm", "hist-gbdt"])
def test_results_do_not_depend_on_the_number_of_threads(booster, monkeypatch):
    X, y = people(3000)
    params = {"max_iter" if booster == "hist-gbdt" else "n_estimators": 5}
    found = {}
    for cores in (1, 3):
        monkeypatch.setattr(threads, "most_threads", lambda cores=cores: cores)
        monkeypatch.setattr(threads, "CELLS_PER_THREAD", 1)
        monkeypatch.setattr(encoded_rows, "UNIT_ROWS", 512)
        encoded_rows._pool.cache_clear()
        with ThreadpoolController().limit(limits=cores):
            model = classifier(booster, denoise=True, booster_params=params).fit(X, y)
            found[cores] = model.predict_proba(X), model.predict_proba(X[:300], desensitize=True)
    for one, three in zip(found[1], found[3], strict=True):
        np.testing.assert_allclose(three, one, atol=1e-6)
