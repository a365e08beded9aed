"""Classes start along the factors of columns; columns that a row did not send are skipped."""

from __future__ import annotations

import numpy as np

import opboost as op
from opboost.denoise import Groups, Outputs, Space, fit, noise_matrix_of
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.factor_start import Factors
from opboost.denoise.model_selection import Base, one_class, tally

CELLS, COLUMNS, SENT = 8, 4, 2


def sampled(correlation, rows=20_000, seed=0):
    """Return two classes of equally correlated normal columns; each row sends two of four."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    common = rng.normal(size=(rows, 1)) * np.sqrt(correlation)
    x = common + rng.normal(size=(rows, COLUMNS)) * np.sqrt(1 - correlation) + y[:, None]
    cells = np.clip((x * 1.5 + 3).astype(int), 0, CELLS - 1)
    m = op.WindowMap(op.Domain(0, CELLS - 1), total=3.0, clipped=False)
    noisy = m.sample(cells, op.SeededRng(seed)) - m.outputs.L
    sent = np.argsort(rng.random((rows, COLUMNS)), axis=1) < SENT
    noise = noise_matrix_of(m, SENT / COLUMNS)
    codes = np.where(sent, noisy, noise.outputs - 1).astype(np.uint8)
    space = Space((noise,) * COLUMNS, (CELLS,) * COLUMNS)
    return space, Groups.classes(y, 2), codes, cells, y


def within(cells, y):
    """Return the mean correlation of two columns within a class."""
    found = [np.corrcoef(cells[y == g].T) for g in (0, 1)]
    return float(np.mean([r[~np.eye(COLUMNS, dtype=bool)].mean() for r in found]))


def factors_of(correlation):
    space, groups, codes, cells, y = sampled(correlation)
    rows = EncodedRows.of(codes, np.zeros((len(codes), 0), np.uint8), groups.of, 2)
    counts = tally(rows, space.index())
    one = one_class(space, counts, Base.alike(COLUMNS, 0, 32), groups)
    return Factors.of(one.P[:, :, 0], space.index(), rows, groups), within(cells, y), counts


def test_correlations_come_back_from_rows_that_sent_both_columns():
    found, truth, _ = factors_of(0.6)
    for load in found.loadings:
        made = load @ load.T
        off = made[~np.eye(COLUMNS, dtype=bool)]
        assert np.abs(off - truth).max() < 0.15


def test_independent_columns_have_next_to_no_factors():
    found, _, _ = factors_of(0.0)
    if found is not None:
        assert np.abs(found.loadings).max() < 0.35


def test_columns_that_were_not_sent_are_counted_nowhere():
    _, _, counts = factors_of(0.6)
    assert counts.sum() == 20_000 * SENT


def test_draws_have_the_dependence_that_no_single_row_shows():
    space, groups, codes, cells, y = sampled(0.6)
    outputs = Outputs(codes, np.zeros((len(codes), 0), np.uint8))
    found = fit(space, groups, outputs, seed=1)
    assert found.chosen.classes > 1
    drawn = found.draw(outputs, y, 0, 1).cells
    assert within(drawn.astype(float), y) > 0.7 * within(cells, y)


def test_rows_that_send_one_column_each_get_one_class():
    space, groups, codes, _, _ = sampled(0.6)
    rng = np.random.default_rng(5)
    keep = np.arange(COLUMNS) == rng.integers(0, COLUMNS, len(codes))[:, None]
    one = np.where(keep, codes, space.channels[0].outputs - 1).astype(np.uint8)
    found = fit(space, groups, Outputs(one, np.zeros((len(one), 0), np.uint8)), seed=1)
    assert found.chosen.classes == 1
