"""Train on a file and predict for a file, on one machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray, IntArray
from opboost.boosting import Task
from opboost.boosting.booster import Booster
from opboost.columns.codebook import distinct
from opboost.config import Plan
from opboost.config.csv_format import PLAIN_CSV, CsvFormat
from opboost.config.sections import DEFAULT_HELD_OUT
from opboost.errors import ColumnError, ConfigError, DataError
from opboost.estimators import OpBoostClassifier, OpBoostRegressor
from opboost.estimators.boosted import kind_for
from opboost.files.predict_without import check_left_out, columns_of, predicted_without
from opboost.files.read_tables import column_names, table_files
from opboost.files.unknown_categories import unknown_as_missing
from opboost.files.whole_table import label_of, read_table
from opboost.sources.table_address import TableAddress
from opboost.training.task_metric import METRICS, metric

MIN_TRAINING_ROWS = 20
"""Training refuses fewer rows than this, because a model would only memorise them."""


def train(
    source: TableAddress,
    plan: Plan,
    label: str,
    task: str = "auto",
    continue_from: OpBoostClassifier | OpBoostRegressor | None = None,
    *,
    booster: str | Booster | None = None,
) -> OpBoostClassifier | OpBoostRegressor:
    """Desensitise the private columns of a file, and fit the plan's booster to it.

    With ``continue_from``, the fit adds trees to that model on these new rows.  ``booster`` is the
    booster on the cluster that the plan names.
    """
    if plan.booster.memory == "external":
        raise ConfigError(
            f"{plan.source}: memory = 'external' is for the label party of a job, whose codes are "
            "on disk. Leave it out of [booster] here: one machine trains in memory."
        )
    names = column_names(table_files(source)[0], plan.data)
    if label not in names:
        raise ColumnError(label, "should be the label but is not in the table")
    if label in {str(c.name) for c in plan.private} | set(plan.drop):
        raise ColumnError(label, f"is the label and has another role in {plan.source} too")
    plan.check_names([n for n in names if n != label], own=True)
    table = read_table(source, plan.private, form=plan.data).drop_columns(list(plan.drop))
    y = label_of(table, label)
    if len(y) < MIN_TRAINING_ROWS:
        raise DataError(
            f"{len(y)} rows are too few to train on", hint=f"Give {MIN_TRAINING_ROWS} or more."
        )
    if len(distinct(y)) < 2:
        raise ColumnError(
            label,
            "is the label and holds only one value, so there is nothing to learn",
            hint="Give rows of both kinds, or another label.",
        )
    kind = kind_for(y, task) if continue_from is None else type(continue_from)
    estimator = kind(
        None if plan.record else plan.private,
        budget=plan.record or plan.budget,
        booster=booster or plan.booster.kind,
        booster_params=dict(plan.booster.params),
        random_state=plan.booster.seed,
        denoise=plan.booster.denoise,
        held_out=plan.train.held_out,
    )
    estimator.label_column_ = label
    rows = table.drop_columns([label])
    if plan.train.early_stopping is None:
        return estimator.fit(rows, y, continue_from=continue_from)
    seen, held = _watching(y, plan.train.held_out or DEFAULT_HELD_OUT, plan.booster.seed)
    return estimator.fit(
        rows.take(seen),
        y[seen],
        eval_set=(rows.take(held), y[held]),
        early_stopping_rounds=plan.train.early_stopping,
        continue_from=continue_from,
    )


def _watching(y: np.ndarray[Any, Any], share: float, seed: int | None) -> tuple[IntArray, IntArray]:
    """Return random rows for training, and random rows for early stopping."""
    order = np.random.default_rng(seed).permutation(len(y))
    count = max(1, round(share * len(y)))
    return np.sort(order[count:]), np.sort(order[:count])


def predict(
    estimator: OpBoostClassifier | OpBoostRegressor,
    source: TableAddress,
    *,
    desensitize: bool,
    form: CsvFormat = PLAIN_CSV,
    keep: Sequence[str] = (),
    unknown: Callable[[dict[str, int]], None] | None = None,
    without: Sequence[str] = (),
) -> pa.Table:
    """Return predictions for the rows of a file: one column, and one per class for a classifier.

    The columns of ``keep`` come first, unchanged.  Undeclared categories of private columns are
    refused; with ``unknown`` they count as missing, and ``unknown`` is called with their number per
    column.  The columns of parties in ``without`` need not be in the file.
    """
    check_left_out(estimator, without)
    wanted = list(columns_of(estimator, without) if without else estimator.feature_names_in_)
    names = column_names(table_files(source)[0], form)
    for name in wanted:
        if name not in names:
            raise ColumnError(
                name,
                "is needed by the model but is not in the table",
                hint="Add it to the table; if another party holds it, predict --with-peers.",
            )
    for name in keep:
        if name not in names:
            raise ColumnError(
                name, "should be kept but is not in the table", hint=f"It has {names}."
            )
    private = [c for c in estimator.desensitizer_.columns_ if c.name in wanted]
    whole = read_table(source, private, text=[n for n in keep if n not in wanted], form=form)
    table = whole.select(wanted)
    if unknown is not None:
        table, counts = unknown_as_missing(table, private)
        unknown(counts)
    kept = whole.select(list(dict.fromkeys(keep)))
    if without:
        return _beside(kept, _without(estimator, table, without))
    prediction = estimator.predict(table, desensitize=desensitize)
    if isinstance(estimator, OpBoostClassifier):
        chances = estimator.predict_proba(table, desensitize=desensitize)
        found = prediction_table(prediction, estimator.classes_, chances)
    else:
        found = prediction_table(prediction)
    return _beside(kept, found)


def _without(
    estimator: OpBoostClassifier | OpBoostRegressor, table: pa.Table, without: Sequence[str]
) -> pa.Table:
    found = predicted_without(estimator, table, without)
    if not isinstance(estimator, OpBoostClassifier):
        return prediction_table(found)
    likeliest = np.asarray(estimator.classes_[found.argmax(axis=1)])
    return prediction_table(likeliest, estimator.classes_, found)


def _beside(kept: pa.Table, found: pa.Table) -> pa.Table:
    """Return the kept columns, then the predictions; refuse a name that both have."""
    for name in kept.column_names:
        if name in found.column_names:
            raise ColumnError(name, "should be kept, but a prediction has the same name")
    columns = {t: table.column(t) for table in (kept, found) for t in table.column_names}
    return pa.table(columns)


def score_of(
    estimator: OpBoostClassifier | OpBoostRegressor,
    source: TableAddress,
    predictions: pa.Table,
    form: CsvFormat = PLAIN_CSV,
) -> str | None:
    """Return a sentence that scores predictions against a file's label; None without a label."""
    label, names = estimator.label_column_, column_names(table_files(source)[0], form)
    if label is None or label not in names:
        return None
    labels = read_table(source, [], skip=[name for name in names if name != label], form=form)
    return score_line(estimator, labels, predictions)


