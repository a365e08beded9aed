"""The distribution of a whole column: as smooth as held-out outputs allow."""

from __future__ import annotations

import numpy as np

import opboost as op
from opboost.denoise import NoiseMatrix, Space
from opboost.denoise.column_pmfs import COLUMN_SMOOTHINGS, ColumnStart, column_smoothings

CELLS, FOLDS = 32, 4


def space_of(total, columns=1):
    m = op.WindowMap(op.Domain(1, CELLS), total, clipped=False)
    return Space((NoiseMatrix(m.transition_matrix()),) * columns, (CELLS,) * columns)


def tallies(space, pmf, rows, seed=0):
    """Return the outputs of each fold, the same for two groups."""
    chances = pmf @ space.channels[0].matrix
    rng = np.random.default_rng(seed)
    each = rng.multinomial(rows // (2 * FOLDS), chances / chances.sum(), size=(FOLDS, 2))
    return list(np.tile(each, (1, 1, len(space.channels))).astype(np.float32))


def hill():
    place = np.arange(CELLS)
    pmf = np.exp(-((place - 20) ** 2) / 60)
    return pmf / pmf.sum()


def spikes():
    pmf = np.full(CELLS, 0.1 / CELLS)
    pmf[[3, 17]] += 0.45
    return pmf


def test_few_noisy_rows_are_smoothed_and_spikes_of_many_are_not():
    noisy, clear = space_of(1.0), space_of(6.0)
    assert column_smoothings(noisy, tallies(noisy, hill(), 400)) == (COLUMN_SMOOTHINGS[-1],)
    assert column_smoothings(clear, tallies(clear, spikes(), 40_000))[0] <= COLUMN_SMOOTHINGS[1]


def test_the_chosen_smoothing_brings_a_column_nearer_to_the_truth():
    space = space_of(1.0)
    folds = tallies(space, hill(), 2_000)
    smooth = column_smoothings(space, folds)

    def distance(smooth):
        return np.abs(ColumnStart.of(space, sum(folds), smooth).column - hill()).sum()

    assert distance(smooth) < 0.5 * distance(())


def test_each_column_keeps_its_own_smoothing():
    space = space_of(2.0, columns=2)
    folds = tallies(space, hill(), 2_000)
    made = ColumnStart.of(space, sum(folds), (0.0, 0.6)).column
    alone = [ColumnStart.of(space, sum(folds), (value,) * 2).column for value in (0.0, 0.6)]
    np.testing.assert_allclose(made[:CELLS], alone[0][:CELLS], rtol=1e-5)
    np.testing.assert_allclose(made[CELLS:], alone[1][CELLS:], rtol=1e-5)
    assert not np.allclose(made[:CELLS], made[CELLS:])
