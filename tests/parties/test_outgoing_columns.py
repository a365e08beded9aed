"""A feature party's streams hold exactly the values that it added."""

from __future__ import annotations

import numpy as np
import pytest

from opboost.columns.dataframes import OutColumn
from opboost.parties.feature.outgoing_columns import OutgoingColumns
from opboost.protocol.stored_columns import read_column

ROWS = 700
RNG = np.random.default_rng(8)
VALUES = {
    "bytes": RNG.integers(0, 256, ROWS).astype(np.uint8),
    "signed": RNG.integers(-128, 128, ROWS).astype(np.int8),
    "two bytes": RNG.integers(0, 2**16, ROWS).astype(np.uint16),
    "four bytes": RNG.integers(-(2**31), 2**31, ROWS).astype(np.int32),
    "few of a wide grid": RNG.choice([-(2**59), 5, 2**59], ROWS),
}
GAPS = {"none": None, "some": RNG.random(ROWS) < 0.3, "all": np.ones(ROWS, dtype=bool)}


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("gaps", GAPS)
@pytest.mark.parametrize("kind", VALUES)
def test_values_and_gaps_come_out_as_they_went_in(tmp_path, kind, gaps, ordered):
    values, missing = VALUES[kind], GAPS[gaps]
    order = RNG.permutation(ROWS) if ordered else None
    outgoing = OutgoingColumns(tmp_path)
    for piece in (slice(0, 300), slice(300, ROWS)):
        gone = None if missing is None else missing[piece]
        outgoing.add([OutColumn("x", values[piece], gone)])
    [file] = outgoing.coded(withheld=[False], order=order)
    _, column = read_column(file)
    rows = slice(None) if order is None else order
    gone = np.zeros(ROWS, dtype=bool) if missing is None else missing[rows]
    assert ((column.missing if missing is not None else gone) == gone).all()
    if not gone.all():
        assert (column.values[~gone] == values[rows][~gone]).all()
