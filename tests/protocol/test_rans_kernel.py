"""The decoder never reads beyond the words it is given."""

from __future__ import annotations

import numpy as np
import pytest

from opboost.protocol.entropy_coding import Coder
from opboost.protocol.rans_kernel import STATES, decode_symbols


@pytest.mark.parametrize("rows", [1, STATES - 1, STATES, 8 * STATES + 3, 500])
def test_words_behind_the_end_are_not_read(rows):
    symbols = np.random.default_rng(rows).integers(0, 200, rows).astype(np.uint8)
    coder = Coder.of_counts(np.bincount(symbols, minlength=200))
    words = np.frombuffer(coder.encode(symbols), dtype="<u4")
    out = np.empty(rows, dtype=np.uint8)
    table = (coder.frequencies, coder._starts, coder._lookup, coder.precision, out)
    assert decode_symbols(words, *table) == len(words)
    assert (out == symbols).all()
    for size in range(len(words)):  # the words that are cut off follow immediately in memory
        assert decode_symbols(words[:size], *table) == -1
