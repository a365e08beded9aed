"""``guarantee_`` counts all releases of the same rows that a process can know of, and names those
that it cannot count."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import stat
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import opboost as op
from opboost.boosting import make_booster
from opboost.budgets import release_counts
from opboost.budgets.release_accounting import COPIED, LOADED
from opboost.budgets.release_counts import CHILD, LOST, SENT
from opboost.errors import DataError

GRID = op.Domain(1, 10)
M = op.ClampMap(GRID, epsilon=0.64)
BOUNDS = {"age": (17, 90), "income": (0, 10_000)}
ONE = 2 * 5.76  # the total of one release of both columns


def people(rows=60, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"age": rng.uniform(17, 90, rows), "income": rng.uniform(0, 1e4, rows)})
    return table, (table["age"] > 50).astype(int).to_numpy()


def classifier(mechanism=M, **changes):
    settings = {"bounds": BOUNDS, "booster": "gbdt", "booster_params": {"n_estimators": 2}}
    return op.OpBoostClassifier(mechanism, **{**settings, "denoise": False, **changes})


def desensitizer(**changes):
    return op.Desensitizer(changes.pop("mechanism", M), bounds=BOUNDS, **changes)


def assert_released(made, times, *notes):
    """The total, the caveats and the printed form all state this number of releases."""
    guarantee = made.guarantee_
    assert guarantee.total == pytest.approx(times * ONE)
    added = f"all {times} releases of equal rows, added up as if each row were one person"
    assert list(guarantee.covers) == [added] * (times > 1)
    assert list(guarantee.caveats) == list(notes)
    said = [line for line in str(guarantee).splitlines() if "covered: " in line]
    covered = [f"covered: {what}" for what in guarantee.covers]
    assert said == covered + [f"not covered: {note}" for note in notes]


# The same table object is drawn once.


class Watching:
    """A booster that keeps the rows it was given."""

    def train(self, problem):
        self.seen, self.held = problem.X.copy(), problem.eval_set
        return make_booster("xgboost").train(problem)


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, lambda t: t.to_numpy()])
def test_the_training_table_is_drawn_once_in_eval_set_and_prediction(kind):
    table, y = people(300)
    X = kind(table)
    booster = Watching()
    bounds = BOUNDS if hasattr(X, "columns") else {0: (17, 90), 1: (0, 10_000)}
    clf = classifier(op.ClampMap(GRID, 0.1), booster=booster, booster_params=None, bounds=bounds)
    clf.fit(X, y, eval_set=(X, y))
    assert np.array_equal(booster.held[0], booster.seen)
    drawn = clf.model_matrix(X, units="grid", desensitize=True)
    codes = np.column_stack([np.unique(c, return_inverse=True)[1] for c in np.asarray(drawn).T])
    assert np.array_equal(codes, booster.seen)
    assert np.array_equal(clf.model_matrix(X, units="grid", desensitize=True), drawn)
    clf.predict(X, desensitize=True)
    assert clf.releases_ == 1
    assert clf.guarantee_.total == pytest.approx(2 * 0.9)


def test_a_regressor_draws_its_training_table_once_too():
    X, _ = people(300)
    reg = op.OpBoostRegressor(M, bounds=BOUNDS, booster="gbdt").fit(X, X["age"])
    reg.predict(X, desensitize=True)
    assert_released(reg, 1)


def test_columns_of_each_row_are_chosen_once():
    X, y = people(300)
    clf = classifier(budget=op.Budget.sampled(1), booster="hist-gbdt", booster_params=None)
    clf.fit(X, y)
    first = clf.model_matrix(X, units="grid", desensitize=True)
    assert np.array_equal(
        np.isnan(first), np.isnan(clf.model_matrix(X, units="grid", desensitize=True))
    )
    assert clf.releases_ == 1
    assert clf.guarantee_.columns_per_row == 1
    clf.model_matrix(X.copy(), units="grid", desensitize=True)
    assert clf.guarantee_.columns_per_row is None  # both columns of a row may have been sent


# Every new draw of the same rows is counted.


def test_held_out_copies_and_later_predictions_count():
    X, y = people()
    clf = classifier(booster="xgboost", booster_params=None)
    clf.fit(X, y, eval_set=(X.copy(), y), early_stopping_rounds=2)
    assert_released(clf, 2)
    clf.predict(X[10:20], desensitize=True)
    assert_released(clf, 3)
    assert clf.releases_ == 3
    other, _ = people(seed=1)
    clf.predict(other, desensitize=True)
    assert_released(clf, 3)


def test_what_others_release_later_counts_for_those_before():
    X, y = people()
    first = classifier().fit(X, y)
    assert_released(first, 1)
    classifier().fit(X[:30], y[:30])
    assert_released(first, 2)


CHANGED = {
    "a copy": lambda X: X.copy(),
    "a subset": lambda X: X[X["income"].notna()],
    "shuffled": lambda X: X.sample(frac=1, random_state=0),
    "32-bit floats": lambda X: X.astype(np.float32),
    "columns in another order": lambda X: X[["income", "age"]],
    "polars": pl.DataFrame,
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED)
@pytest.mark.filterwarnings("ignore::opboost.DroppedIndexWarning")
def test_the_same_rows_in_another_form_are_the_same_rows(change):
    X, _ = people()
    X.loc[3, "income"] = np.nan  # a gap in the table does not change the count of other rows
    X.loc[4, "age"] = -0.0
    flag = {"income": op.Flag(1.0, 5000)}
    first = desensitizer(missing=flag)
    first.fit_transform(X)
    once = first.guarantee_
    again = desensitizer(missing=flag)
    again.fit_transform(change(X))
    assert again.guarantee_.total == pytest.approx(2 * once.total)
    assert "covered: all 2 releases of equal rows" in str(again.guarantee_)


def test_rows_without_names_and_categories_in_another_order_are_the_same_rows():
    X, y = people()
    classifier().fit(X, y)
    plain = classifier(bounds={0: (17, 90), 1: (0, 10_000)}).fit(X.to_numpy(), y)
    assert plain.releases_ == 2
    sizes = pd.DataFrame({"size": ["S", "M", "L", None]})
    for order in (["S", "M", "L", None], [None, "L", "M", "S"]):
        d = op.Desensitizer({"size": op.UnaryEncoding(order, 1.0)})
        d.fit_transform(sizes)
    assert d.guarantee_.total == pytest.approx(2.0)


def test_a_transformer_counts_like_an_estimator():
    X, _ = people()
    d = desensitizer().fit(X)
    assert_released(d, 1)  # what one release promises, before any is made
    assert d.releases_ == 0
    d.transform(X)
    d.transform(X)
    assert_released(d, 1)
    d.transform(X.copy())
    assert_released(d, 2)
    assert d.releases_ == 2
    classifier().fit(X, people()[1])
    assert_released(d, 3)


def test_each_release_adds_what_it_promised_itself():
    """A search whose candidates have different levels."""
    X, y = people()
    search = GridSearchCV(
        classifier(), {"mechanism": [op.ClampMap(GRID, 0.1), op.ClampMap(GRID, 5.0)]}, cv=3
    ).fit(X, y)
    search.best_estimator_.set_params(mechanism=op.ClampMap(GRID, 0.1)).fit(X, y)
    level = 2 * 0.1 + 2 * 5.0 + 0.1  # two of three folds each, the last fit, and an earlier refit
    level += search.best_params_["mechanism"].epsilon
    assert search.best_estimator_.guarantee_.total == pytest.approx(2 * 9 * level)
    assert search.best_estimator_.releases_ == 6


def test_a_seeded_release_leaves_no_promise():
    X, y = people()
    seeded = classifier(noise_rng=op.SeededRng(7)).fit(X, y)
    seeded.predict(X.copy(), desensitize=True)
    assert str(seeded.guarantee_) == "none: seeded"
    classifier(op.GlobalMap(GRID, 0.1), noise_rng=op.SeededRng(7)).fit(X, y)
    real = classifier().fit(X, y)
    assert str(real.guarantee_) == "none: equal rows were also released 3 times, seeded"
    assert real.guarantee_.total == np.inf
    assert real.releases_ == 4
    assert str(seeded.guarantee_) == "none: seeded"
    assert_released(classifier().fit(*people(seed=1)), 1)


def test_columns_released_beside_others_are_named():
    """Rows are matched by all private columns; a release of only some of them becomes a caveat."""
    X, y = people()
    classifier(bounds={"age": (17, 90)}).fit(X, y)
    both = classifier().fit(X, y)
    words = "releases of 'age' together with other private columns are not counted"
    assert_released(both, 1, words)
    apart = X.rename(columns=str.upper)
    other = classifier(bounds={"INCOME": (0, 10_000)}).fit(apart, y)
    assert other.guarantee_.caveats == ()


# Threads, searches, worker processes.


def test_a_search_that_refits_adds_its_releases_up():
    X, y = people(90)
    assert_released(classifier().fit(X, y), 1)
    grid = {"booster_params": [{"n_estimators": 1}, {"n_estimators": 2}]}
    search = GridSearchCV(classifier(), grid, cv=3).fit(X, y)
    # Each row was in two of three folds for two candidates, in the refit, and in one earlier fit.
    assert_released(search.best_estimator_, 1 + 2 * 2 + 1)


def test_threads_count_together():
    X, y = people(90)
    with joblib.parallel_backend("threading", n_jobs=2):
        found = cross_validate(classifier(), X, y, cv=3, return_estimator=True)["estimator"]
    for clf in found:
        assert_released(clf, 2)
    d = desensitizer().fit(X)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: d.transform(X.copy()), range(8)))
    assert_released(d, 2 + 1 + 7)


@pytest.fixture
def workers():
    """Yield two joblib worker processes that end with the test."""
    with joblib.parallel_backend("loky", n_jobs=2) as (backend, _):
        yield
    backend.terminate()
    joblib.externals.loky.get_reusable_executor().shutdown(wait=True)


@pytest.mark.filterwarnings("ignore::opboost.DroppedIndexWarning")
def test_a_search_in_worker_processes_counts_what_they_released(workers):
    X, y = people(90)
    grid = {"booster_params": [{"n_estimators": 1}, {"n_estimators": 2}]}
    search = GridSearchCV(classifier(), grid, cv=3, n_jobs=2).fit(X, y)
    assert_released(search.best_estimator_, 2 * 2 + 1, SENT)
    flow = make_pipeline(desensitizer(), DecisionTreeClassifier())
    deep = {"decisiontreeclassifier__max_depth": [1, 2]}
    other, label = people(90, seed=5)
    found = GridSearchCV(flow, deep, cv=3, n_jobs=2).fit(other, label)
    # The held-out fold is transformed too, so each row is drawn in three of three.
    assert_released(found.best_estimator_[0], 2 * 3 + 1, SENT)


def test_estimators_that_workers_fitted_say_what_they_cannot_know(workers):
    X, y = people(90)
    found = cross_validate(classifier(), X, y, cv=3, return_estimator=True, n_jobs=2)["estimator"]
    for clf in found:
        assert clf.guarantee_.total >= ONE
        assert COPIED in clf.guarantee_.caveats
        assert f"not covered: {COPIED}" in str(clf.guarantee_)
    assert_released(classifier().fit(X, y), 3, SENT)


def test_dask_workers_report_too():
    dask = pytest.importorskip("dask")
    X, y = people(90)
    task = dask.delayed(classifier().fit)(X, y)
    (back,) = dask.compute(task, scheduler="processes", num_workers=1)
    assert_released(back, 1, COPIED)
    assert_released(classifier().fit(X, y), 2, SENT)


def _fit_and_tell(clf, X, y, pipe):
    pipe.send(str(clf.fit(X, y).guarantee_))
    pipe.send(str(clone(clf).fit(X, y).guarantee_))


@pytest.mark.parametrize("start", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_child_processes_report_and_say_what_they_cannot_know(start):
    X, y = people(90)
    before = classifier().fit(X, y)
    context = multiprocessing.get_context(start)
    here, there = context.Pipe()
    child = context.Process(target=_fit_and_tell, args=(classifier(), X, y, there))
    child.start()
    told = [here.recv() for _ in range(2)]
    child.join()
    assert all(f"not covered: {CHILD}" in words for words in told)
    known = 1 if start == "fork" else 0  # a forked child knows its parent's releases
    assert f"covered: all {2 + known} releases of equal rows" in told[1]
    assert_released(before, 3, *[SENT] * (start == "spawn"))
    assert_released(classifier().fit(X, y), 4, *[SENT] * (start == "spawn"))


# Pickles, copies and files.


def test_an_unpickled_estimator_says_so_and_holds_no_hash_of_a_row():
    X, y = people(500)
    clf = classifier().fit(X, y)
    clf.predict(X.copy(), desensitize=True)
    stored = pickle.dumps(clf)
    assert_released(clf, 2, SENT)  # releases by the copy may not be counted
    again = pickle.loads(stored)
    assert_released(again, 2, COPIED)
    assert len(pickle.dumps(clf.desensitizer_)) < 8 * len(X)  # too small for eight bytes per row
    again.predict(X, desensitize=True)  # the pickle does not hold the release, so this is another
    assert again.releases_ > clf.releases_ - 1
    assert again.guarantee_.total >= 3 * ONE


def test_a_copy_in_this_process_says_so_and_counts_on():
    X, _ = people()
    d = desensitizer()
    d.fit_transform(X)
    deep = copy.deepcopy(d)
    assert_released(deep, 1, COPIED)
    deep.transform(X)
    assert_released(d, 2)
    assert deep.guarantee_.total >= 2 * ONE


def test_a_release_that_joblib_keeps_is_found_by_the_next_process(tmp_path):
    """Otherwise each run of a notebook would draw again."""
    X, y = people()
    flow = make_pipeline(desensitizer(), DecisionTreeClassifier(), memory=str(tmp_path))
    flow.fit(X, y)
    release_counts.begin_anew()
    flow = make_pipeline(desensitizer(), DecisionTreeClassifier(), memory=str(tmp_path))
    assert_released(flow.fit(X, y)[0], 1, COPIED)
    assert flow[0].releases_ == 0  # it made no release itself


def test_a_loaded_estimator_says_so_and_knows_all_levels(tmp_path):
    X, y = people()
    classifier(op.ClampMap(GRID, 5.0)).fit(X, y)
    clf = classifier(budget=op.Budget.sampled(1), booster="hist-gbdt", booster_params=None)
    clf.fit(X, y)
    stated = clf.guarantee_
    clf.save(tmp_path / "m.opboost")
    release_counts.begin_anew()
    again = op.load(tmp_path / "m.opboost")
    assert again.guarantee_.parts == stated.parts
    assert again.guarantee_.caveats == (*stated.caveats, LOADED)
    assert again.releases_ == 2
    again.predict(X, desensitize=True)
    assert again.releases_ == 3
    assert again.guarantee_.total == pytest.approx(stated.total + ONE)
    again.save(tmp_path / "n.opboost")
    assert op.load(tmp_path / "n.opboost").guarantee_ == again.guarantee_
    seeded = classifier(noise_rng=op.SeededRng(7)).fit(X, y)
    seeded.save(tmp_path / "s.opboost")
    assert str(op.load(tmp_path / "s.opboost").guarantee_) == "none: seeded"


def test_a_file_of_another_version_is_refused_with_both(tmp_path):
    X, y = people()
    classifier().fit(X, y).save(tmp_path / "m.opboost")
    with zipfile.ZipFile(tmp_path / "m.opboost") as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(files["estimator.json"])
    files["estimator.json"] = json.dumps(about | {"version": 3}).encode()
    with zipfile.ZipFile(tmp_path / "new.opboost", "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    with pytest.raises(DataError, match="is of version 3; this release reads versions 1 and 2"):
        op.load(tmp_path / "new.opboost")


# The folder in which processes report to one another.


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """Fit a copy as another process would; return the register, the folder of reports, a pickle."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    release_counts.begin_anew()
    X, y = people()
    clf = classifier()
    stored = pickle.dumps(clf)
    home, release_counts._register = (
        release_counts._register,
        release_counts.Register(),
    )  # the other process
    pickle.loads(stored).fit(X, y)
    (folder,) = tmp_path.iterdir()
    return home, folder, stored


