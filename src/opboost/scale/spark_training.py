"""XGBoost on a Spark cluster: executors read the codes, the label party gets an ordinary model."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from opboost.boosting.booster import BLOCK_CODES, Blocks, Problem
from opboost.errors import ParameterError
from opboost.runtime.extras import needs_extra

with needs_extra("boost,spark", "Training on Spark"):
    from opboost.boosting.xgboost_backend import TrainedXGBoost, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAMES = {"seed": "random_state", "eta": "learning_rate"}
"""What Spark's estimators call some of XGBoost's parameters."""

_SETTLED = ("num_class", "nthread", "n_jobs")
"""Parameters that Spark's estimators find out, or the session decides."""


@dataclass(frozen=True)
class SparkXGBoost:
    """A booster for ``op.LabelParty`` and the estimators: ``xgboost.spark`` on a session.

    The codes go to ``folder`` as Parquet, a block at a time, and executors read them from there; it
    must be storage that all of them see.

    Args:
        session: A ``SparkSession``, whose workers have this Python (``PYSPARK_PYTHON``).
        params: XGBoost's own parameters, as ``booster_params``.
        workers: Tasks that train together.
        folder: Where the codes lie meanwhile; a temporary folder if not given, which serves a
            session on one machine.

    Like :class:`DaskXGBoost` it grows the trees of one machine up to the rounding of sums.

    ::

        session = SparkSession.builder.master("local[2]").getOrCreate()
        bank = op.LabelParty(None, y, booster=SparkXGBoost(session, {"max_depth": 3}))
    """

    session: SparkSession = field(repr=False)
    params: dict[str, Any] = field(default_factory=dict)
    workers: int = 2
    folder: str | Path | None = field(default=None, repr=False)

    def train(self, problem: Problem) -> TrainedXGBoost:
        """Write the rows, train on the session's workers, and bring the model home."""
        if problem.eval_set is not None:
            raise ParameterError("On Spark there is no eval_set. Leave early stopping out.")
        with needs_extra("boost,spark", "Training on Spark"):
            from xgboost.spark import SparkXGBClassifier, SparkXGBRegressor
        kind = SparkXGBRegressor if problem.task == "regression" else SparkXGBClassifier
        names = [f"f{j}" for j in range(problem.X.shape[1])]
        weight = {} if problem.weight is None else {"weight_col": "weight"}
        estimator = kind(
            features_col=names,
            label_col="label",
            num_workers=self.workers,
            **weight,
            **self._params(problem),
        )
        with tempfile.TemporaryDirectory(dir=self.folder, prefix="opboost-") as folder:
            _write(problem, names, Path(folder))
            rows = self.session.read.parquet(Path(folder).as_uri())
            booster = estimator.fit(rows).get_booster()
        booster.feature_names = None
        return TrainedXGBoost(booster, problem.task, len(names))

    def _params(self, problem: Problem) -> dict[str, Any]:
        found, rounds = settings(problem, self.params)
        if "objective" not in self.params:
            del found["objective"]
        for name in _SETTLED:
            found.pop(name, None)
        return {"n_estimators": rounds, **{_NAMES.get(n, n): v for n, v in found.items()}}


def _write(problem: Problem, names: list[str], folder: Path) -> None:
    """One file a block: features, label and weight."""
    for number, here in enumerate(_blocks(problem)):
        rows = problem.rows(here).astype(np.float32)
        columns = dict(zip(names, rows.T, strict=True)) | {"label": problem.y[here].astype(float)}
        if problem.weight is not None:
            columns["weight"] = problem.weight[here]
        arrays = {name: pa.array(np.ascontiguousarray(c)) for name, c in columns.items()}
        pa.parquet.write_table(pa.table(arrays), folder / f"{number:06d}.parquet")


def _blocks(problem: Problem) -> Iterator[slice]:
    if isinstance(problem.X, Blocks):
        return iter(problem.X)
    rows, columns = problem.X.shape
    step = max(1, BLOCK_CODES // max(1, columns))
    return (slice(a, min(a + step, rows)) for a in range(0, rows, step))
