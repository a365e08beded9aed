"""Rewritten models of every backend load in the stock library and predict the same bits."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import opboost as op
from opboost.boosting import Problem, make_booster
from opboost.boosting.lightgbm_backend import TrainedLightGBM
from opboost.boosting.sklearn_backend import TrainedSklearn
from opboost.boosting.training_curve import curve
from opboost.boosting.xgboost_backend import TrainedXGBoost
from opboost.columns.codebook import encode

BACKENDS = [
    ("xgboost", {"tree_method": "hist"}),
    ("xgboost", {"tree_method": "exact"}),
    ("xgboost", {"tree_method": "approx"}),
    ("xgboost", {"booster": "dart", "rate_drop": 0.1}),
    ("lightgbm", {}),
    ("gbdt", {}),
    ("hist-gbdt", {}),
]
TASKS = ["binary", "multiclass", "regression"]
IDS = [f"{b}-{'-'.join(map(str, p.values()))}" for b, p in BACKENDS]


def data(task, gaps, n=600):
    rng = np.random.default_rng(3)
    grid = rng.choice([1, 2, 4, 5, 7, 8, 10], size=(n, 3))
    own = rng.normal(size=(n, 2)).astype(np.float32)
    if gaps:
        own[rng.random((n, 2)) < 0.15] = np.nan
    signal = grid[:, 0] + grid[:, 1] + np.nan_to_num(own[:, 0])
    if task == "regression":
        return grid, own, signal.astype(np.float64)
    cuts = np.quantile(signal, [0.5] if task == "binary" else [0.33, 0.66])
    return grid, own, np.searchsorted(cuts, signal)


def trained(backend, params, task, gaps=False, **more):
    grid, own, y = data(task, gaps)
    coded = [encode(grid[:, j]) for j in range(3)]
    X = np.column_stack([*(c for c, _ in coded), own]).astype(np.float32)
    V = np.column_stack([grid, own]).astype(np.float32)
    booster = make_booster(
        backend, {"n_estimators": 12, **params} if "hist" not in backend else params
    )
    model = booster.train(Problem(X, y, task, len(np.unique(y)), seed=1, **more))
    books = {j: book for j, (_, book) in enumerate(coded)}
    by = {j: b.last_of if model.left_up_to else b.value_of for j, b in books.items()}
    return model, model.replaced(by), X, V, books, y


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(("backend", "params"), BACKENDS, ids=IDS)
def test_the_rewritten_model_predicts_bit_for_bit_as_the_model_in_codes(
    backend, params, task, gaps
):
    if gaps and backend == "gbdt":
        with pytest.raises(op.DataError, match=r"takes no missing values.*hist-gbdt"):
            trained(backend, params, task, gaps)
        return
    model, rewritten, X, V, books, _ = trained(backend, params, task, gaps)
    assert (model.predict(X) == rewritten.predict(V)).all()
    assert not (model.predict(X) == model.predict(V)).all()  # rewriting changed something
    for feature, cuts in rewritten.cuts().items():
        if feature in books:
            known = {float(v) for v in books[feature].values}
            assert {c for c in cuts if abs(c) < 1e30} <= known


SKOPS = (
    "import skops.io as s; m = s.load(f, trusted=s.get_untrusted_types(file=f)); p = m.predict(X)"
)
LOADERS = {
    "xgboost": "import xgboost; b = xgboost.Booster(); b.load_model(f); p = b.inplace_predict(X)",
    "lightgbm": "import lightgbm; p = lightgbm.Booster(model_file=f).predict(X)",
    "gbdt": SKOPS,
    "hist-gbdt": SKOPS,
}


@pytest.mark.parametrize("backend", LOADERS)
def test_the_file_loads_in_the_stock_library_without_us(backend, tmp_path):
    model, rewritten, X, V, _, _ = trained(backend, {}, "regression")
    np.save(tmp_path / "x.npy", V)
    for name, strip in (("whole.json", False), ("stripped.json", True)):
        rewritten.save(tmp_path / name, strip=strip)
    script = (
        "import sys, numpy as np; X = np.load('x.npy')\n"
        "for f in ('whole.json', 'stripped.json'):\n"
        f"    {LOADERS[backend]}\n"
        "    np.save(f + '.npy', p)\n"
        "assert not any(m.startswith('opboost') for m in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=120, cwd=tmp_path)
    for name in ("whole.json", "stripped.json"):
        assert (np.load(tmp_path / f"{name}.npy") == model.predict(X)).all()


def test_stripping_takes_the_training_statistics_out(tmp_path):
    for backend, words in (("xgboost", "sum_hessian"), ("lightgbm", "leaf_count")):
        _, rewritten, *_ = trained(backend, {}, "binary")
        rewritten.save(tmp_path / "m", strip=True)
        text = (tmp_path / "m").read_text()
        if backend == "xgboost":
            trees = json.loads(text)["learner"]["gradient_booster"]["model"]["trees"]
            assert not any(any(t[words]) for t in trees)
        else:
            lines = [line for line in text.splitlines() if line.startswith(f"{words}=")]
            assert lines
            assert all(set(line.split("=")[1].split()) == {"0"} for line in lines)


@pytest.mark.parametrize(
    ("backend", "kind"),
    [
        ("xgboost", TrainedXGBoost),
        ("lightgbm", TrainedLightGBM),
        ("gbdt", TrainedSklearn),
        ("hist-gbdt", TrainedSklearn),
    ],
)
def test_saved_models_come_back(backend, kind, tmp_path):
    _, rewritten, _, V, _, _ = trained(backend, {}, "multiclass")
    rewritten.save(tmp_path / "m.json")
    again = kind.load(tmp_path / "m.json", "multiclass", 5)
    assert (again.predict(V) == rewritten.predict(V)).all()


class Stranger:
    """A type that a foreign file might smuggle in."""


def test_a_model_file_with_foreign_types_is_refused(tmp_path):
    _, rewritten, *_ = trained("gbdt", {}, "regression")
    rewritten.native.extra_ = Stranger()
    rewritten.save(tmp_path / "m.skops")
    with pytest.raises(op.DataError, match=r"types that OpBoost never writes: .*Stranger"):
        TrainedSklearn.load(tmp_path / "m.skops", "regression", 5)


@pytest.mark.parametrize("backend", ["xgboost", "lightgbm", "hist-gbdt"])
def test_early_stopping_watches_the_held_out_rows(backend):
    grid, own, y = data("regression", False)
    X = np.column_stack([grid, own]).astype(np.float32)
    noise = np.random.default_rng(0).normal(size=len(y)) * 20
    problem = Problem(X, noise, "regression", eval_set=(X, y), early_stopping=3, seed=1)
    short = make_booster(backend, {}).train(problem)
    whole = make_booster(backend, {}).train(Problem(X, noise, "regression", seed=1))
    assert sum(map(len, short.cuts().values())) < sum(map(len, whole.cuts().values()))


@pytest.mark.parametrize(("backend", "params"), BACKENDS, ids=IDS)
@pytest.mark.parametrize("task", TASKS)
def test_a_training_curve_ends_where_the_model_is(backend, params, task):
    grid, own, y = data(task, gaps=False)
    X = np.column_stack([grid, own]).astype(np.float32)
    rounds = {"max_iter" if backend == "hist-gbdt" else "n_estimators": 6}
    problem = Problem(X, y, task, len(np.unique(y)), seed=1)
    model = make_booster(backend, {**params, **rounds}).train(problem)
    assert model.rounds == 6
    first, last = model.staged(X, [1, 6])
    np.testing.assert_allclose(last, model.predict(X), rtol=1e-6, atol=1e-7)
    assert np.abs(first - last).max() > 0.01
    found = curve(model, problem)
    assert found.rounds == (1, 2, 3, 4, 5, 6)
    assert all(a > b for a, b in zip(found.loss, found.loss[1:], strict=False))


def test_weights_change_the_model():
    grid, own, y = data("regression", False)
    X = np.column_stack([grid, own]).astype(np.float32)
    weight = np.where(y > np.median(y), 50.0, 1.0)
    for backend in ("xgboost", "lightgbm", "gbdt", "hist-gbdt"):
        plain = make_booster(backend).train(Problem(X, y, "regression", seed=1)).predict(X)
        heavy = make_booster(backend).train(Problem(X, y, "regression", weight=weight, seed=1))
        assert not np.allclose(plain, heavy.predict(X))


def test_unknown_boosters_are_refused_and_own_ones_taken():
    with pytest.raises(op.ParameterError, match="'xgboost', 'lightgbm', 'gbdt'"):
        make_booster("catboost")
    with pytest.raises(op.ParameterError, match="must have train"):
        make_booster(7)

    class Own:
        def train(self, problem):
            return problem

    own = Own()
    assert make_booster(own) is own


def test_a_gap_in_a_row_that_gradient_boosting_predicts_is_refused():
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = make_booster("gbdt", {"n_estimators": 3}).train(Problem(X, X[:, 0], "regression"))
    X[3, 1] = np.nan
    with pytest.raises(op.DataError, match="A row has a gap, and scikit-learn's GradientBoosting"):
        model.predict(X)