def score_line(
    estimator: OpBoostClassifier | OpBoostRegressor, rows: pa.Table | None, predictions: pa.Table
) -> str | None:
    """Return a sentence that scores predictions against the rows' label; None without a label."""
    label = estimator.label_column_
    if rows is None or label is None or label not in rows.column_names:
        return None
    try:
        y = label_of(rows, label)
    except ColumnError as error:
        return f"No score: {error}"
    if not isinstance(estimator, OpBoostClassifier):
        if y.dtype.kind not in "iufb" or len(y) < 2 or np.ptp(y) == 0:
            return "No score: R² needs labels that are different numbers"
        found = predictions.column("prediction").to_numpy()
        return f"R² on {len(y):,} labelled rows: {metric('regression', found, y):.3f}"
    classes = estimator.classes_
    place = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    if (classes[place] != y).any():
        return "No score: the label holds a class that the model does not know"
    task: Task = "binary" if len(classes) == 2 else "multiclass"
    if task == "binary" and len(np.unique(place)) < 2:
        return "No score: AUC needs rows of both classes"
    chances = np.column_stack([predictions.column(f"probability={c}") for c in classes])
    return f"{METRICS[task]} on {len(y):,} labelled rows: {metric(task, chances, place):.3f}"


def prediction_table(
    prediction: np.ndarray[Any, Any],
    classes: np.ndarray[Any, Any] | None = None,
    chances: FloatArray | None = None,
) -> pa.Table:
    """Return a column of predictions, and one per class for a classifier."""
    out: dict[str, Any] = {"prediction": prediction}
    if classes is not None and chances is not None:
        out |= {f"probability={c}": chances[:, j] for j, c in enumerate(classes)}
    return pa.table(out)
