"""Repeated IDs are counted, however much of the table is in memory."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opboost.columns.duplicate_ids import MAX_BYTES_IN_MEMORY, DuplicateIds

pieces = st.lists(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 3)), max_size=20))


@settings(max_examples=30)
@given(pieces)
def test_repeats_are_those_of_a_set(pieces):
    with DuplicateIds() as names:
        for piece in pieces:
            names.add(np.array(piece, dtype=np.uint64).reshape(-1, 2))
        everything = [name for piece in pieces for name in piece]
        assert names.repeats() == len(everything) - len(set(everything))


@pytest.mark.parametrize("max_bytes", [1, MAX_BYTES_IN_MEMORY])
def test_a_name_that_comes_back_much_later_is_found_in_a_file_too(tmp_path, max_bytes):
    rng = np.random.default_rng(0)
    with DuplicateIds(tmp_path, max_bytes=max_bytes) as names:
        first = rng.integers(0, 2**64, (1000, 2), dtype=np.uint64)
        names.add(first)
        for _ in range(30):
            names.add(rng.integers(0, 2**64, (1000, 2), dtype=np.uint64))
        assert names.repeats() == 0
        names.add(first[[7, 900]])
        assert names.repeats() == 2
