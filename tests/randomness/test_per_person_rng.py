"""Noise that a retry repeats: it depends on row ID, value, column and release, not on position."""

import secrets

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import opboost as op
from opboost.columns.row_ids import id_array, id_bytes
from opboost.mechanisms import WithMissing
from opboost.mechanisms.mechanism import CHUNK_VALUES, distribution_of
from opboost.randomness.per_person_rng import RowRng, derived, row_names
from tests.support.checks import assert_samples_follow, counts_of

SECRET = secrets.token_bytes(32)
GRID = op.Domain(1, 10)
HUGE = op.Domain(0, 10**6)
MECHANISMS = [
    op.ClampMap(GRID, 0.64),
    op.GlobalMap(HUGE, 0.01),
    op.AdjMap(HUGE, eps_prt=1.0, eps_ner=0.1, theta=50),
    op.LocalMap(HUGE, epsilon=0.1, theta=1000),
    op.RandomizedResponse(HUGE, 3.0),
    op.Piecewise(HUGE, 2.0),
    op.DiscreteLaplace(0.3),
]


def ids_of(count):
    return [str(i).encode() for i in range(count)]


def named(ids, secret=SECRET):
    return row_names(secret, pa.array(ids, pa.large_binary()))


def rng_of(ids, x, *purpose, secret=SECRET):
    return RowRng(secret, named(ids, secret), np.asarray(x), purpose or ("age",))


def sample(m, ids, x, *purpose, secret=SECRET):
    return m.sample(np.asarray(x), rng_of(ids, x, *purpose, secret=secret))


@pytest.mark.parametrize("m", MECHANISMS, ids=lambda m: type(m).__name__)
@settings(max_examples=10, deadline=None)
@given(st.integers(0, 2**32))
def test_any_order_and_any_cut_of_the_rows_gives_a_row_the_same_noise(m, seed):
    rng = np.random.default_rng(seed)
    ids, x = ids_of(3000), rng.integers(1, 11, 3000)
    whole = dict(zip(ids, sample(m, ids, x), strict=True))
    order = rng.permutation(3000)
    for cut in np.split(order, np.sort(rng.choice(3000, rng.integers(1, 6)))):
        part = [ids[i] for i in cut]
        assert sample(m, part, x[cut]).tolist() == [whole[i] for i in part]


def test_the_place_in_a_chunk_of_the_sampler_does_not_matter():
    """Draw more rows than the sampler's own chunk holds, in several threads."""
    m, n = op.AdjMap(HUGE, eps_prt=1.0, eps_ner=0.1, theta=50), CHUNK_VALUES + 700
    ids, x = ids_of(n), np.arange(n)
    whole = sample(m, ids, x)
    assert whole[500:].tolist() == sample(m, ids[500:], x[500:]).tolist()
    by_two = m.sample(x, rng_of(ids, x), threads=2)
    assert by_two.tolist() == whole.tolist()


def test_bits_beyond_the_words_belong_to_the_row_too():
    source = rng_of(ids_of(100), np.arange(100)).open()
    source.words(3, 0, 100)
    ahead = [source.further(i).bits(300) for i in range(100)]
    again = rng_of(ids_of(100)[::-1], np.arange(100)[::-1]).open()
    assert [again.further(99 - i).bits(300) for i in range(100)] == ahead
    assert source.further(7).bits(300) != ahead[7], "the same bits were given twice"
    assert len(set(ahead)) == 100
    assert source.further(0).bits(5) < 32


def test_a_draw_that_lands_on_a_threshold_is_decided_by_the_row_alone():
    """The textbook sampler needs such bits for every row."""
    m = op.ClampMap(GRID, 0.64)
    ids, x = ids_of(200), np.random.default_rng(1).integers(1, 11, 200)
    whole = m.sample(x, rng_of(ids, x), sampler="inverse")
    part = m.sample(x[50:120], rng_of(ids[50:120], x[50:120]), sampler="inverse")
    assert part.tolist() == whole[50:120].tolist()
    unary = op.UnaryEncoding(("a", "b", "c"), 1.0)
    bits = unary.sample_positions(x % 3, rng_of(ids, x))
    assert (unary.sample_positions(x[9:] % 3, rng_of(ids[9:], x[9:])) == bits[9:]).all()


