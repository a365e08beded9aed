"""A user's own table as a data set; its label decides the task."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from opboost.config import Plan
from opboost.config import load as load_plan
from opboost.config.csv_format import PLAIN_CSV
from opboost.errors import ColumnError, DataError
from opboost.estimators import OpBoostRegressor
from opboost.estimators.boosted import kind_for
from opboost.files.read_tables import column_names, local_files
from opboost.files.whole_table import label_of, read_table
from opboost.grid import NumericMapping, OrdinalMapping
from opboost_lab.data.datasets import DataSet, halves

FEW_ROWS = 100
"""Tables with fewer rows are refused: a fifth of them is too few to judge a model."""
MANY_CLASSES = 50
MANY_VALUES = 100
"""A text column with more different values holds names or keys, and is left out."""

LEAK = (
    "The bounds of {columns} were taken from the table itself. That reveals the extremes of real "
    "people, and no guarantee covers it, so use this only on data that you may see. Declare public "
    "bounds in a TOML file and give it with -c before anything is released."
)


def own_table(path: Path, label: str, config: Path | None = None) -> DataSet:
    """Return the table, split once.

    Columns that the configuration does not mention are the label party's own.  Without a
    configuration, every numeric column is private, with bounds from the data.
    """
    plan = None if config is None else load_plan(config)
    form, private, drop = (plan.data, plan.private, plan.drop) if plan else (PLAIN_CSV, (), ())
    names = column_names(local_files(path)[0], form)
    if label not in names:
        raise ColumnError(
            label, "is to be the label but is not in the table", hint=f"It has {', '.join(names)}."
        )
    if plan is not None:
        if label in {str(c.name) for c in private} | set(drop):
            raise ColumnError(label, f"is the label and has another role in {plan.source} too")
        plan.check_names([n for n in names if n != label], own=True)
    table = read_table(path, private, form=form)
    y = label_of(table, label)
    if len(y) < FEW_ROWS:
        said = f"{path.name} has {len(y)} rows, too few to compare models on"
        raise DataError(said, hint=f"Give {FEW_ROWS} or more.")
    task = _task(y, label)
    bounds, categories = _declared(plan) if plan else (_inferred(table, label), {})
    if not bounds:
        said = f"{path.name} has no numeric column that could be private"
        raise DataError(said, hint="Give a table with one, or declare its bounds with -c.")
    kept = _filled(table, bounds, categories, label, drop)
    return DataSet(path.name, task, bounds, *halves(kept), label, categories)


def digest(path: Path, config: Path | None = None) -> str:
    """Return a digest of a table's files and configuration, by which results are stored."""
    known = hashlib.sha256()
    for file in [*local_files(path), *([config] if config else [])]:
        try:
            with file.open("rb") as opened:
                known.update(hashlib.file_digest(opened, "sha256").digest())
        except OSError as error:
            raise DataError(f"{file} cannot be read: {error.strerror}") from None
    return known.hexdigest()


def _task(y: np.ndarray[tuple[int], np.dtype[np.generic]], label: str) -> str:
    different = len(np.unique(y))
    if different < 2:
        raise ColumnError(label, "is the label and is the same in every row")
    if kind_for(y, "auto") is OpBoostRegressor:
        return "regression"
    if different > MANY_CLASSES:
        raise ColumnError(
            label,
            f"is the label and is text with {different} different values",
            hint=f"Give one with at most {MANY_CLASSES} classes, or numbers.",
        )
    return "binary" if different == 2 else "multiclass"


def _declared(plan: Plan) -> tuple[dict[str, tuple[float, float]], dict[str, Any]]:
    bounds: dict[str, tuple[float, float]] = {}
    categories: dict[str, Any] = {}
    for c in plan.private:
        if isinstance(c.mapping, NumericMapping):
            bounds[str(c.name)] = c.mapping.bounds
        elif isinstance(c.mapping, OrdinalMapping):
            categories[str(c.name)] = c.mapping.order
        else:
            categories[str(c.name)] = list(getattr(c.mechanism, "categories", ()))
    return bounds, categories


def _inferred(table: pa.Table, label: str) -> dict[str, tuple[float, float]]:
    bounds = {}
    for name in table.column_names:
        if name != label and _numeric(table.column(name).type):
            low, high = pc.min_max(table.column(name)).as_py().values()
            if low is not None and np.isfinite([low, high]).all() and low < high:
                bounds[name] = (float(low), float(high))
    return bounds


def _filled(
    table: pa.Table,
    bounds: dict[str, tuple[float, float]],
    categories: dict[str, Any],
    label: str,
    drop: tuple[str, ...],
) -> pa.Table:
    """Return the used columns; a missing value becomes the middle of the bounds, or a word."""
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if name in bounds:
            columns[name] = pc.fill_null(column.cast(pa.float64()), sum(bounds[name]) / 2)
        elif name == label or name in categories:
            columns[name] = column
        elif name in drop or column.null_count == len(column):
            continue
        elif _numeric(column.type) or pa.types.is_boolean(column.type):
            columns[name] = column.cast(pa.float64())
        elif len(pc.unique(column)) <= MANY_VALUES:
            columns[name] = pc.fill_null(column.cast(pa.string()), "missing")
    return pa.table(columns)


def _numeric(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
