"""Subset selection: every pair of categories in integers, uniform sets, size and variance."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations, product

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import opboost as op
from opboost.budgets.certificates import certify
from opboost.columns.column_specs import column_from_dict, column_to_dict
from opboost.config import parse
from opboost.denoise.category_shares import BitTally
from opboost.denoise.noise_matrix import BitNoise
from opboost.ledger.packed_draws import from_bytes, to_bytes, width_of
from opboost.mechanisms import best_nominal, registry, subset_selection
from opboost.mechanisms.subset_selection import best_subset_size
from opboost.randomness.exact import exp_bounds
from tests.support.checks import ScriptedRng, assert_samples_follow
from tests.support.strategies import levels

CITIES = ("north", "south", "east", "west", "centre")
TEN = tuple("abcdefghij")


def exact_row(m, own):
    """Return the probability of every set of categories, as fractions."""
    on, bits = m.integer_inclusion()
    own_in, count, size = Fraction(on, 1 << bits), len(m.categories), m.subset_size
    held = own_in / math.comb(count - 1, size - 1)
    left_out = (1 - own_in) / math.comb(count - 1, size)
    row = {s: held if own in s else left_out for s in combinations(range(count), size)}
    assert sum(row.values()) == 1
    return row


def assert_every_pair_is_covered(m):
    rows = [exact_row(m, own) for own in range(len(m.categories))]
    for (i, one), (j, other) in combinations(enumerate(rows), 2):
        worst = max(max(one[s] / other[s], other[s] / one[s]) for s in one)
        a, b = m.categories[i], m.categories[j]
        bound = m.guarantee().bound(a, b)
        assert worst * (1 << 2048) <= exp_bounds(Fraction(bound), 2048)[0]
        assert m.loss(a, b) == m.loss(b, a) <= bound == m.epsilon
        assert m.loss(a, b) == pytest.approx(math.log(worst), abs=1e-9)
        assert m.loss(a, b) > m.epsilon * (1 - 1e-9)


@given(levels, st.sampled_from([None, 1, 2, 3, 4]))
def test_every_pair_keeps_the_promise_in_integers(epsilon, size):
    m = op.SubsetSelection(CITIES, epsilon, size)
    assert_every_pair_is_covered(m)
    assert m.loss("north", "north") == 0
    assert m.exact_epsilon() == m.loss("east", "west")


def test_two_categories_are_randomised_response():
    m = op.SubsetSelection(list("ab"), 1.5)
    assert_every_pair_is_covered(m)
    assert m.subset_size == 1
    assert m.bit_rates() == pytest.approx((1 / (1 + math.exp(1.5)), 1 / (1 + math.exp(-1.5))))


def test_a_larger_chance_of_the_own_category_breaks_the_promise(monkeypatch):
    m = op.SubsetSelection(CITIES, 0.7)
    on, bits = m.integer_inclusion()
    more = on + (1 << (bits - 30))
    monkeypatch.setattr(op.SubsetSelection, "integer_inclusion", lambda _: (more, bits))
    with pytest.raises(AssertionError):
        assert_every_pair_is_covered(m)
    assert not next(certify([op.PrivateColumn("city", None, m)])).covered


@pytest.mark.parametrize("size", [None, 1, 3, 4])
@pytest.mark.parametrize("own", [0, 2, 4])
def test_sets_follow_the_distribution(own, size):
    m = op.SubsetSelection(CITIES, 0.7, size)
    bits = m.sample([CITIES[own]] * 60_000, rng=op.SeededRng(3))
    assert bits.dtype == np.uint8
    assert (bits.sum(axis=1) == m.subset_size).all()
    row = exact_row(m, own)
    numbers = bits @ (1 << np.arange(5))
    counts = np.bincount(numbers, minlength=32)
    expected = np.zeros(32)
    for s, chance in row.items():
        expected[sum(1 << j for j in s)] = float(chance)
    assert_samples_follow(counts, expected)


def test_many_rows_and_categories_are_drawn_in_pieces():
    m = op.SubsetSelection(range(300), 1.0)
    position = np.arange(5000) % 300
    bits = m.sample_positions(position)
    assert (bits.sum(axis=1) == m.subset_size).all()
    off, on = m.bit_rates()
    own = bits[np.arange(5000), position].mean()
    assert own == pytest.approx(on, abs=0.05)
    assert (bits.sum() - own * 5000) / (5000 * 299) == pytest.approx(off, abs=0.01)


def test_a_word_on_a_threshold_takes_more_bits():
    m = op.SubsetSelection(list("abc"), 0.7, 2)
    on, bits = m.integer_inclusion()
    rest = bits - 64
    low = on & ((1 << rest) - 1)
    half = 2**63 - 1  # below one half, whichever bits follow
    words = [[on >> rest], [half], [0]]
    assert m.sample(["a"], ScriptedRng(words, [low - 1])).tolist() == [[1, 1, 0]]
    assert m.sample(["a"], ScriptedRng(words, [low])).tolist() == [[0, 1, 1]]


def test_a_choice_between_two_integers_takes_more_bits():
    m = op.SubsetSelection(list("abcd"), 0.7, 1)
    words = [[2**64 - 1], [2**64 // 3], [0], [0]]  # not its own category; then one of three
    assert m.sample(["a"], ScriptedRng(words, [0, 0])).tolist() == [[0, 1, 0, 0]]
    assert m.sample(["a"], ScriptedRng(words, [2**64 - 1] * 2)).tolist() == [[0, 0, 1, 0]]


@pytest.mark.parametrize("epsilon", [1e-9, 0.1, 0.72, 1.0, 2.0, 5.0, 1000.0])
@pytest.mark.parametrize("count", [2, 3, 10, 57])
def test_the_size_has_the_smallest_variance(count, epsilon):
    found = [op.SubsetSelection(range(count), epsilon, s) for s in range(1, count)]
    best = min(m.share_variance() for m in found)
    chosen = op.SubsetSelection(range(count), epsilon)
    assert chosen.subset_size == best_subset_size(count, epsilon)
    assert chosen.share_variance() == pytest.approx(best, rel=1e-6)


def simulated_variance(m, rows=400, tables=1500):
    """Return rows times the variance of one share, for estimates that add up to one."""
    rng = np.random.default_rng(5)
    count = len(m.categories)
    off, on = m.bit_rates()
    position = rng.integers(0, count, rows * tables)
    seen = m.sample_positions(position, op.SeededRng(1)).reshape(tables, rows, count).mean(axis=1)
    shares = (seen - off) / (on - off)
    shares += (1 - shares.sum(axis=1, keepdims=True)) / count
    assert shares.mean(axis=0) == pytest.approx(1 / count, abs=0.02)
    return rows * ((shares - 1 / count) ** 2).mean()


@pytest.mark.parametrize(
    "m",
    [op.SubsetSelection(TEN, 0.72), op.UnaryEncoding(TEN, 0.72), op.UnaryEncoding(TEN, 2, "sue")],
)
def test_the_variance_is_that_of_estimated_shares(m):
    assert simulated_variance(m) == pytest.approx(m.share_variance(), rel=0.05)


def cdf_variance(likelihood):
    """Return rows times the variance of the best estimate of a CDF, averaged over its nine steps.

    ``likelihood`` has a row for each of ten categories and a column for each output.
    """
    whole = likelihood.mean(axis=0)
    information = (likelihood / whole) @ likelihood.T
    covariance = np.linalg.inv(information) - 1 / 100  # shares add up to one
    steps = np.tril(np.ones((9, 10)))
    return float(np.diag(steps @ covariance @ steps.T).mean())


def test_ten_categories_at_a_level_of_072():
    """Unary encoding has 13.8, subset selection 12.2; per share 6.83, 6.01 and 9.89 (response)."""
    unary, subset = op.UnaryEncoding(TEN, 0.72), op.SubsetSelection(TEN, 0.72)
    off, _ = unary.bit_rates()
    patterns = np.array(list(product((0, 1), repeat=10)))
    alone = np.where(patterns, off, 1 - off).prod(axis=1)
    odds = np.array(unary.bit_odds())
    assert cdf_variance((alone[:, None] * odds[patterns]).T) == pytest.approx(13.8, abs=0.05)
    sets = patterns[patterns.sum(axis=1) == 3]
    odds = np.array(subset.bit_odds())
    assert cdf_variance((odds[sets] / len(sets)).T) == pytest.approx(12.2, abs=0.05)
    response = np.full((10, 10), 1.0) + np.eye(10) * math.expm1(0.72)
    assert cdf_variance(response / response.sum(axis=1)) == pytest.approx(20.15, abs=0.05)
    assert unary.share_variance() == pytest.approx(6.83, abs=0.01)
    assert subset.share_variance() == pytest.approx(6.01, abs=0.01)
    assert op.SubsetSelection(TEN, 0.72, 1).share_variance() == pytest.approx(9.89, abs=0.01)


def test_the_best_mechanism_at_a_level():
    assert best_nominal(TEN, 0.72) == op.SubsetSelection(TEN, 0.72)
    assert best_nominal(TEN, 3.0) == op.RandomizedResponse(op.Domain(1, 10), 3.0)
    assert best_nominal(["a", "b"], 0.1) == op.RandomizedResponse(op.Domain(1, 2), 0.1)
    for count, epsilon in product((2, 3, 5, 10, 40, 200), (0.1, 0.5, 1, 2, 4, 8)):
        best = best_nominal(range(count), epsilon)
        if isinstance(best, op.RandomizedResponse):
            best = op.SubsetSelection(range(count), epsilon, 1)
        others = [op.UnaryEncoding(range(count), epsilon, kind) for kind in ("oue", "sue")]
        others.append(op.SubsetSelection(range(count), epsilon))
        assert best.share_variance() <= min(m.share_variance() for m in others)


def test_bits_say_for_a_category_what_the_distribution_says():
    m = op.SubsetSelection(CITIES, 0.7)
    unset, held = m.bit_odds()
    assert math.log(held / unset) == pytest.approx(0.7, abs=1e-9)
    rows = [exact_row(m, own) for own in range(5)]
    for s in rows[0]:
        told = np.array([held if own in s else unset for own in range(5)])
        exact = np.array([float(row[s]) for row in rows])
        assert exact / exact.sum() == pytest.approx(told / told.sum(), abs=1e-12)
    off, on = m.bit_rates()
    assert on == pytest.approx(sum(float(p) for s, p in rows[2].items() if 2 in s))
    assert off == pytest.approx(sum(float(p) for s, p in rows[2].items() if 0 in s))


def test_shares_are_found_again():
    shares = np.array([0.5, 0.2, 0.15, 0.1, 0.05])
    m = op.SubsetSelection(CITIES, 1.0)
    position = np.random.default_rng(0).choice(5, size=200_000, p=shares)
    bits = m.sample_positions(position, op.SeededRng(2))
    counts = np.array([[len(bits), *bits.sum(axis=0)]])
    found = BitTally.of(counts, 0, 5, BitNoise.of(m).rates).column()
    assert found == pytest.approx(shares, abs=0.01)


COLUMN = op.PrivateColumn("city", None, op.SubsetSelection(CITIES, 2.0, 2))


def test_a_column_is_stored_and_scaled():
    assert column_from_dict(column_to_dict(COLUMN)) == COLUMN
    free = op.PrivateColumn("city", None, op.SubsetSelection(CITIES, 2.0))
    assert column_from_dict(column_to_dict(free)) == free
    assert free.scaled(0.1).mechanism == op.SubsetSelection(CITIES, 0.2)
    assert free.scaled(0.1).mechanism.subset_size == 2
    certificate = next(certify([COLUMN]))
    assert certificate.covered
    assert certificate.pairs == 10
    table = pd.DataFrame({"city": list(CITIES) * 20})
    out = COLUMN.release(COLUMN.prepare(table), op.SeededRng(1))
    back = from_bytes(COLUMN, to_bytes(COLUMN, out, width_of(COLUMN)))
    assert [c.values.tolist() for c in back] == [c.values.tolist() for c in out]
    assert [c.name for c in out] == [f"city={c}" for c in CITIES]


def test_a_file_names_it():
    plan = parse(
        '[columns.city]\ncategories = ["n", "s", "e"]\n'
        'mechanism = { kind = "subset-selection", epsilon = 0.5, size = 1 }\n',
        "b.toml",
    )
    assert plan.private[0].mechanism == op.SubsetSelection(["n", "s", "e"], 0.5, 1)
    made = registry.build_nominal("subset-selection", ["n", "s"], epsilon=1.0)
    assert made == op.SubsetSelection(["n", "s"], 1.0)


@pytest.mark.parametrize(("denoise", "least"), [(True, 0.9), (False, 0.7)])
def test_a_model_learns_from_sets(denoise, least):
    rng = np.random.default_rng(0)
    n = 6000
    city, pay = rng.integers(0, 5, n), rng.uniform(0, 10, n)
    table = pd.DataFrame({"city": np.array(CITIES)[city], "pay": pay})
    y = (np.isin(city, [0, 3]) ^ (pay > 8)).astype(int)
    grid = op.Domain(1, 10)
    model = op.OpBoostClassifier(
        {"city": op.SubsetSelection(CITIES, 3.0, 2), "pay": op.ClampMap(grid, 2.0)},
        bounds={"pay": (0, 10)},
        denoise=denoise,
        noise_rng=op.SeededRng(1),
        random_state=0,
    ).fit(table, y)
    assert model.score(table, y) > least


def test_the_audit_finds_nothing_against_it_and_catches_a_broken_one(monkeypatch):
    m = op.SubsetSelection(CITIES, 1.0)
    found = op.audit(m, samples=60_000, pairs=3)
    assert found.sound
    assert max(p.lower for p in found.pairs) > 0.8
    on, bits = m.integer_inclusion()
    monkeypatch.setattr(
        op.SubsetSelection, "integer_inclusion", lambda _: (on + (1 << (bits - 3)), bits)
    )
    monkeypatch.setattr(op.SubsetSelection, "loss", lambda *_: 1.0)
    assert not op.audit(m, samples=60_000, pairs=3).sound


@pytest.mark.parametrize("size", [0, 5, 1.5, True, -1, "2"])
def test_bad_sizes_get_one_sentence(size):
    with pytest.raises(op.ParameterError, match=r"size must be a whole number .* from 1 to 4"):
        op.SubsetSelection(CITIES, 1.0, size)


def test_it_is_a_value():
    m = op.SubsetSelection(["a", "b", "c"], epsilon=1.0)
    assert m == op.SubsetSelection(("a", "b", "c"), 1.0, None)
    assert eval(repr(m), vars(op)) == m
    assert subset_selection.SubsetSelection is op.SubsetSelection
    with pytest.raises(op.DataError, match="'moon'"):
        m.sample(["moon"])
