from __future__ import annotations

import itertools
import math

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings
from sklearn.datasets import load_diabetes

import opboost as op
from opboost.randomness.streams import SeededRng
from opboost.theory import best_gain, beta, is_order_preserving, optimal_loss, protocol_cost
from tests.support.strategies import domains, mechanisms

TEN, HUNDRED = op.Domain(1, 10), op.Domain(1, 100)
DISTANCES = range(5, 100, 10)

PRINTED = {  # table op-prob-t of the paper: |D| = 100, θ = 10, ε = .1
    "GRR(ε)": [0.4950, 0.4951, 0.4953, 0.4954, 0.4955, 0.4956, 0.4957, 0.4958, 0.4959, 0.4960],
    "GRR(θε)": [0.4958, 0.4975, 0.4991, 0.5008, 0.5025, 0.5041, 0.5058, 0.5074, 0.5091, 0.5108],
    "Local-map": [0.5024, *[1.0] * 9],
    "α=0.2": [0.4312, 0.5036, 0.5829, 0.6565, 0.7210, 0.7757, 0.8213, 0.8586, 0.8890, 0.9133],
    "α=0.5": [0.4185, 0.5198, 0.6206, 0.7071, 0.7776, 0.8332, 0.8763, 0.9092, 0.9339, 0.9522],
    "α=1": [0.4133, 0.5282, 0.6378, 0.7287, 0.8004, 0.8551, 0.8962, 0.9263, 0.9482, 0.9639],
    "α=2": [0.4105, 0.5332, 0.6476, 0.7406, 0.8126, 0.8666, 0.9062, 0.9348, 0.9551, 0.9693],
    "α=5": [0.4087, 0.5365, 0.6539, 0.7482, 0.8201, 0.8735, 0.9122, 0.9398, 0.9591, 0.9724],
}


def of_the_table(name):
    if name == "GRR(ε)":
        return op.RandomizedResponse(HUNDRED, 0.1)
    if name == "GRR(θε)":
        return op.RandomizedResponse(HUNDRED, 1.0)
    if name == "Local-map":
        return op.LocalMap(HUNDRED, epsilon=0.1, theta=10)
    return op.AdjMap(HUNDRED, 0.1, theta=10, alpha=float(name[2:]))


@pytest.mark.parametrize("name", PRINTED)
def test_the_papers_table_of_gamma_to_four_digits(name):
    m = of_the_table(name)
    assert [round(m.gamma(t, "as_printed"), 4) for t in DISTANCES] == PRINTED[name]


@pytest.mark.parametrize("name", PRINTED)
def test_beside_the_truth(name):
    m = of_the_table(name)
    for t in DISTANCES:
        assert m.gamma(t, "bound") <= m.gamma(t, "exact") + 1e-12


def brute_gamma(m, t):
    p = m.transition_matrix()
    return min(sum(p[x + t, o] * p[x, :o].sum() for o in range(len(p))) for x in range(len(p) - t))


@given(mechanisms(), st.data())
def test_exact_gamma_is_the_minimum_over_pairs(m, data):
    t = data.draw(st.integers(1, m.domain.span))
    assert m.gamma(t) == pytest.approx(brute_gamma(m, t), abs=1e-12)


@given(mechanisms(), st.data())
@settings(max_examples=300)
def test_a_bound_never_exceeds_the_truth(m, data):
    if isinstance(m, op.ClampMap | op.Piecewise | op.WindowMap):
        with pytest.raises(op.ParameterError, match="No theorem"):
            m.gamma(1, "bound")
        return
    t = data.draw(st.integers(1, m.domain.span))
    assert m.gamma(t, "bound") <= m.gamma(t) + 1e-12


def test_errata_21_the_printed_theorem_on_adj_map_is_no_lower_bound():
    m = op.AdjMap(TEN, 2.0, theta=4, alpha=10)
    q, k = math.exp(-m.eps_prt / 2), 3
    theorem = 1 - (1 / ((1 + q - q - q**k) * (1 + q)) - (1 - q) ** 2 / (2 * (1 + q) ** 2))
    assert round(theorem, 3) == 0.480
    assert round(m.gamma(1), 3) == 0.284
    assert m.gamma(1, "bound") <= 0.284


def test_randomised_responses_formula_is_exact():
    m = op.RandomizedResponse(TEN, 0.7)
    for t in range(1, 10):
        assert m.gamma(t, "bound") == pytest.approx(m.gamma(t), abs=1e-9)


def test_gammas_of_the_comparison_on_a_hundred_cells():
    for m, first, fifth, tenth in [
        (op.GlobalMap(HUNDRED, 0.08), 0.501, 0.537, 0.582),
        (op.ClampMap(HUNDRED, 1.28), 0.686, 0.995, 1.0),
    ]:
        p = m.transition_matrix()

        def mean_gamma(t, p=p):
            below = p.cumsum(axis=1)[:, :-1]
            return (p[t:, 1:] * below[: len(p) - t]).sum(axis=1).mean()

        got = [round(mean_gamma(t), 3) for t in (1, 5, 10)]
        assert got == pytest.approx([first, fifth, tenth], abs=0.0011)


def test_bad_gammas_are_refused():
    m = op.GlobalMap(TEN, 0.5)
    with pytest.raises(op.ParameterError, match="between 1 and 9; got 10"):
        m.gamma(10)
    with pytest.raises(op.ParameterError, match="'exact', 'bound' or 'as_printed'"):
        m.gamma(1, "guess")
    with pytest.raises(op.ParameterError, match="only for Adj-map with epsilon and alpha"):
        op.AdjMap(TEN, eps_prt=1, eps_ner=1, theta=2).gamma(1, "as_printed")


