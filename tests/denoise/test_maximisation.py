"""The compiled M-step against a slow one, whichever call handles which lanes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import opboost as op
from opboost.denoise import NoiseMatrix, Space, latent_classes, noise_matrix_of
from opboost.denoise.column_pmfs import KAPPA, ColumnStart

GROUPS = 5
WINDOW = noise_matrix_of(op.WindowMap(op.Domain(1, 12), 2.0), 0.4)
CLAMP = noise_matrix_of(op.ClampMap(op.Domain(1, 7), 0.64))
PAIR = NoiseMatrix(np.kron(CLAMP.matrix, CLAMP.matrix))
SPACE = Space((WINDOW, CLAMP, PAIR), (12, 7, ((7, 7), (7, 7))), own=(4,))


def start(classes: int, smooth: float):
    """Return initial pmfs, and counts of outputs that are already spread over groups."""
    rng = np.random.default_rng(classes)
    counts = rng.integers(1, 40, (GROUPS, SPACE.index().height, classes)).astype(np.float32)
    near = np.eye(GROUPS, dtype=np.float32)
    made = ColumnStart.of(SPACE, counts.sum(axis=2)).blank(GROUPS, near, classes)
    return replace(made, smooth=np.linspace(0, smooth, classes, dtype=np.float32)), counts


def slow_step(pmf, n, matrix, parent, smooth, line):
    """Take one over-relaxed step of EM for one pmf, written as in the documentation."""
    factor = matrix @ (n / (pmf @ matrix)) / n.sum()
    moved = pmf * factor**1.5
    pmf = (n.sum() * moved / moved.sum() + KAPPA * parent) / (n.sum() + KAPPA)
    shapes = [(line, 0)] if isinstance(line, int) else [((7, 7), 0), ((7, 7), 1)]
    for shape, axis in shapes:
        ratio = np.moveaxis((pmf / parent).reshape(shape), axis, 0)
        padded = np.concatenate([ratio[:1], ratio, ratio[-1:]])
        mean = np.moveaxis((padded[:-2] + padded[2:]) / 2, 0, axis).reshape(-1) * parent
        pmf = pmf + smooth * (mean - pmf)
        pmf = pmf / pmf.sum()
    return pmf


@pytest.mark.parametrize("smooth", [0.0, 0.3])
@pytest.mark.parametrize("classes", [1, 3, 40])
def test_a_step_is_that_of_a_slow_computation(classes, smooth):
    begin, counts = start(classes, smooth)
    found = begin.fitted(counts, np.ones((GROUPS, classes), dtype=np.float32), 3)
    index = SPACE.index()
    for j, matrix in enumerate(SPACE.matrices[:3]):
        states = slice(index.starts[j], index.starts[j + 1])
        seen = slice(index.offsets[j], index.offsets[j] + matrix.shape[1])
        for g in range(GROUPS):
            for c in range(classes):
                pmf = begin.P[g, states, c].astype(float)
                parent = begin.parent[g, states].astype(float)
                for _ in range(3):
                    n = counts[g, seen, c].astype(float)
                    pmf = slow_step(pmf, n, matrix, parent, begin.smooth[c], SPACE.lines[j])
                np.testing.assert_allclose(found.P[g, states, c], pmf, rtol=2e-4, atol=1e-6)
                chance = pmf @ matrix / begin.constant[seen]
                np.testing.assert_allclose(found.Q[g, seen, c], chance, rtol=2e-4)
    own, four = slice(index.starts[3], index.starts[4]), slice(index.offsets[3], index.height)
    share = counts[:, four] + KAPPA * begin.parent[:, own, None]
    np.testing.assert_allclose(found.P[:, own], share / share.sum(axis=1, keepdims=True), rtol=1e-4)


@pytest.mark.parametrize("classes", [1, 40])
def test_the_number_of_threads_changes_no_bit(classes, monkeypatch):
    begin, counts = start(classes, 0.3)
    sizes = np.ones((GROUPS, classes), dtype=np.float32)
    monkeypatch.setattr(latent_classes, "MAX_LANES", 8)
    alone = begin.fitted(counts, sizes, 4)
    monkeypatch.setattr(latent_classes, "threads_for", lambda cells: 3)
    shared = begin.fitted(counts, sizes, 4)
    assert alone.P.tobytes() == shared.P.tobytes()
    assert alone.Q.tobytes() == shared.Q.tobytes()
