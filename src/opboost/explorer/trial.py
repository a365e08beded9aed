"""Measure accuracy against ε on a sample of a table: without noise, on noisy rows, denoised.

Nothing leaves the machine.  But the results depend on private rows, so the guarantee does not cover
a choice that is based on them.

A page runs this as a process, ``python -m opboost.explorer.trial``, which reads one JSON object and
writes one JSON object per line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.boosting import Problem, Task, make_booster
from opboost.columns.private_column import PrivateColumn
from opboost.config import Plan
from opboost.config.columns_file import parse
from opboost.errors import ColumnError, DataError, OpBoostError
from opboost.estimators.boosted import OpBoostClassifier, kind_for
from opboost.explorer.trial_process import SAMPLE_ROWS, TrialResult, Way
from opboost.files.read_tables import column_names, table_files
from opboost.files.whole_table import label_of, read_table
from opboost.mechanisms import Mechanism
from opboost.randomness.streams import SeededRng
from opboost.training.task_metric import METRICS, metric

MAX_ROWS_READ = 50_000
"""The sample is drawn from at most this many rows at the start of the table."""

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
"""The levels to try, as multiples of the chosen one."""

TRAINING_THREADS = max(1, (os.cpu_count() or 1) - 1)
"""Threads for training; the page keeps one for itself."""

TREES: dict[str, dict[str, Any]] = {
    "xgboost": {"n_estimators": 60, "max_depth": 3, "nthread": TRAINING_THREADS},
    "hist-gbdt": {"max_iter": 60},
}


def tried(source: Path, plan: Plan, label: str, *, seed: int = 0) -> Iterator[TrialResult]:
    """Train and measure one model at a time; yield its score on noise-free held-out rows."""
    private = [c for c in plan.private if c.name != label]
    sample = sample_rows(source, plan, label, seed)
    y, names = label_of(sample, label), [str(c.name) for c in private]
    kind = kind_for(y, "auto")
    classes = np.unique(y) if kind is OpBoostClassifier else np.zeros(0)
    X, cut = sample.select(names), 2 * len(y) // 3
    if len(y) < 60 or (len(classes) and set(classes) != set(np.unique(y[:cut]))):
        raise DataError(
            f"{len(y)} rows without missing values are too few for a trial",
            hint="Give 60 or more, with some of every class.",
        )
    task: Task = "regression" if not len(classes) else "multiclass"
    task = "binary" if len(classes) == 2 else task
    booster = "xgboost" if find_spec("xgboost") else "hist-gbdt"
    of, done = 1 + 2 * len(FACTORS), 1

    def result(way: Way, level: float | None, predicted: Any) -> TrialResult:
        return TrialResult(
            way, level, metric(task, predicted, coded[cut:]), METRICS[task], done, of, len(y)
        )

    numbers = np.column_stack([X.column(n).to_numpy() for n in names]).astype(np.float32)
    coded = np.searchsorted(classes, y) if len(classes) else y.astype(np.float64)
    problem = Problem(numbers[:cut], coded[:cut], task, len(classes), seed=seed)
    plain = make_booster(booster, TREES[booster]).train(problem)
    yield result("plain", None, plain.predict(numbers[cut:]))
    for factor in FACTORS:
        columns = tuple(c.scaled(factor) for c in private)
        level = factor * _level(private[0])
        for way in ("naive", "denoised"):
            estimator = kind(
                columns,
                booster=booster,
                booster_params=TREES[booster],
                denoise=way == "denoised",
                random_state=seed,
                noise_rng=SeededRng(seed).child(repr(factor)),
            ).fit(X[:cut], y[:cut])
            done += 1
            rest = X[cut:]
            predicted = (
                estimator.predict_proba(rest)
                if isinstance(estimator, OpBoostClassifier)
                else estimator.predict(rest)
            )
            yield result("naive" if way == "naive" else "denoised", level, predicted)


def _level(column: PrivateColumn) -> float:
    mechanism = column.mechanism
    nominal = mechanism.nominal_epsilon() if isinstance(mechanism, Mechanism) else mechanism.epsilon
    return 1.0 if nominal is None else nominal


def sample_rows(source: Path, plan: Plan, label: str, seed: int) -> pa.Table:
    """Sample the rows of a trial from a table in files."""
    names = column_names(table_files(source)[0])
    wanted = [*(str(c.name) for c in plan.private if c.name != label), label]
    for name in wanted:
        if name not in names:
            raise ColumnError(name, "is not in the table", hint=f"It has {', '.join(names)}.")
    if len(wanted) < 2:
        raise DataError("No column but the label has bounds", hint="Declare one more.")
    private = [c for c in plan.private if c.name != label]
    table = read_table(source, private, most=MAX_ROWS_READ).select(wanted).drop_null()
    order = np.random.default_rng(seed).permutation(len(table))[:SAMPLE_ROWS]
    return table.take(pa.array(order))


def main() -> None:
    """Read a trial's settings from standard input, and print each result as soon as it is known."""
    if hasattr(os, "nice"):
        os.nice(10)  # the page has priority
    asked = json.load(sys.stdin)
    try:
        plan = parse(asked["toml"], "the page")
        for result in tried(Path(asked["table"]), plan, asked["label"]):
            print(json.dumps(asdict(result)), flush=True)
    except OpBoostError as error:
        words = error.logged if isinstance(error, DataError) else str(error)
        print(json.dumps({"problem": words}), flush=True)


if __name__ == "__main__":
    main()
