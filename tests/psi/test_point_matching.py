"""Lists of points: their exact intersection, in memory and in files."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from opboost.errors import WireError
from opboost.psi.point_matching import PointList, common_places, order_of

# Few values per word, so that points share words, buckets, and all but one of their words.
words = st.sampled_from([0, 1, 255, 256, 2**63, 2**64 - 1])
points = st.tuples(words, words, words, words).map(lambda w: np.array(w, "<u8").tobytes())


@given(
    st.lists(points, unique=True, max_size=30),
    st.lists(points, unique=True, max_size=30),
    st.sampled_from([0, 100, 1 << 20]),
    st.integers(1, 9),
)
@settings(max_examples=60, deadline=None)
def test_common_points_are_found_where_they_stand(ours, theirs, max_bytes, piece):
    with PointList(max_bytes=max_bytes) as left, PointList(max_bytes=max_bytes) as right:
        for kept, whole in ((left, ours), (right, theirs)):
            for start in range(0, len(whole), piece):
                kept.add(b"".join(whole[start : start + piece]))
            kept.check_distinct()
            assert len(kept) == len(whole)
        a, b = common_places(left, right)
    assert [ours[i] for i in a] == [theirs[i] for i in b]
    assert {ours[i] for i in a} == set(ours) & set(theirs)
    assert len(a) == len(set(ours) & set(theirs))


@given(st.lists(points, min_size=1, max_size=20, unique=True), st.data())
@settings(max_examples=30, deadline=None)
def test_a_point_that_stands_twice_is_refused_wherever_it_stands(whole, data):
    again = data.draw(st.sampled_from(whole))
    with PointList() as kept:
        kept.add(b"".join(whole))
        kept.add(again)
        with pytest.raises(WireError, match="occurs twice"):
            kept.check_distinct()


def test_many_points_go_to_a_file_of_their_folder_and_leave_nothing(tmp_path):
    with PointList(tmp_path, max_bytes=1000) as kept:
        kept.add(np.random.default_rng(0).bytes(32 * 1000))
        kept.check_distinct()
        assert kept._file._rolled
    assert not list(tmp_path.iterdir())


@given(st.lists(st.tuples(words, words, words), max_size=40))
@settings(max_examples=60, deadline=None)
def test_rows_are_ordered_word_by_word_and_equal_ones_stay(rows):
    table = np.array(rows, np.uint64).reshape(-1, 3)
    assert order_of(table).tolist() == sorted(range(len(rows)), key=lambda i: rows[i])
