"""Leave columns that say nothing about the label out of models of wide tables.

If each person sends few of many columns, every column is known from few noisy rows.  Over a hundred
useless columns, chance correlations with the label add up and drown out the useful columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from opboost.columns.codebook import Codebook, CodedColumn
from opboost.training.column_weights import label_features, score, usefulness
from opboost.training.released_columns import ReleasedColumn
from opboost.training.targets import Target

MIN_COLUMNS = 30
"""Narrower tables keep all their columns."""

MAX_SENT_SHARE = 0.2
"""If more than this share of people send any one column, all columns are kept."""

MIN_CHANCE = 0.5
"""Columns with a smaller chance of being useful are left out, except for the most useful one."""

LEFT_OUT = 0.0
"""The value of ``sent`` that marks a column as left out."""


def screened(release: Sequence[ReleasedColumn], target: Target) -> list[ReleasedColumn]:
    """Return the columns; those that say nothing about the label are made constant.

    A column stays if it is more likely useful than not, given what all columns say.
    """
    if not is_wide([c.sent for c in release]):
        return list(release)
    labels = label_features(target)
    chance = usefulness({c.private.name: score(c, labels) for c in release})
    best = max(chance.values())
    least = min(MIN_CHANCE, best)
    return [c if chance[c.private.name] >= least else constant(c) for c in release]


def is_wide(sent: Sequence[float]) -> bool:
    """Return whether a table is so wide, and so sparsely sent, that useless columns do harm."""
    return len(sent) >= MIN_COLUMNS and all(share <= MAX_SENT_SHARE for share in sent)


def constant(column: ReleasedColumn) -> ReleasedColumn:
    """Return the column without a value in any row, so that no tree can split on it."""
    rows = len(column)
    gaps = np.ones(rows, dtype=np.bool_)
    parts = []
    for part in column.parts:
        assert part.book is not None
        book = Codebook(part.book.values[:1])
        parts.append(CodedColumn(np.zeros(rows, dtype=np.uint8), book, gaps))
    return replace(column, parts=tuple(parts), sent=LEFT_OUT)
