"""Released records, as read by an attacker who knows the public mechanisms."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from opboost._typing import FloatArray, IntArray
from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn
from opboost.denoise import outputs_of
from opboost.estimators import Desensitizer
from opboost.mechanisms import Mechanism, NominalMechanism
from opboost.promises import Joint
from opboost.randomness.streams import SeededRng
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import declared_bounds, record_budget


@dataclass(frozen=True, slots=True, eq=False)
class ReleasedRecords:
    """People's true cells, and what their released records say about them.

    Attributes:
        cells: By column, the true cell of each person, counted from 0.
        evidence: By column, ``[person, cell]``: the log-likelihood of the person's release if this
            cell is true, up to a constant per person; 0 if nothing was sent.
        released: The release itself.
        sent: The share of people for whom each column is sent.
        total: The most that is revealed about one person.
    """

    columns: tuple[PrivateColumn, ...]
    cells: Mapping[Hashable, IntArray]
    evidence: Mapping[Hashable, FloatArray]
    released: Mapping[Hashable, list[OutColumn]]
    sent: float
    total: float

    @classmethod
    def of(cls, table: Any, transformer: Desensitizer) -> ReleasedRecords:
        """Release a table once, and read it."""
        _, released = transformer.fit_release(table)
        _, prepared = transformer.prepare(table)
        columns, plan = transformer.columns_, transformer.plan_
        per_row = None if plan is None else plan.columns_per_row
        return cls(
            columns,
            {c.name: prepared[c.name].cells.astype(np.int64) - first_cell(c) for c in columns},
            {c.name: log_likelihoods(c, released[c.name]) for c in columns},
            released,
            transformer.sent,
            Joint({c.name: c.guarantee() for c in columns}, per_row).total,
        )


def log_likelihoods(column: PrivateColumn, released: list[OutColumn]) -> FloatArray:
    """Return ``[person, cell]``: the log-likelihood of what was sent, exact up to a constant."""
    mechanism, unsent = column.mechanism, released[0].missing
    if not isinstance(mechanism, NominalMechanism):
        outputs = outputs_of(mechanism, released[0].values, unsent)
        by_output = np.log(mechanism.transition_matrix()).T
        return np.asarray(np.vstack([by_output, np.zeros(by_output.shape[1])])[outputs])
    bits = np.column_stack([part.values for part in released])
    found = np.log(mechanism.bit_odds())[(bits > 0).astype(np.int64)]
    return found if unsent is None else np.where(unsent[:, None], 0.0, found)


def first_cell(column: PrivateColumn) -> int:
    """Return the number of a column's first cell."""
    return column.mechanism.domain.L if isinstance(column.mechanism, Mechanism) else 0


def under_record_budget(data: DataSet, total: float, seed: int) -> Desensitizer:
    """Return a desensitizer that releases every column of a set under a record budget."""
    return Desensitizer(
        bounds=declared_bounds(data),
        categories=data.categories or None,
        budget=record_budget(data, total),
        noise_rng=SeededRng(seed),
    )


def some_people(data: DataSet, people: int, seed: int) -> tuple[pa.Table, Any]:
    """Return the true columns and the labels of people picked at random."""
    chosen = np.random.default_rng(seed).permutation(data.train.num_rows)[:people]
    X, y, _, _ = data.split()
    return X.take(pa.array(chosen)), y[chosen]
