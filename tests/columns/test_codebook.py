from __future__ import annotations

import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

import opboost as op
from opboost.columns.codebook import Codebook, encode

columns = st.lists(st.integers(-30, 300), min_size=1, max_size=60)
cuts = st.floats(-5, 70) | st.integers(-5, 70).map(float) | st.sampled_from([math.inf, -math.inf])


@given(columns, cuts)
def test_a_value_parts_rows_as_the_cut_did(values, cut):
    codes, book = encode(values)
    below, at_most = book.value_of(cut), book.last_of(cut)
    for code, value in zip(codes.tolist(), values, strict=True):
        assert (code < cut) == (value < below)
        assert (code <= cut) == (value <= at_most)


@given(columns, cuts, st.integers(-100, 400))
def test_values_that_training_never_showed_fall_between_their_neighbours(values, cut, unseen):
    _, book = encode(values)
    sides = [code < cut for code in range(len(book))]
    went_left = unseen < book.value_of(cut)
    smaller = [s for v, s in zip(book.values, sides, strict=True) if v <= unseen]
    larger = [s for v, s in zip(book.values, sides, strict=True) if v >= unseen]
    if smaller and not smaller[-1]:
        assert not went_left  # a smaller value goes right, so this one does too
    if larger and larger[0]:
        assert went_left
    assert (book.places([unseen])[0] < cut) == went_left


@given(columns)
def test_codes_are_dense_narrow_and_go_back(values):
    codes, book = encode(values)
    assert book.decode(codes).tolist() == values
    assert set(codes.tolist()) == set(range(len(book)))
    assert codes.dtype == np.uint8
    assert encode(np.array(values) * 10**9)[1].values.tolist() == (book.values * 10**9).tolist()


def test_wide_columns_take_wider_codes():
    assert encode(np.arange(300))[0].dtype == np.uint16
    assert encode(np.arange(300, dtype=np.int16))[1] == Codebook(np.arange(300))


def test_bad_books_and_codes_are_refused():
    with pytest.raises(op.DataError, match="must increase"):
        Codebook(np.array([3, 3]))
    with pytest.raises(op.DataError, match="at least one"):
        Codebook(np.array([], dtype=int))
    with pytest.raises(op.DataError, match=r"outside 0\.\.1"):
        Codebook(np.array([3, 9])).decode([2])
    with pytest.raises(op.DataError, match="column of integers; got float64"):
        encode([1.5])
