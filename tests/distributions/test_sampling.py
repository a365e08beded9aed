"""Samples follow the distribution: G-tests with a fixed seed, and loops against exact draws."""

from __future__ import annotations

from fractions import Fraction

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import opboost as op
from opboost.distributions import (
    ClampedLaplace,
    IntegerTable,
    KeepOrRedraw,
    PiecewiseDensity,
    TruncatedGeometric,
)
from opboost.distributions.geometric import geometric_of
from opboost.distributions.geometric_kernel import BASE
from opboost.distributions.truncated_geometric import exact_within
from opboost.mechanisms.mechanism import CHUNK_VALUES, distribution_of
from opboost.randomness.exact import Decay
from opboost.randomness.streams import SeededRng
from tests.support.checks import (
    ScriptedRng,
    ScriptedSource,
    assert_alias_table_is_the_distribution,
    assert_samples_follow,
    counts_of,
)
from tests.support.strategies import levels, mechanisms

TEN, LONG, HUGE = op.Domain(1, 10), op.Domain(1, 300), op.Domain(-(2**39), 2**39)

EVERY = [
    op.GlobalMap(TEN, 0.08),
    op.GlobalMap(op.Domain(-50, 49), 1.28),
    op.ClampMap(TEN, 0.64),
    op.ClampMap(op.Domain(1, 100), 1.28),
    op.LocalMap(TEN, epsilon=0.64, theta=4),
    op.AdjMap(TEN, 0.64, theta=2, alpha=0.4),
    op.AdjMap(TEN, eps_prt=1.0, eps_ner=0.2, theta=(3, 4, 9)),
    op.RandomizedResponse(TEN, 1.0),
    op.Piecewise(TEN, 0.64),
    op.Piecewise(TEN, 1.0, clipped=False),
    op.GlobalMap(LONG, 0.08),
    op.GlobalMap(LONG, 1.28),
    op.ClampMap(LONG, 0.02),
    op.LocalMap(LONG, epsilon=0.1, theta=70),
    op.AdjMap(LONG, 0.05, theta=40, alpha=2),
    op.AdjMap(LONG, eps_prt=0.5, eps_ner=0.02, theta=(2, 90, 95)),
    op.RandomizedResponse(LONG, 3.0),
    op.Piecewise(LONG, 2.0),
    op.Piecewise(LONG, 2.0, clipped=False),
]