def test_flags_and_values_of_a_column_with_gaps_are_repeated_and_unrelated():
    m = WithMissing(op.ClampMap(GRID, 0.64), eps_missing=1.0, constant=5)
    ids, x, gone = ids_of(400), np.full(400, 3), np.arange(400) % 3 == 0
    states = np.where(gone, 1, x << 1)
    drawn, flags = m.sample(x, gone, rng_of(ids, states))
    again, same = m.sample(x[7:], gone[7:], rng_of(ids[7:], states[7:]))
    assert (drawn[7:] == again).all()
    assert (flags[7:] == same).all()


@pytest.mark.parametrize("m", [MECHANISMS[0], op.UnaryEncoding(("a", "b"), 1.0)], ids=str)
def test_the_distribution_is_that_of_the_mechanism(m):
    n = 200_000
    if isinstance(m, op.UnaryEncoding):
        bits = m.sample_positions(np.zeros(n, dtype=np.int64), rng_of(ids_of(n), np.zeros(n, int)))
        for j, p in enumerate((m.bit_channel()[1, 1], m.bit_channel()[0, 1])):
            assert_samples_follow(np.bincount(bits[:, j], minlength=2), np.array([1 - p, p]))
        return
    for x in (1, 4, 10):
        y = sample(m, ids_of(n), np.full(n, x))
        assert_samples_follow(counts_of(y, distribution_of(m).outputs), m.pmf(x))


def test_a_changed_value_gets_noise_that_is_unrelated():
    """If noise depended only on the row, y' − y would equal x' − x in every row."""
    m, n = op.DiscreteLaplace(0.5), 100_000
    ids, x = ids_of(n), np.arange(n)
    noise, moved = sample(m, ids, x) - x, sample(m, ids, x + 3) - (x + 3)
    assert_unrelated(m, noise, moved)


@pytest.mark.parametrize("other", ["column", "mechanism", "secret", "row"])
def test_other_columns_mechanisms_releases_and_rows_have_noise_that_is_unrelated(other):
    m, n = op.DiscreteLaplace(0.5), 100_000
    ids, x = ids_of(n), np.full(n, 40)
    noise = sample(m, ids, x, "age", repr(m)) - x
    if other == "row":
        another = np.roll(noise, 1)
    else:
        purpose = {"column": ("pay", repr(m)), "mechanism": ("age", "another")}
        secret = secrets.token_bytes(32) if other == "secret" else SECRET
        another = sample(m, ids, x, *purpose.get(other, ("age", repr(m))), secret=secret) - x
    assert_unrelated(m, noise, another)


def assert_unrelated(m, noise, another):
    """Check that they agree as often as two independent draws, and are uncorrelated."""
    n, masses = len(noise), distribution_of(op.ClampMap(op.Domain(-200, 200), 0.5)).mass(0)
    equal = float((masses**2).sum())
    assert abs((noise == another).mean() - equal) < 5 * np.sqrt(equal / n)
    assert abs(np.corrcoef(noise, another)[0, 1]) < 5 / np.sqrt(n)


def test_words_are_uniform_and_never_the_same_twice():
    source = rng_of(ids_of(50_000), np.zeros(50_000, int)).open()
    words = np.vstack([source.words(3, 0, 50_000), source.words(2, 0, 50_000)])
    assert len(np.unique(words)) == words.size
    for draw in words:
        counts = np.bincount((draw >> np.uint64(60)).astype(int), minlength=16)
        assert_samples_follow(counts, np.full(16, 1 / 16))


@given(st.lists(st.binary(max_size=40), min_size=2, unique=True))
def test_different_ids_have_different_names(ids):
    names = named(ids)
    assert len({bytes(n) for n in names}) == len(ids)
    whole = pa.array([b"first", *ids], pa.large_binary())
    assert (row_names(SECRET, whole.slice(1)) == names).all()


ids_of_a_table = st.lists(
    st.one_of(st.text(max_size=20), st.sampled_from(["NA", " 7", "7 ", "nan", "é", "a b"])),
    min_size=1,
    max_size=5,
)


@given(st.one_of(ids_of_a_table, st.lists(st.integers(-(2**62), 2**62), min_size=1)))
def test_the_ids_of_an_arrow_table_are_those_of_a_list(ids):
    def either(make):
        try:
            return list(make())
        except op.DataError as refused:
            return str(refused)

    table = pa.table({"id": ids})
    assert either(lambda: id_bytes([ids], ["id"])) == either(
        lambda: id_array(table, ["id"]).to_pylist()
    )


def test_purposes_are_kept_apart():
    assert derived(SECRET, "a", "bc") != derived(SECRET, "ab", "c")
    assert rng_of(ids_of(1), [0]).child("missing").purpose == ("age", "'missing'")
    with pytest.raises(op.ParameterError, match="32 bytes; got 3"):
        derived(b"abc")