@given(st.data())
@settings(max_examples=40)
def test_beta_is_the_chance_that_no_value_crosses(data):
    m = data.draw(mechanisms(data.draw(domains(largest=4))))
    assume(m.outputs.size <= 8)
    cells = st.integers(m.domain.L, m.domain.R)
    left = data.draw(st.lists(cells, min_size=1, max_size=3))
    right = data.draw(st.lists(cells, min_size=1, max_size=2))
    p = m.transition_matrix()
    brute = 0.0
    for outs in itertools.product(range(p.shape[1]), repeat=len(left) + len(right)):
        chance = math.prod(p[v - m.domain.L, o] for v, o in zip([*left, *right], outs, strict=True))
        if max(outs[: len(left)]) < min(outs[len(left) :]):
            brute += chance
    assert beta(m, left, right) == pytest.approx(brute, abs=1e-9)


def test_errata_22_beta_as_printed_counts_ties_more_than_once():
    m = op.LocalMap(TEN, epsilon=0.01, theta=5)
    left, right = [1] * 10, [6, 7]
    assert beta(m, left, right) == pytest.approx(1.0)
    assert beta(m, left, right, "as_printed") > 2
    strict = op.ClampMap(TEN, 8.0)
    assert beta(strict, [2], [7], "as_printed") == pytest.approx(beta(strict, [2], [7]))


def test_cor_maximum_gain_holds_on_data():
    """Simulate that Pr[best gain after >= best gain before] >= beta at the best split."""
    data = load_diabetes()
    raw, y = data.data[:60, 2], data.target[:60]
    grid = op.Domain(1, 100)
    cells = op.NumericMapping(grid, (-0.1, 0.2)).to_grid(raw)
    g, h = y.mean() - y, np.ones(len(y))
    before = best_gain(cells, g, h)
    cuts = np.unique(cells)[:-1]
    cut = max(cuts, key=lambda c: best_gain((cells > c).astype(int), g, h))
    for m in (op.ClampMap(grid, 2.0), op.GlobalMap(grid, 3.0)):
        bound = beta(m, cells[cells <= cut], cells[cells > cut])
        trials = m.sample(np.tile(cells, (400, 1)), rng=SeededRng(3))
        share = np.mean([best_gain(t, g, h) >= before - 1e-9 for t in trials])
        assert bound > 0
        assert share >= bound - 3 * math.sqrt(0.25 / 400)


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.lists(st.integers(0, 5), min_size=12, max_size=12),
)
def test_strict_order_preservation_is_the_definition(x, y):
    y = y[: len(x)]
    pairs = list(itertools.product(range(len(x)), repeat=2))
    kept = all(y[i] > y[j] for i, j in pairs if x[i] > x[j])
    kept &= all(x[i] >= x[j] for i, j in pairs if y[i] > y[j])
    assert is_order_preserving(x, y) == kept


@pytest.mark.parametrize(
    ("cells", "epsilon", "loss", "program", "clamp", "of_global"),
    [
        (32, 0.08, np.abs, 6.320, 7.804, 8.703),
        (32, 1.28, np.abs, 0.5766, 0.5766, 1.3656),
    ],
)
def test_the_best_mechanism_is_clamp_map_with_a_remap(
    cells, epsilon, loss, program, clamp, of_global
):
    best = optimal_loss(op.Domain(1, cells), epsilon, loss=loss)
    assert best.program == pytest.approx(program, abs=6e-4)
    assert best.remapped == pytest.approx(best.program, abs=1e-6)
    assert best.clamp == pytest.approx(clamp, abs=6e-4)
    assert best.global_map == pytest.approx(of_global, abs=6e-4)


@given(st.lists(st.floats(0.01, 1), min_size=6, max_size=6), st.floats(0.1, 2), st.booleans())
@settings(max_examples=25)
def test_program_and_remap_agree_for_any_prior(prior, epsilon, squared):
    best = optimal_loss(op.Domain(1, 6), epsilon, prior, np.square if squared else np.abs)
    assert best.program == pytest.approx(best.remapped, abs=1e-6)
    assert best.remapped <= best.clamp + 1e-12


def test_bad_splits_are_refused():
    m = op.ClampMap(TEN, 1.0)
    with pytest.raises(op.ParameterError, match="0 lies outside"):
        beta(m, [0], [5])
    with pytest.raises(op.DataError, match="integers"):
        beta(m, [2.9], [5])
    with pytest.raises(op.ParameterError, match="the same length"):
        best_gain([1, 2], [1.0], [1.0])
    with pytest.raises(op.ParameterError, match=r"must be an integer; got 2\.5"):
        m.gamma(2.5)


def test_bad_programs_are_refused():
    with pytest.raises(op.ParameterError, match="64 cells; got 100"):
        optimal_loss(HUNDRED, 0.5)
    with pytest.raises(op.ParameterError, match="10 weights"):
        optimal_loss(TEN, 0.5, prior=[1, 2])


def test_costs_are_counted_out():
    cost = protocol_cost(1000, 4, 2, trees=80, layers=3, cells=10)
    assert cost.draws == 8000
    assert cost.training_steps == 80_000
    assert cost.replaced_nodes == 560
    assert cost.total_bits == 8000 * 4 + 560 * 4 + 560 * 4