def test_reports_are_for_the_user_alone_and_hold_no_value(sent):
    _, folder, _ = sent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (report,) = folder.iterdir()
    assert stat.S_IMODE(report.stat().st_mode) == 0o600
    X, _ = people()
    with np.load(report) as arrays:
        assert set(arrays) == {"keys", "counts", "terms"}
        assert len(arrays["keys"]) == len(X)
        words = set(arrays["keys"].tolist())
    for kind, bits in ((np.float64, np.uint64), (np.float32, np.uint32)):
        values = np.ascontiguousarray(X.to_numpy(dtype=kind)).view(bits).ravel()
        assert not words & set(values.tolist())


def test_reports_that_are_damaged_or_gone_are_named(sent):
    home, folder, _ = sent
    release_counts._register = home
    X, y = people()
    assert_released(classifier().fit(X, y), 2, SENT)
    (report,) = folder.iterdir()
    report.write_bytes(report.read_bytes()[:100])
    clf = classifier().fit(X, y)
    assert_released(clf, 2, SENT, LOST)
    report.unlink()
    folder.rmdir()
    assert_released(clf, 2, SENT, LOST)


def test_a_release_that_cannot_be_reported_is_refused(sent, monkeypatch):
    _, folder, stored = sent
    X, y = people()
    (report,) = folder.iterdir()
    report.unlink()
    report.mkdir()  # a folder instead of the report, which no file can replace
    with pytest.raises(DataError, match=r"The release cannot be counted: .*set TMPDIR"):
        classifier().fit(X, y)
    report.rmdir()
    folder.rmdir()  # the other process has ended, so there is no process to report to
    assert_released(classifier().fit(X, y), 2, CHILD)
    assert_released(pickle.loads(stored).fit(X, y), 3, CHILD)


def test_a_mechanism_that_no_file_describes_is_counted_without_a_promise(sent):
    home, _, _ = sent

    class Own(op.ClampMap):
        """A user-defined mechanism."""

    X, y = people()
    classifier(Own(GRID, 0.64)).fit(X, y)
    release_counts._register = home
    assert str(classifier().fit(X, y).guarantee_) == (
        "none: equal rows were also released 1 times, in another process, by a mechanism that no "
        "file describes"
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a separate process")
def test_the_folder_goes_when_the_process_ends(tmp_path):
    code = """
import os, pickle, tempfile
import opboost as op
d = op.Desensitizer(op.ClampMap(op.Domain(1, 10), 1.0), bounds=(0, 1))
pickle.dumps(d)
assert os.listdir(tempfile.gettempdir())
if os.fork() == 0:
    raise SystemExit  # a child that ends leaves its parent's folder alone
os.wait()
assert os.listdir(tempfile.gettempdir())
"""
    source = Path(op.__file__).parents[1]
    environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, env=environment)
    assert list(tmp_path.iterdir()) == []
