"""A trial run on made-up rows, which checks that training can succeed before anybody releases."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from opboost.boosting import make_booster
from opboost.boosting.booster import Problem, fit_booster
from opboost.training.targets import Target

MADE_UP_ROWS, MADE_UP_COLUMNS = 64, 2

ROWS_A_TREE = "rows_a_tree"
"""A parameter for rows on disk, removed because the made-up rows are in memory."""

_ROUNDS = {"hist-gbdt": "max_iter"}
"""Boosters' own names for the number of trees, where it is not ``n_estimators``."""


def rehearse_training(booster: Any, params: Mapping[str, Any] | None, target: Target) -> None:
    """Train and save one tree on made-up rows, so that errors appear now and not after the job.

    The labels are taken from the target and include every class, because an objective may not
    accept all of them.  A booster object from the caller is not tried.
    """
    if not isinstance(booster, str):
        return
    given = {name: value for name, value in (params or {}).items() if name != ROWS_A_TREE}
    one_tree = {**given, _ROUNDS.get(booster, "n_estimators"): 1}
    y = _some(target)
    rows = np.random.default_rng(0).integers(0, 10, (len(y), MADE_UP_COLUMNS)).astype(np.float32)
    problem = Problem(rows, y, target.task, target.classes, seed=0)
    trained = fit_booster(make_booster(booster, one_tree), problem)
    trained.cuts()
    with tempfile.TemporaryDirectory(prefix="opboost-rehearsal-") as folder:
        trained.save(Path(folder) / "model.json")


def _some(target: Target) -> np.ndarray[Any, Any]:
    """Return labels of a target from the smallest to the largest, each class at least once."""
    if target.classes:
        return np.arange(max(MADE_UP_ROWS, 2 * target.classes)) % target.classes
    ordered = np.sort(target.y)
    return ordered[np.linspace(0, len(ordered) - 1, MADE_UP_ROWS).astype(np.int64)]
