"""Compare training on all rows of the label party with training on the common rows.

The label party holds the first, third, ... column, and a feature party the others.  The feature
party knows a random share of the people.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.parties.channel import MemoryChannel
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.label.label_party import LabelParty
from opboost.psi.align_rules import RowChoice
from opboost.training.feature_matrix import OwnTable
from opboost_lab.accuracy import MEASURES, parted, scores, trained_plainly
from opboost_lab.data.datasets import DataSet
from opboost_lab.declared_sets import all_private, feature_plan, label_settings

MAX_TRAINED_ROWS = 12_000
"""The label party gets at most this many rows, so that five seeds take minutes."""

MAX_TEST_ROWS = 8_000


@dataclass(frozen=True, slots=True)
class PartlyKnown:
    """The task's measure on clean test rows, of three models.

    Attributes:
        common: A model of the common rows.
        own: A model of the label party's own columns and all its rows.
        mine: A model of all its rows and all columns.
    """

    common: float
    own: float
    mine: float


@cache
def partly_known(name: str, total: float, seed: int, overlap: float = 0.3) -> PartlyKnown:
    """Train all three models; the seed picks the rows, the common ones, and the booster's seed."""
    data, rng = all_private(parted(name, seed)), np.random.default_rng(seed)
    train, test = _some(data.train, rng, MAX_TRAINED_ROWS), _some(data.test, rng, MAX_TEST_ROWS)
    data = replace(data, train=train, test=test)
    X, y, _, _ = data.split()
    own, theirs = X.column_names[::2], X.column_names[1::2]
    known = rng.permutation(len(y)) < overlap * len(y)
    plan = feature_plan(data, theirs, total, "shop")

    def trained(rows: RowChoice) -> Any:
        here = np.ones(len(y), dtype=np.bool_) if rows == "mine" else known
        table, some = X.filter(pa.array(here)), known[here]
        columns = {n: _emptied(table.column(n), ~some) for n in theirs}
        shop = FeatureParty(pa.table(columns), plan, name="shop", rows=rows)
        bank = LabelParty(table.select(own), y[here], rows=rows, **label_settings(data, seed))
        return bank.train([MemoryChannel(shop)])

    common, mine, measure = trained("common"), trained("mine"), MEASURES[data.task]
    return PartlyKnown(
        scores(data, common)[measure],
        _own_alone(data, X.select(own), seed)[measure],
        scores(data, mine)[measure],
    )


def _own_alone(data: DataSet, own: pa.Table, seed: int) -> dict[str, float]:
    columns = OwnTable.of(own).columns

    def matrix(table: pa.Table) -> Any:
        return np.hstack([c.block(table).astype(np.float32) for c in columns])

    return trained_plainly(data, matrix, seed=seed)


def _some(table: pa.Table, rng: np.random.Generator, most: int) -> pa.Table:
    return table.take(pa.array(np.sort(rng.permutation(table.num_rows)[:most])))


def _emptied(column: Any, rows: Any) -> pa.Array:
    values = column.combine_chunks()
    return pa.compute.if_else(pa.array(rows), pa.scalar(None, values.type), values)
