"""The cost of a draw must not depend on the value: neither its random words nor the probability of
the slow path."""

from __future__ import annotations

import numpy as np
import pytest

import opboost as op
from opboost.distributions import IntegerTable
from opboost.distributions.alias_kernel import THRESHOLD_BITS, flagged_rows
from opboost.mechanisms.mechanism import distribution_of
from robustness.audits.side_channels import ALONE, CountedRng, words_taken

TABLES = {
    name: distribution_of(m)
    for name, m in ALONE.items()
    if isinstance(m, op.Mechanism) and isinstance(distribution_of(m), IntegerTable)
}


@pytest.mark.parametrize("name", ALONE)
def test_every_column_takes_the_same_number_of_random_words(name):
    rows = 20_000  # more than one chunk
    taken = words_taken(ALONE[name], rows)
    assert len(taken) >= 3
    (words,) = set(taken.values())
    assert words % rows == 0
    assert words >= rows


def test_a_draw_that_depended_on_the_data_would_be_seen():
    class Rejecting(op.ClampMap):
        def sample(self, x, rng=None, **how):
            source = rng.open()
            for value in x[:100]:
                source.words(1 + int(value), 0, 1)
            return x

    taken = words_taken(Rejecting(op.Domain(1, 10), 0.5), 100)
    assert len(set(taken.values())) > 1


def test_choosing_the_columns_of_each_row_takes_the_same_number_of_words():
    rng = CountedRng()
    op.Budget.sampled(2).drawn(5000, 3, rng)
    assert rng.counts == {"words": 15_000, "further": 0}


@pytest.mark.parametrize("name", TABLES)
def test_the_slow_path_of_a_table_is_equally_likely_for_every_cell(name):
    """In each column of each cell, exactly one of the 2**48 coins is undecided."""
    distribution = TABLES[name]
    alias, up = distribution.alias, distribution.alias.column_bits
    columns, cells = 1 << up, distribution.inputs.size
    entries = alias.packed.reshape(cells, columns)
    thresholds = [[int(e) >> (64 - THRESHOLD_BITS) for e in row] for row in entries]
    rng = np.random.default_rng(0)
    for step in (-1, 0, 1, "any"):
        x, words = [], []
        for cell in range(cells):
            for column in range(columns):
                coin = thresholds[cell][column]
                moved = int(rng.integers(2**48)) if step == "any" else coin + step
                if (step != 0 and moved == coin) or not 0 <= moved < 2**THRESHOLD_BITS:
                    continue
                x.append(distribution.inputs.L + cell)
                words.append((column << (64 - up)) | (moved << (64 - up - THRESHOLD_BITS)))
        x, words = np.array(x), np.array(words, dtype=np.uint64)
        flagged = flagged_rows(x, distribution.inputs.L, alias.packed, up, words)
        assert len(flagged) == (cells * columns if step == 0 else 0)
