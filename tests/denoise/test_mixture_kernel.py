"""The compiled loops over rows agree with slow sums, and no row affects another."""

from __future__ import annotations

from types import FunctionType

import numpy as np
import pytest

import opboost as op
from opboost.denoise import BitNoise, Groups, Space, mixture_kernel, noise_matrix_of
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.latent_classes import Mixture
from opboost.denoise.mixture_kernel import UNSENT
from opboost.denoise.model_selection import Base, one_class, seeded, tally
from opboost.runtime.compiling import njit

COLUMNS, CLASSES, ROWS = 21, 5, 150
"""More columns than the loops multiply before they rescale, and more rows than one block."""


@pytest.fixture(scope="module", params=[0, 9], ids=["no bits", "bits"])
def table(request):
    """Return rows that send some of their columns, and a model of five classes in two groups."""
    rng = np.random.default_rng(0)
    channel = noise_matrix_of(op.ClampMap(op.Domain(1, 6), 1.0)).sent_by(0.6)
    bit = BitNoise.of(op.UnaryEncoding(["a", "b", "c"], 2.0))
    space = Space((channel,) * COLUMNS, (6,) * COLUMNS, (bit,) * request.param)
    codes = rng.integers(0, 7, (ROWS, COLUMNS)).astype(np.uint8)
    codes[:9, 3:] = 6  # rows that send few columns next to rows that send many
    bits = rng.integers(0, 2, (ROWS, 3 * request.param)).astype(np.uint8)
    bits[rng.random(ROWS) < 0.3, -3:] = [UNSENT, 0, 0][: bits.shape[1]]
    groups = Groups.classes(rng.integers(0, 2, ROWS), 2)
    rows = EncodedRows.of(codes, bits, groups.of, 2)
    base = Base.alike(COLUMNS, 0, 8)
    one = one_class(space, tally(rows, space.index()), base, groups)
    model = seeded(one, rows, CLASSES, np.eye(2, dtype=np.float32), groups, rng).stepped(rows)
    return space, rows, groups, model


def shares(space, rows, groups, model):
    """Return class shares and log-likelihoods, row by row in double precision."""
    index = model.index
    chance = np.empty((len(rows), CLASSES))
    for i, row in enumerate(rows.order):
        g = groups.of[row]
        chance[i] = model.pi[g]
        for j, code in enumerate(rows.codes[i]):
            if code != index.unsent[j]:
                chance[i] *= model.Q[g, index.offsets[j] + code]
        for b, base in enumerate(index.bases):
            seen = rows.bits[i, 3 * b : 3 * b + 3]
            if seen[0] != UNSENT:
                chance[i] *= model.Q[g, base] + seen @ model.Q[g, base + 1 : base + 4]
    whole = chance.sum(axis=1, keepdims=True)
    return chance / whole, np.log(whole[:, 0])


def test_expectation_and_likelihood_are_the_slow_sums(table):
    space, rows, groups, model = table
    share, told = shares(space, rows, groups, model)
    assert np.allclose(model.likelihoods(rows)[:, 0], told, atol=1e-4)
    counts, sizes = model.expected(rows)
    for g in range(2):
        own = groups.of[rows.order] == g
        assert np.allclose(sizes[g], share[own].sum(axis=0), atol=1e-3)
        for j, offset in enumerate(model.index.offsets):
            for code in range(6):
                at = own & (rows.codes[:, j] == code)
                assert np.allclose(counts[g, offset + code], share[at].sum(axis=0), atol=1e-3)


def drawn(model: Mixture, rows, kept):
    """Return draws for these rows, in the order of the table."""
    columns, bits = COLUMNS, len(model.index.bases)
    out, out_bits = np.zeros((ROWS, columns), np.uint8), np.zeros((ROWS, bits), np.uint8)
    model.draw(rows, np.arange(ROWS, dtype=np.uint64), columns, 7, out, out_bits)
    return np.hstack([out, out_bits])[kept]


def test_a_row_is_weighed_and_drawn_as_if_it_were_alone(table):
    _, rows, _, model = table
    told, found = model.likelihoods(rows)[:, 0], drawn(model, rows, slice(None))
    for seed in range(3):
        kept = np.random.default_rng(seed).random(ROWS) < 0.3
        some = rows.where(kept)
        assert np.array_equal(model.likelihoods(some)[:, 0], told[kept[rows.order]])
        assert np.array_equal(drawn(model, some, kept), found[kept])


def test_draws_are_the_same_where_running_sums_are_not_kept(table, monkeypatch):
    _, rows, _, model = table
    found = drawn(model, rows, slice(None))
    code = mixture_kernel.draw.py_func.__code__
    other = FunctionType(code, {**vars(mixture_kernel), "_KEPT": 0})
    monkeypatch.setattr(mixture_kernel, "draw", njit(cache=False, error_model="numpy")(other))
    assert np.array_equal(drawn(model, rows, slice(None)), found)
