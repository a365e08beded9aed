"""Train on a file and predict for a file, on one machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray
from opboost.config import Plan
from opboost.errors import ColumnError, ConfigError, DataError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.boosted import kind_for
from opboost.files.read_tables import column_names, table_files
from opboost.files.whole_table import label_of, read_table

MIN_ROWS = 20
"""Fewer rows than this are refused: a model of them would tell about them alone."""


def train(
    source: Path, plan: Plan, label: str, task: str = "auto"
) -> OpBoostClassifier | OpBoostRegressor:
    """Fit the plan's booster on a file; private columns are desensitised on the way."""
    if plan.booster.memory == "external":
        raise ConfigError(
            f"{plan.source}: memory = 'external' is for the label party of a job, whose codes lie "
            "on disk. Leave it out of [booster] here: one machine trains in memory."
        )
    names = column_names(table_files(source)[0])
    if label not in names:
        raise ColumnError(label, "is to be the label but is not in the table")
    if label in {str(c.name) for c in plan.private} | set(plan.drop):
        raise ColumnError(label, f"is the label and has another role in {plan.source} too")
    plan.check_names([n for n in names if n != label], own=True)
    table = read_table(source, plan.private).drop_columns(list(plan.drop))
    y = label_of(table, label)
    if len(y) < MIN_ROWS:
        raise DataError(f"{len(y)} rows are too few to train on", hint=f"Give {MIN_ROWS} or more.")
    estimator = kind_for(y, task)(
        plan.private,
        budget=plan.budget,
        booster=plan.booster.kind,
        booster_params=dict(plan.booster.params),
        random_state=plan.booster.seed,
        denoise=plan.booster.denoise,
    )
    return estimator.fit(table.drop_columns([label]), y)


def predict(
    estimator: OpBoostClassifier | OpBoostRegressor, source: Path, *, desensitize: bool
) -> pa.Table:
    """Predictions for the rows of a file, one column, or one more for each class."""
    wanted = list(estimator.feature_names_in_)
    names = column_names(table_files(source)[0])
    for name in wanted:
        if name not in names:
            raise ColumnError(
                name,
                "is needed by the model but is not in the table",
                hint="Add it to the table; where another party holds it, predict --with-peers.",
            )
    table = read_table(source, estimator.desensitizer_.columns_).select(wanted)
    prediction = estimator.predict(table, desensitize=desensitize)
    if not isinstance(estimator, OpBoostClassifier):
        return prediction_table(prediction)
    chances = estimator.predict_proba(table, desensitize=desensitize)
    return prediction_table(prediction, estimator.classes_, chances)


def prediction_table(
    prediction: np.ndarray[Any, Any],
    classes: np.ndarray[Any, Any] | None = None,
    chances: FloatArray | None = None,
) -> pa.Table:
    """A column of predictions, and for a classifier one more for each class."""
    out: dict[str, Any] = {"prediction": prediction}
    if classes is not None and chances is not None:
        out |= {f"probability={c}": chances[:, j] for j, c in enumerate(classes)}
    return pa.table(out)
