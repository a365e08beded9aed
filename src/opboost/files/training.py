"""Train on a file and predict for a file, on one machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.columns import PrivateColumn
from opboost.config import Plan
from opboost.errors import ColumnError, DataError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.boosted import kind_for
from opboost.files.describe import parsed
from opboost.files.reading import column_names, csv_types, kind_of, pieces, table_files

FEW_ROWS = 20
"""Fewer rows than this are refused: a model of them would tell about them alone."""


def read_table(
    source: Path, private: Sequence[PrivateColumn], text: Sequence[str] = ()
) -> pa.Table:
    """A whole table in memory, CSV columns as what they look like; those of ``text`` as text."""
    tables = []
    for file in table_files(source):
        found = list(pieces(file, csv_types(private)))
        if not found:
            raise DataError(f"{file.name} has no rows")
        tables.append(pa.concat_tables(found))
    table = pa.concat_tables(tables)
    if kind_of(table_files(source)[0]) == "csv":
        declared = {*(str(c.name) for c in private), *text}
        for i, name in enumerate(table.column_names):
            if name not in declared:
                table = table.set_column(i, name, parsed(table.column(i))[0])
    return table


def train(
    source: Path, plan: Plan, label: str, task: str = "auto"
) -> OpBoostClassifier | OpBoostRegressor:
    """Fit the plan's booster on a file; private columns are desensitised on the way."""
    names = column_names(table_files(source)[0])
    if label not in names:
        raise ColumnError(label, "is to be the label but is not in the table")
    if label in {str(c.name) for c in plan.private} | set(plan.drop):
        raise ColumnError(label, f"is the label and has another role in {plan.source} too")
    plan.check_names([n for n in names if n != label], own=True)
    table = read_table(source, plan.private).drop_columns(list(plan.drop))
    y = label_of(table, label)
    if len(y) < FEW_ROWS:
        raise DataError(f"{len(y)} rows are too few to train on", hint=f"Give {FEW_ROWS} or more.")
    estimator = kind_for(y, task)(
        plan.private,
        budget=plan.budget,
        booster=plan.booster.kind,
        booster_params=dict(plan.booster.params),
        random_state=plan.booster.seed,
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
            raise ColumnError(name, "is needed by the model but is not in the table")
    table = read_table(source, estimator.desensitizer_.columns_).select(wanted)
    out: dict[str, Any] = {"prediction": estimator.predict(table, desensitize=desensitize)}
    if isinstance(estimator, OpBoostClassifier):
        chances = estimator.predict_proba(table, desensitize=desensitize)
        for j, c in enumerate(estimator.classes_):
            out[f"probability={c}"] = chances[:, j]
    return pa.table(out)


def label_of(table: pa.Table, label: str) -> np.ndarray[Any, Any]:
    """The label's column, without gaps."""
    column = table.column(label)
    if column.null_count:
        raise ColumnError(
            label,
            "is the label and has missing values",
            detail=f"{column.null_count} of {len(column)} rows",
            hint="Drop those rows.",
        )
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    return np.array(column.to_pylist())
