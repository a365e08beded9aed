"""Models as ONNX files, and tables as the inputs that such a file expects."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from opboost.columns.dataframes import Encoded, as_numbers, categories, column
from opboost.columns.date_columns import as_days, holds_dates
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError
from opboost.grid import NumericMapping
from opboost.promises import Joint, NoGuarantee
from opboost.runtime.extras import needs_extra
from opboost.storage import atomic_files
from opboost.training.feature_matrix import Layout, OwnColumn
from opboost.training.trained_model import TrainedModel


def save_onnx(
    model: TrainedModel, order: Sequence[Hashable], promise: Joint | NoGuarantee, path: Path
) -> None:
    """Write the ONNX file of a model whose table has these columns, completely or not at all."""
    with needs_extra("onnx", "save_onnx"):
        from opboost.training.onnx_graph import onnx_model
    about = {
        "guarantee": str(promise),
        "record_total": f"{promise.total:.6g}" if math.isfinite(promise.total) else "none",
    }
    made = onnx_model(model.trained, model.layout, order, model.labels, about)
    atomic_files.write(path, made.SerializeToString())


def onnx_inputs(
    layout: Layout, order: Sequence[Hashable], table: Any
) -> dict[str, np.ndarray[Any, Any]]:
    """Return a table's columns by the names of the ONNX file's inputs, each of shape [n, 1]."""
    with needs_extra("onnx", "onnx_inputs"):
        from opboost.training.onnx_graph import category_table, table_columns
    found = {}
    for declared in table_columns(layout, order):
        known = category_table(declared)
        if known is None:
            values = _numbers(table, declared)
        else:
            values = _texts(declared, categories(table, declared.name), is_text=known.is_text)
        found[str(declared.name)] = values[:, None]
    return found


def _numbers(table: Any, declared: PrivateColumn | OwnColumn) -> np.ndarray[Any, Any]:
    """Return numbers as doubles, dates as days since 1970-01-01."""
    if isinstance(declared, OwnColumn):
        dates = holds_dates(table, declared.name)
    else:
        assert isinstance(declared.mapping, NumericMapping)
        dates = declared.mapping.unit is not None
    if dates:
        return as_days(table, declared.name)
    return as_numbers(declared.name, column(table, declared.name)).astype(np.float64)


def _texts(
    declared: PrivateColumn | OwnColumn, rows: Encoded, *, is_text: bool
) -> np.ndarray[Any, Any]:
    """Return categories as text with "" for a gap, or as whole numbers, which allow no gap."""
    gaps = bool((rows.codes < 0).any())
    if gaps and (not is_text or "" in rows.values):
        raise ColumnError(
            declared.name,
            "has gaps, which ONNX cannot tell from its categories",
            hint="Fill them, or write its categories as text, none of them empty, before training.",
        )
    if not is_text:
        return np.array([*rows.values, 0], dtype=np.int64)[rows.codes]
    return np.array([*map(str, rows.values), ""], dtype=object)[rows.codes]
