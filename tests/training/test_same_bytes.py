"""The same release and the same ``random_state`` give the same model, byte for byte."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd

import opboost as op
from opboost.boosting import booster, make_booster
from opboost.boosting.booster import trains_beside
from opboost.budgets import release_counts
from opboost.denoise import maximisation_kernel, mixture_kernel
from opboost.runtime import threads
from opboost.runtime.child_processes import python_command
from opboost.runtime.compiling import CompiledLoop
from opboost.training import denoised_rows

ROWS = 1_200
ROOT = Path(__file__).parents[2]


def people() -> tuple[pd.DataFrame, np.ndarray]:
    """Return dependent columns, so that latent classes are fitted, too."""
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 3, ROWS)
    table = pd.DataFrame(
        {
            "id": range(ROWS),
            "age": 20.0 + 25 * kind + rng.normal(0, 3, ROWS),
            "pay": 10.0 + 30 * (kind == 1) + rng.normal(0, 4, ROWS),
            "town": np.array(["north", "south", "east"])[kind],
            "own": rng.normal(size=ROWS),
        }
    )
    return table, table["pay"] + 20 * (kind == 2) + rng.normal(0, 5, ROWS)


PRIVATE = {
    "bounds": {"age": (0, 100), "pay": (-20, 80)},
    "categories": {"town": ["north", "south", "east"]},
}


def digest(model: op.OpBoostRegressor) -> str:
    """Return the digest of the saved file."""
    assert model.denoised_
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.opboost"
        model.save(file)
        return hashlib.sha256(file.read_bytes()).hexdigest()


def estimator(kind: str = "xgboost") -> str:
    release_counts.begin_anew()  # otherwise the second model of a process would count two releases
    table, y = people()
    model = op.OpBoostRegressor(
        **PRIVATE,
        budget=op.Budget.record(20.0, task="regress"),
        booster=kind,
        booster_params=None if kind == "hist-gbdt" else {"n_estimators": 10},
        denoise=True,
        random_state=3,
        noise_rng=op.SeededRng(7),
    )
    return digest(model.fit(table.drop(columns="id"), y))


def federation(folder: Path) -> str:
    """Train by-party trees with a ledger that keeps its draws; return the model's digest."""
    table, y = people()
    plan = op.RecordPlan.of(op.Budget.record(20.0, task="regress"), **PRIVATE)
    with op.Ledger(folder / "ledger", folder / "key", op.Caps(person=50.0)) as ledger:
        theirs = table[["id", "age", "pay", "town"]]
        shop = op.FeatureParty(theirs, plan.columns, ledger=ledger, ids="id", name="shop")
        bank = op.LabelParty(
            table[["own"]],
            y,
            ids=table["id"].tolist(),
            booster_params={"n_estimators": 10},
            structure="by-party",
            denoise=True,
            held_out=0,
            random_state=3,
        )
        return digest(bank.train([op.MemoryChannel(shop)]))


def test_three_fits_are_the_same_one_of_them_in_a_fresh_process(tmp_path: Path) -> None:
    kinds = ("xgboost", "lightgbm", "hist-gbdt")
    here = [*map(estimator, kinds), federation(tmp_path)]
    assert [*map(estimator, kinds), federation(tmp_path)] == here
    code = (
        f"from {__name__} import *\n"
        f"print(*map(estimator, {kinds}), federation(Path({str(tmp_path)!r})))"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7"}
    command = python_command("-W", "ignore", "-c", code)
    there = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert there.stdout.split() == here, there.stderr


def test_compiled_functions_that_round_freely_are_inlined_where_they_are_called() -> None:
    """Otherwise a process that compiles and one that reads the cache may link different copies."""
    kernels = {**vars(mixture_kernel), **vars(maximisation_kernel)}
    loops = {n: f for n, f in kernels.items() if isinstance(f, CompiledLoop)}
    compiled = {n: f.dispatcher() for n, f in loops.items()}
    free = {n for n, f in compiled.items() if f.targetoptions.get("fastmath")}
    called = {n for f in compiled.values() for n in f.py_func.__code__.co_names} & free
    assert {"_weigh", "_outputs", "_smoothed"} <= called
    assert {n for n in called if compiled[n].targetoptions.get("inline") != "always"} == set()


def test_a_comparison_is_the_same_with_both_trainings_side_by_side(monkeypatch):
    table, y = people()
    table, calls = table.drop(columns=["id", "town"]), []

    def fitted(cores: int) -> tuple[str, str]:
        release_counts.begin_anew()
        monkeypatch.setattr(threads, "most_threads", lambda: cores)
        monkeypatch.setattr(booster, "most_threads", lambda: cores)
        model = op.OpBoostRegressor(
            op.ClampMap(op.Domain(1, 10), epsilon=0.1),
            bounds={"age": (0, 100), "pay": (-20, 80)},
            booster_params={"n_estimators": 10, "subsample": 0.7},
            random_state=3,
            noise_rng=op.SeededRng(7),
        ).fit(table, y)
        return repr(model.verdict_), digest(model)

    watched = denoised_rows.side_by_side
    monkeypatch.setattr(
        denoised_rows, "side_by_side", lambda *both: (calls.append(both), watched(*both))[1]
    )
    one, two = fitted(1), fitted(2)
    assert len(calls) == 1
    assert one == two


def test_boosters_whose_threads_a_user_names_train_one_after_the_other(monkeypatch):
    monkeypatch.setattr(threads, "most_threads", lambda: 2)
    monkeypatch.setattr(booster, "most_threads", lambda: 2)
    assert trains_beside(make_booster("xgboost"), 99_999, 199_999)
    assert not trains_beside(make_booster("xgboost"), 99_999, 200_000)
    assert not trains_beside(make_booster("xgboost", {"n_jobs": 1}), 1, 1)
    assert not trains_beside(make_booster("lightgbm"), 1, 1)