@pytest.mark.parametrize("m", EVERY, ids=repr)
def test_samples_follow_the_published_distribution(m):
    outputs = m.outputs
    for i, x in enumerate({m.domain.L, m.domain.L + 1, (m.domain.L + m.domain.R) // 2, m.domain.R}):
        drawn = m.sample(np.full(60_000, x), rng=SeededRng(20 + i))
        assert drawn.min() >= outputs.L
        assert drawn.max() <= outputs.R
        assert_samples_follow(counts_of(drawn, outputs), m.pmf(x))


@pytest.mark.parametrize(
    "m", [m for m in EVERY if m.domain.size <= 10 and m.outputs == TEN], ids=repr
)
def test_the_inverse_sampler_draws_from_the_same_distribution(m):
    drawn = m.sample(np.full(20_000, 4), rng=SeededRng(3), sampler="inverse")
    assert_samples_follow(counts_of(drawn, m.outputs), m.pmf(4))


def test_a_sampler_that_does_not_fit_the_distribution_is_refused():
    with pytest.raises(op.ParameterError, match=r"'auto', 'alias', 'inverse'.*'digits'"):
        op.GlobalMap(TEN, 0.5).sample([1], sampler="digits")
    with pytest.raises(op.ParameterError, match=r"'auto', 'digits'.*'alias'"):
        op.GlobalMap(LONG, 0.5).sample([1], sampler="alias")
    assert op.GlobalMap(LONG, 0.5).sample([1], SeededRng(1), sampler="digits") == op.GlobalMap(
        LONG, 0.5
    ).sample([1], SeededRng(1))


@given(mechanisms())
def test_the_alias_table_is_exactly_the_distribution(m):
    assert_alias_table_is_the_distribution(distribution_of(m))


@given(mechanisms(), st.integers(0, 2**32))
def test_every_output_is_one_of_the_outputs_and_shapes_are_kept(m, seed):
    x = np.random.default_rng(seed).integers(m.domain.L, m.domain.R + 1, size=(7, 3))
    y = m.sample(x, rng=SeededRng(seed))
    assert y.shape == x.shape
    assert y.dtype == x.dtype
    assert y.min() >= m.outputs.L
    assert y.max() <= m.outputs.R


def test_narrow_types_stay_narrow_and_grow_only_where_they_must():
    m = op.ClampMap(TEN, 0.64)
    assert m.sample(np.array([1, 2], dtype=np.uint8)).dtype == np.uint8
    assert m.sample(np.array([1, 2], dtype=np.int16)).dtype == np.int16
    assert op.ClampMap(op.Domain(1, 300), 0.64).sample(np.array([1], np.uint8)).dtype == np.uint16
    assert m.sample(7).shape == ()
    assert m.sample([]).shape == (0,)


def test_values_off_the_grid_are_refused_or_clamped_as_asked():
    m = op.GlobalMap(TEN, 0.64)
    with pytest.raises(op.DataError, match=r"1 of 2 values .* 1\.\.10 \(first: 37 at position 1\)"):
        m.sample([3, 37])
    assert m.sample([-4, 37], outside="clamp").tolist() != []
    with pytest.raises(op.DataError, match=r"takes integers on the grid; got float64.*to_grid"):
        m.sample([1.5])
    with pytest.raises(op.DataError, match="got <U1"):
        m.sample(["a"])
    with pytest.raises(op.ParameterError, match="'raise' or 'clamp'"):
        m.sample([1], outside="drop")


@pytest.mark.parametrize(
    "m",
    [
        op.Piecewise(op.Domain(-60, 100), 2.0, clipped=False),
        op.Piecewise(op.Domain(-20_000, 20_000), 2.0),
        op.GlobalMap(op.Domain(-20_000, 20_000), 0.01),
        op.AdjMap(op.Domain(-20_000, 20_000), 0.01, theta=3000),
        op.AdjLaplace(eps_prt=1, eps_ner=1, theta=1000),
    ],
    ids=repr,
)
def test_narrow_inputs_draw_what_wide_ones_draw(m):
    top = min(m.domain.R, 100)
    for kind in (np.int8, np.int16, np.int32):
        x = np.array([0, 50, top], dtype=kind)
        wide = m.sample(x.astype(np.int64), rng=SeededRng(5))
        assert m.sample(x, rng=SeededRng(5)).tolist() == wide.tolist()


def test_the_largest_grid_does_not_overflow():
    largest = op.Domain(-(2**61), 2**61)
    ends = np.array([-(2**61), 0, 2**61] * 50)
    for m in (
        op.ClampMap(largest, 1.0),
        op.GlobalMap(largest, 1.0),
        op.LocalMap(largest, epsilon=1.0, theta=largest.size),
        op.AdjMap(largest, eps_prt=1.0, eps_ner=1.0, theta=1),
        op.RandomizedResponse(largest, 60.0),
    ):
        assert np.abs(m.sample(ends, rng=SeededRng(1)) - ends).max() < 1000
        assert m.certificate().covered
    with pytest.raises(op.ParameterError, match="beyond 64 bits"):
        op.Piecewise(largest, 1.0)
    wide = op.AdjLaplace(eps_prt=1, eps_ner=1, theta=2**60)
    assert np.abs(wide.sample(np.zeros(100, int))).max() <= 2**61
    with pytest.raises(op.ParameterError, match="theta must lie between"):
        op.AdjLaplace(eps_prt=1, eps_ner=1, theta=2**63)


def test_wrong_kinds_of_arguments_get_a_sentence():
    m = op.ClampMap(TEN, 0.5)
    with pytest.raises(op.ParameterError, match="rng must be None"):
        m.sample([1], rng=np.random.default_rng())
    with pytest.raises(op.DataError, match="differ in length"):
        m.sample([[1], [1, 2]])
    with pytest.raises(op.ParameterError, match="must be an integer; got 'x'"):
        m.pmf("x")
    for make in (op.ClampMap, op.GlobalMap, op.RandomizedResponse, op.Piecewise):
        with pytest.raises(op.ParameterError, match=r"must be a Domain; got \(1, 10\)"):
            make((1, 10), 0.5)
    with pytest.raises(op.ParameterError, match="must be a Domain"):
        op.LocalMap((1, 10), epsilon=0.5, theta=2)
    with pytest.raises(op.ParameterError, match="too large for a matrix"):
        op.Piecewise(TEN, 1e-9, clipped=False).pmf(3)
    assert op.AdjMap(TEN, 0.5, theta=np.int64(5)) == op.AdjMap(TEN, 0.5, theta=5)
    assert str(m.loss(3, 3)) == "0.0"


def test_long_columns_are_drawn_in_pieces_and_every_piece_differs():
    m = op.GlobalMap(TEN, 0.08)
    y = m.sample(np.full(3 * CHUNK_VALUES + 5, 5), rng=SeededRng(1))
    pieces = [y[i * CHUNK_VALUES : (i + 1) * CHUNK_VALUES].tolist() for i in range(3)]
    assert pieces[0] != pieces[1] != pieces[2] != pieces[0]
    assert_samples_follow(counts_of(y, TEN), m.pmf(5))


@pytest.mark.parametrize("m", [op.GlobalMap(TEN, 0.08), op.GlobalMap(LONG, 0.5)], ids=repr)
@pytest.mark.parametrize("threads", [2, 3, 7])
def test_threads_fill_every_row_once_with_noise_of_its_own(m, threads):
    size = 5 * CHUNK_VALUES + 7
    y = m.sample(np.full(size, 5), threads=threads)
    assert_samples_follow(counts_of(y, m.outputs), m.pmf(5))
    pieces = [y[i * CHUNK_VALUES : (i + 1) * CHUNK_VALUES].tolist() for i in range(5)]
    assert all(a != b for i, a in enumerate(pieces) for b in pieces[:i])
    rising = np.sort(np.random.default_rng(0).integers(1, 11, size))
    sharp = op.ClampMap(TEN, 40.0) if m.domain == TEN else op.ClampMap(LONG, 40.0)
    assert (sharp.sample(rising, threads=threads) == rising).all()  # every row keeps its place
    with pytest.raises(op.ParameterError, match="threads must be 1 or more"):
        m.sample([1], threads=0)


def test_a_known_keystream_gives_a_known_output():
    """The path from words to outputs, worked out by hand for a distribution over two cells."""
    m = op.RandomizedResponse(op.Domain(0, 1), 1.0)
    distribution = distribution_of(m)
    assert isinstance(distribution, IntegerTable)
    assert distribution.alias.column_bits == 1
    top, low = 2**63, 0
    # Column 0 of row 1 is short: its threshold splits it between 0 and its alias 1.
    threshold = distribution.alias.thresholds[1][0] >> (distribution.bits - 1 - 48)
    words = [[low, top, (threshold - 1) << 15, (threshold + 1) << 15]]
    assert m.sample([1, 1, 1, 1], rng=ScriptedRng(words)).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("m", [op.ClampMap(TEN, 0.64), op.AdjMap(TEN, 1.0, theta=3)], ids=repr)
def test_a_word_on_a_threshold_is_decided_by_all_bits_of_the_table(m):
    distribution = distribution_of(m)
    alias = distribution.alias
    row, column = next(
        (i, j)
        for i in range(10)
        for j in range(1 << alias.column_bits)
        if 0 < alias.thresholds[i][j] < 1 << (distribution.bits - alias.column_bits)
    )
    more = distribution.bits - alias.column_bits - 48
    threshold = alias.thresholds[row][column]
    word = (column << (64 - alias.column_bits)) | ((threshold >> more) << (16 - alias.column_bits))
    rest = threshold & ((1 << more) - 1)
    assert rest > 0
    own, other = m.domain.L + column, m.domain.L + alias.aliases[row][column]
    for bits, expected in [(rest - 1, own), (rest, other), (0, own), ((1 << more) - 1, other)]:
        rng = ScriptedRng([[word]], [bits])
        assert m.sample([m.domain.L + row], rng=rng).tolist() == [expected]


words = st.integers(0, 2**64 - 1)


@given(levels, st.lists(words, min_size=8, max_size=8), st.integers(0, 2**32))
def test_digits_of_the_compiled_loop_are_those_of_the_exact_twin(level, row, seed):
    grid = op.Domain(0, 10**6)
    for distribution in (
        ClampedLaplace(grid, Decay.of_rate(Fraction(level))),
        TruncatedGeometric(grid, Decay.of_rate(Fraction(level))),
    ):
        draws = 1 + geometric_of(distribution.decay).levels
        x = int(np.random.default_rng(seed).integers(0, 10**6 + 1))
        words = np.array(row[:draws], dtype=np.uint64)[:, None]
        source = ScriptedSource(words, spare=SeededRng(1).open())
        compiled = int(distribution.draw(np.array([x]), source, 0)[0])
        spare = SeededRng(1).open()
        if isinstance(distribution, ClampedLaplace):
            exact = distribution.exact(x, row[:draws], spare)
        else:
            exact = exact_within(distribution.decay, x, 0, 10**6, row[:draws], spare)
        assert compiled == exact


@given(levels, st.tuples(words, words), st.integers(0, 2**32), st.booleans())
def test_uniform_draws_of_the_compiled_loop_are_those_of_the_exact_twin(level, row, seed, clipped):
    x = int(np.random.default_rng(seed).integers(HUGE.L, HUGE.R + 1))
    keep = distribution_of(op.RandomizedResponse(HUGE, level))
    pieces = distribution_of(op.Piecewise(HUGE, level, clipped=clipped))
    assert isinstance(keep, KeepOrRedraw)
    assert isinstance(pieces, PiecewiseDensity)
    for distribution in (keep, pieces):
        source = ScriptedSource(np.array(row, dtype=np.uint64)[:, None], [0] * 9)
        compiled = int(distribution.draw(np.array([x]), source, 0)[0])
        assert compiled == distribution.exact(x, list(row), ScriptedSource([[]], [0] * 9))


def scripted(distribution, x, column, bits):
    source = ScriptedSource(np.array(column, dtype=np.uint64)[:, None], bits)
    return int(distribution.draw(np.array([x]), source, 0)[0])


def test_a_coin_on_the_side_threshold_takes_more_bits():
    decay = Decay.of_rate(Fraction(0.5))
    distribution = ClampedLaplace(op.Domain(0, 1000), decay)
    low, high = distribution._right(128)
    coin, rest = low >> 64, low & (2**64 - 1)
    assert low != high
    digits = [0] * geometric_of(decay).levels  # distance 0
    assert scripted(distribution, 500, [coin, *digits], [rest - 5]) == 500  # below: not left of x
    assert scripted(distribution, 500, [coin, *digits], [rest + 5]) == 499


def test_a_word_on_a_digit_threshold_takes_more_bits():
    decay = Decay.of_rate(Fraction(0.5))
    distribution = ClampedLaplace(op.Domain(0, 1000), decay)
    geometric = geometric_of(decay)
    low, _ = geometric.digit_cumulative(0, 2, 128)
    word, rest = low >> 64, low & (2**64 - 1)
    assert int(geometric.thresholds[0, 2]) == word
    column = [0, word, *[0] * (geometric.levels - 1)]
    assert scripted(distribution, 500, column, [rest - 5]) == 502
    assert scripted(distribution, 500, column, [rest + 5]) == 503


def test_the_far_tail_of_a_geometric_is_drawn_exactly():
    """The largest word lies beyond every 64-bit threshold: P[distance >= 2048] is below 2**-64."""
    decay = Decay.of_rate(Fraction(0.05))
    distribution = ClampedLaplace(HUGE, decay)
    geometric = geometric_of(decay)
    assert geometric.levels == 1
    got = scripted(distribution, 0, [0, 2**64 - 1], [2**64 - 1, 2**128 - 1, *[2**256 - 1] * 4])
    assert got >= BASE
    assert scripted(distribution, 0, [0, 2**64 - 1], [0] * 8) < BASE


def test_a_small_rate_takes_more_digits_and_keeps_the_distribution():
    m = op.ClampMap(op.Domain(0, 2**30), 1e-6)
    assert geometric_of(distribution_of(m).decay).levels == 3
    x = np.full(40_000, 2**29)
    gaps = np.abs(m.sample(x, rng=SeededRng(5)) - x) * 1e-6
    # |noise| · epsilon is close to exponential: compare with its quantiles.
    counts = np.histogram(gaps, bins=[0, 0.25, 0.5, 1, 2, 4, 99])[0]
    edges = np.array([0, 0.25, 0.5, 1, 2, 4, np.inf])
    assert_samples_follow(counts, np.exp(-edges[:-1]) - np.exp(-edges[1:]))


def test_geometric_modulo_n_is_the_truncated_geometric():
    """The identity that makes rejection unnecessary, in exact fractions."""
    q = Decay.of_rate(Fraction(0.3)).rational()
    n = 7
    for r in range(n):
        modulo = (1 - q) * q**r / (1 - q**n)  # sum over all k of (1−q) q**(r + k·n)
        truncated = q**r / sum(q**i for i in range(n))
        assert modulo == truncated


@settings(max_examples=20)
@given(levels, st.integers(1, 40))
def test_local_map_never_leaves_its_run_on_large_grids(level, theta):
    m = op.LocalMap(LONG, epsilon=level, theta=theta)
    x = np.arange(1, 301)
    y = m.sample(x, rng=SeededRng(theta))
    assert ((x - 1) // theta == (y - 1) // theta).all()


def test_unbounded_laplace_follows_its_distribution():
    m = op.DiscreteLaplace(0.5)
    drawn = m.sample(np.full(60_000, 1000), rng=SeededRng(2)) - 1000
    z = np.arange(-60, 61)
    q = np.exp(-0.5)
    assert_samples_follow([(drawn == v).sum() for v in z], (1 - q) / (1 + q) * q ** np.abs(z))


def test_unbounded_adj_map_follows_its_distribution():
    m = op.AdjLaplace(eps_prt=1.0, eps_ner=0.3, theta=4)
    drawn = m.sample(np.full(60_000, -3), rng=SeededRng(2))  # in the run -4..-1
    q, inner = np.exp(-1.0), np.exp(-0.15)
    probabilities, outputs = [], range(-80, 80)
    for y in outputs:
        run = y // 4
        nearest = min(max(-3, run * 4), run * 4 + 3)
        weights = [inner ** abs(nearest - z) for z in range(run * 4, run * 4 + 4)]
        outer = (1 - q) / (1 + q) * q ** abs(run + 1)
        probabilities.append(outer * inner ** abs(nearest - y) / sum(weights))
    assert_samples_follow([(drawn == y).sum() for y in outputs], probabilities)
