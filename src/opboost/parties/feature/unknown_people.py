"""People of the label party whom a feature party does not know, in a job with ``rows = "mine"``.

In a private alignment they have no row at the feature party.  If rows are given, they have a row
whose columns are all empty: nothing is drawn, charged or sent about them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opboost._typing import BoolArray
from opboost.columns.dataframes import categories
from opboost.columns.private_column import Prepared, PrivateColumn
from opboost.errors import ColumnError, ParameterError, PeerError
from opboost.protocol.messages import Welcome
from opboost.psi.align_rules import RowChoice


def check_agreed_rows(welcome: Welcome, rows: RowChoice) -> None:
    """Refuse a label party whose choice of rows differs from what this party agreed to."""
    if welcome.rows != rows:
        raise PeerError(
            f"The label party's job has rows = {welcome.rows!r}, but this party agreed to rows = "
            f"{rows!r}. All parties need the same: [align] rows in the job file, or rows= of "
            "op.LabelParty and op.FeatureParty."
        )


def check_empty_rows(private: Sequence[PrivateColumn], *, stored: bool) -> None:
    """Refuse a table in which a known person's row could look like an unknown person's.

    A column that reports its gaps with noise hides which values are missing, but an empty row must
    show that the person is unknown.
    """
    if stored:
        raise ParameterError(
            "A stored release has no rows of unknown people. With rows = 'mine' and given rows, "
            "release the raw table; or match rows with align = 'psi'."
        )
    for column in private:
        if column.flagged() is not None:
            raise ColumnError(
                column.name,
                "reports gaps, and where rows are given and rows = 'mine', a gap would look like a "
                "person whom this party does not know",
                hint="Match rows with align = 'psi', or give the column missing = a constant.",
            )


def nobody(column: PrivateColumn, rows: int) -> Prepared:
    """Return cells for the rows of unknown people, for whom nothing is drawn."""
    kind = np.uint8 if column.mapping is None else column.mapping.domain.dtype()
    first = 0 if column.mapping is None else column.mapping.domain.L
    cells = np.full(rows, first, dtype=kind)
    return Prepared(cells, np.zeros(rows, dtype=np.bool_), 0, cells.astype(np.int64))


def known_people(piece: Any, private: Sequence[PrivateColumn]) -> BoolArray:
    """Return which rows have a value in at least one private column.

    >>> import pandas as pd, opboost as op
    >>> grid = op.Domain(1, 10)
    >>> column = op.PrivateColumn("age", op.NumericMapping(grid, (0, 99)), op.ClampMap(grid, 1.0))
    >>> known_people(pd.DataFrame({"age": [31.0, None]}), [column]).tolist()
    [True, False]
    """
    found = np.zeros(len(piece), dtype=np.bool_)
    for column in private:
        found |= categories(piece, column.name).codes >= 0
    return found
