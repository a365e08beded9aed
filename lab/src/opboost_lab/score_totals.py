"""Compare predictions from released columns and from released scores, at the same total.

All columns are private and belong to one feature party.  The label party holds only the label.
"""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.grid import Ordered
from opboost.ledger import Caps, Ledger
from opboost.parties.channel import MemoryChannel
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost_lab.accuracy import MEASURES, measured, parted, scores, trained_plainly
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import all_private, feature_plan, label_settings

ID = "row"


@dataclass(frozen=True, slots=True)
class Ways:
    """The task's measure on test rows: clean, from released columns, and from released scores."""

    clean: float
    columns: float
    scores: float


@cache
def ways(name: str, total: float, seed: int) -> Ways:
    """Train at a record total, then predict test rows in all three ways at the same total."""
    data = all_private(parted(name, seed))
    X, y, X_test, y_test = data.split()
    with tempfile.TemporaryDirectory() as folder:
        known = _channel(data, X, total, Path(folder) / "train")
        settings = label_settings(data, seed)
        bank = LabelParty(None, y, ids=ids(X), structure="by-party", **settings)
        model = bank.train([known])
        new = _channel(data, X_test, total, Path(folder) / "test")
        asking = LabelParty(None, None, ids=ids(X_test), share_trees=True)
        found = asking.predict(model, [new]), asking.predict(model, [new], release="score")

    classes, measure = None if data.task == "regression" else model.classes_, MEASURES[data.task]
    columns, released = (
        measured(
            data, p.prediction if p.probabilities is None else p.probabilities, y_test, classes
        )
        for p in found
    )
    return Ways(scores(data, model)[measure], columns[measure], released[measure])


def ids(table: pa.Table) -> list[str]:
    """Return the row numbers as IDs."""
    return [str(i) for i in range(table.num_rows)]


def _channel(data: DataSet, table: pa.Table, total: float, folder: Path) -> MemoryChannel:
    """Return a channel to a party that releases all columns, or scores, at the total."""
    names = [*data.bounds, *(data.categories or {})]
    plan = feature_plan(data, names, total, "party 0")
    ledger = Ledger(folder / "ledger", folder / "key", Caps(person=100.0))
    rows = table.select(names).append_column(ID, pa.array(ids(table)))
    party = FeatureParty(rows, plan, ledger=ledger, ids=ID, name="party-0", score=total)
    return MemoryChannel(party)


@cache
def by_party_cost(name: str, seed: int) -> float:
    """Return what training without noise loses if each tree uses the columns of only one party.

    Each of two parties has every second column.  A category counts as its place in the list.
    """
    data = all_private(parted(name, seed))
    names = [*data.bounds, *(data.categories or {})]

    def numbers_of(table: pa.Table, column: str) -> Any:
        values = table.column(column)
        listed = (data.categories or {}).get(column)
        if listed is None:
            return np.asarray(values, dtype=np.float32)
        categories = listed.categories if isinstance(listed, Ordered) else listed
        place = {category: k for k, category in enumerate(categories)}
        return np.array([place[v] for v in values.to_pylist()], dtype=np.float32)

    def matrix(table: pa.Table) -> Any:
        return np.column_stack([numbers_of(table, n) for n in names])

    features = range(len(names))
    groups = (tuple(features[::2]), tuple(features[1::2]))
    together, apart = (trained_plainly(data, matrix, seed=seed, groups=g) for g in (None, groups))
    return together[MEASURES[data.task]] - apart[MEASURES[data.task]]
