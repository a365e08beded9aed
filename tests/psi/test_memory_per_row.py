"""The memory per row while rows are matched, and afterwards."""

from __future__ import annotations

import tracemalloc
import weakref

import numpy as np
import pyarrow as pa

from opboost.psi.common_rows import Common, in_shared_order
from opboost.psi.row_keys import Digests, key_digests
from opboost.psi.table_keys import Keys


def digests_of(rows: int) -> Digests:
    return key_digests([str(i).encode() for i in range(rows)])


def test_digests_of_many_keys_take_little_more_than_their_bytes():
    keys = pa.array([str(i).encode() for i in range(200_000)], pa.large_binary())
    tracemalloc.start()
    try:
        found = key_digests(keys)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found[-3:] == digests_of(200_000)[-3:]).all()
    assert peak < found.nbytes + 5_000_000  # all keys as Python objects would take 30 MB more


def test_the_shared_order_of_some_rows_is_the_one_that_is_stored():
    digests, rng = digests_of(500), np.random.default_rng(0)
    for size in (1, 2, 250, 500):
        rows = rng.permutation(500)[:size]
        stored = Common.from_bytes(Common.of(digests, rows).to_bytes())
        assert in_shared_order(digests, rows).tolist() == stored.rows(digests).tolist()


def test_chosen_rows_keep_no_digests_and_read_the_keys_again_for_another_nonce():
    reads = 0

    def pieces():
        nonlocal reads
        reads += 1
        yield [b"ann", b"bob"]
        yield [b"cid", b"dan"]

    keys, rows, first, second = Keys(4, pieces), np.array([3, 0]), bytes(32), bytes([1] * 32)
    digests = keys.digests()
    expected = Keys.of_digests(digests.copy(), rows)
    chosen, kept = keys.chosen(rows, digests, first), weakref.ref(digests)
    del digests
    assert kept() is None
    assert (len(chosen), chosen.digest(first), reads) == (2, expected.digest(first), 1)
    assert (chosen.digest(second), reads) == (expected.digest(second), 2)
