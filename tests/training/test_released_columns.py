"""Released columns as codes: every way to read them gives the released values."""

from __future__ import annotations

import numpy as np
import pytest

import opboost as op
from opboost.columns.codebook import Codebook, CodedColumn
from opboost.columns.dataframes import OutColumn
from opboost.training.clean_states import StateCoding
from opboost.training.feature_matrix import Layout
from opboost.training.released_columns import ReleasedColumn, from_sample, rows_of

GRID = op.Domain(3, 12)
NUMBER = op.PrivateColumn("x", op.NumericMapping(GRID, (0, 1)), op.ClampMap(GRID, 1.0))
BITS = op.PrivateColumn("c", None, op.UnaryEncoding(["a", "b", "d"], 1.0))
NOTHING = np.empty((4, 0), dtype=np.uint8)
GAPS = np.array([False, True, False, True])


def sample(gaps):
    bits = {"a": [1, 0, 1, 0], "b": [0, 0, 1, 0], "d": [0, 0, 0, 0]}
    return {
        "x": [OutColumn("x", np.array([9, 0, 4, 0], np.uint8), gaps)],
        "c": [OutColumn(f"c={n}", np.array(b, np.uint8), gaps) for n, b in bits.items()],
    }


def test_a_sample_is_coded_and_read_back():
    release = from_sample([NUMBER, BITS], sample(GAPS), sent=0.5)
    x = release[0]
    assert x.parts[0].book == Codebook(np.array([4, 9]))
    assert (x.sent, len(x), x.withheld) == (0.5, 4, False)
    seen = Layout((NUMBER, BITS), ()).values(release, NOTHING)
    nan = np.nan
    wanted = [[9, 1, 0, 0], [nan] * 4, [4, 1, 1, 0], [nan] * 4]
    assert np.array_equal(seen, wanted, equal_nan=True)


def test_outputs_are_read_from_codes_whatever_the_codebook():
    coding = StateCoding.of(Layout((NUMBER, BITS), ()), (0.5, 0.5), ())
    release = from_sample([NUMBER, BITS], sample(GAPS), sent=0.5)
    outputs = coding.outputs(release, NOTHING)
    assert outputs.codes[:, 0].tolist() == [6, 10, 1, 10]  # 10 cells, then "not sent"
    assert outputs.bits.tolist() == [[1, 0, 0], [2, 0, 0], [1, 1, 0], [2, 0, 0]]
    whole = Codebook(np.arange(3, 13))  # as if the whole grid had been sent
    part = CodedColumn(np.array([6, 0, 1, 0]), whole, GAPS)
    again = coding.outputs([ReleasedColumn(NUMBER, (part,), 0.5), release[1]], NOTHING)
    assert np.array_equal(again.codes, outputs.codes)
    some = coding.outputs(rows_of(release, slice(0, 2)), NOTHING[:2])
    assert np.array_equal(some.bits, outputs.bits[:2])


def test_a_column_that_no_row_sent_is_all_gaps():
    release = from_sample(
        [NUMBER], {"x": [OutColumn("x", np.zeros(4, np.uint8), GAPS | True)]}, 0.1
    )
    seen = Layout((NUMBER,), ()).values(release, NOTHING)
    assert np.isnan(seen).all()
    coding = StateCoding.of(Layout((NUMBER,), ()), (0.1,), ())
    assert (coding.outputs(release, NOTHING).codes == 10).all()


@pytest.mark.parametrize("gaps", [None, GAPS])
def test_dense_codes_stand_for_the_same_values(gaps):
    column = CodedColumn(np.array([5, 1, 5, 9]), Codebook(np.arange(0, 20, 2)), gaps)
    dense = column.dense()
    there = slice(None) if gaps is None else ~gaps
    assert dense.values[there].tolist() == column.values[there].tolist()
    assert dense.book.values.tolist() == sorted({*column.values[there].tolist()})


def test_codes_use_the_release_up_and_values_do_not():
    release = from_sample([NUMBER, BITS], sample(None), sent=1.0)
    layout = Layout((NUMBER, BITS), ())
    layout.values(release, NOTHING)
    assert len(release) == 2
    codes, books = layout.codes(release, NOTHING)
    assert not release
    assert codes.dtype == np.uint8
    assert codes[:, 0].tolist() == [2, 0, 1, 0]
    assert books == {0: Codebook(np.array([0, 4, 9]))}
