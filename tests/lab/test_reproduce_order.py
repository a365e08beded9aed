"""Order, splits and range queries: draws compared with the exact distribution."""

from __future__ import annotations

import numpy as np
import pytest

import opboost as op
from opboost.metrics import expected_kendall, random_queries, weighted_kendall
from opboost_lab.reproduce import artefact
from opboost_lab.reproduce.artefacts import cor_maximum_gain as gain
from opboost_lab.reproduce.artefacts import fig_order_preserving_probability as chance
from opboost_lab.reproduce.columns import NORMAL, SALARIES_ALIKE, UNIFORM, column
from opboost_lab.reproduce.measures import ahead, alpha, ranges
from opboost_lab.reproduce.measures.gammas import gammas
from opboost_lab.reproduce.measures.kendall import kendall
from opboost_lab.reproduce.measures.splits import betas, gains, value_set
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.task import Scope

TEN = op.Domain(1, 10)
METHODS = (
    Method("Global-map"),
    Method("Clamp-map"),
    Method("Adj-map", theta=2, alpha=0.5),
    Method("Adj-map", theta=4, alpha=8.0),
    Method("Local-map", theta=4),
    Method("Piecewise"),
    Method("GRR"),
    Method("Global-map", at="exact"),
    Method("GRR", at="total"),
)


def measured(method, epsilons, seeds=8):
    return kendall(method.as_json(), UNIFORM, [1, 10], 10_000, list(epsilons), list(range(seeds)))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.label)
def test_kendall_is_what_the_distribution_says(method):
    for line in measured(method, (0.08, 0.64, 2.56)):
        error = line["error"] / len(line["measured"]) ** 0.5
        gap = np.mean(line["measured"]) - line["expected"]
        assert abs(gap) < 4.5 * error + 2e-4
        if line["error"] > 1e-4:
            assert 0.4 < np.std(line["measured"], ddof=1) / line["error"] < 2.2


def test_the_margin_of_kendall_would_notice_a_level_off_by_a_tenth():
    right = measured(Method("Global-map"), (0.64,))[0]
    wrong = measured(Method("Global-map"), (0.704,), seeds=1)[0]
    error = right["error"] / len(right["measured"]) ** 0.5
    assert abs(np.mean(right["measured"]) - wrong["expected"]) > 4.5 * error + 2e-4


def test_expected_kendall_is_the_mean_over_all_outcomes():
    m = op.ClampMap(op.Domain(1, 3), 0.7)
    x = np.array([1, 2, 2, 3])
    matrix, total = m.transition_matrix(), np.zeros(2)
    for outcome in np.ndindex(3, 3, 3, 3):
        p = np.prod([matrix[a - 1, y] for a, y in zip(x, outcome, strict=True)])
        y = np.array(outcome)
        sign = np.sign(np.subtract.outer(y, y))
        place = np.array([0, 1.5, 1.5, 3])
        apart = np.subtract.outer(place, place)
        total += p * np.array([(sign * apart).sum() / 2, (np.abs(sign) * np.abs(apart)).sum() / 2])
    own = np.abs(apart).sum() / 2
    value, _ = expected_kendall(matrix, np.array([1, 2, 1]))
    assert value == pytest.approx(total[0] / np.sqrt(own * total[1]), abs=1e-12)


def test_the_order_of_methods_on_a_uniform_grid():
    """Clamp is above Global, above Piecewise, above GRR, at every level and by margins."""
    found = {m: measured(m, (0.16, 0.64, 1.28), seeds=2) for m in METHODS[:7]}
    for i, gap in enumerate((0.1, 0.2, 0.1)):
        mean = {m.family: np.mean(found[m][i]["measured"]) for m in METHODS[:7]}
        assert mean["Clamp-map"] > mean["Global-map"] + gap
        assert mean["Global-map"] > mean["Piecewise"] + 0.05
        assert mean["Piecewise"] > mean["GRR"] + 0.03
        assert mean["Local-map"] > mean["Global-map"]


def test_where_a_small_alpha_overtakes():
    rows = (UNIFORM, [1, 10], 10_000)
    two, four = (
        alpha.orders(*rows, theta, [0.5, 8.0], "nominal", [2.0])["crossings"] for theta in (2, 4)
    )
    assert two == [pytest.approx(2.86, abs=0.02)]
    assert four == [pytest.approx(1.80, abs=0.02)]
    assert alpha.orders(*rows, 4, [0.5, 8.0], "exact", [0.08])["crossings"] == []


@pytest.mark.parametrize("label", ["Clamp-map", "Global-map", "Adj-map α=1", "Local-map", "GRR θε"])
def test_pairs_keep_their_order_as_often_as_the_distribution_says(label):
    method, factor = chance.ROWS[label]
    pairs = 40_000
    drawn = list(chance.DRAWN)
    found = gammas(method.as_json(), factor, [1, 100], 0.1, drawn, pairs)
    assert chance.strays(found, pairs) == 0
    off = {**found, "drawn": [share - 0.02 for share in found["drawn"]]}
    assert chance.strays(off, pairs) >= 8
    mechanism = method.mechanism(op.Domain(1, 100), 0.1 * factor)
    for t in (1, 5, 45, 99):
        assert found["minimum"][t - 1] == pytest.approx(mechanism.gamma(t), abs=1e-12)
        assert found["mean"][t - 1] >= found["minimum"][t - 1] - 1e-12


def test_sets_of_values_have_the_shape_that_they_say():
    grid = op.Domain(1, 100)
    assert value_set("uniform", 100, grid).tolist() == list(range(1, 101))
    normal = value_set("normal", 100, grid)
    assert (normal + normal[::-1] == 101).all()
    assert normal.std() == pytest.approx(100 / 6, rel=0.05)


def test_beta_of_the_figure():
    found = betas(
        Method("Global-map").as_json(), "normal", 100, [1, 100], [0.64, 5.12], [0.25, 0.5]
    )
    assert [f["left"] for f in found] == [25, 50]
    assert found[0]["exact"][0] > 3 * found[1]["exact"][0]
    assert found[1]["as_printed"][1] > 1.4
    assert found[1]["exact"][1] < 0.75


@pytest.mark.parametrize("family", ["Clamp-map", "Global-map", "GRR"])
def test_the_corollary_holds_only_with_the_exact_beta(family):
    draws = 1500
    below = 0
    for case in gain.CASES:
        shape, rows, grid = case
        lines = gains(Method(family).as_json(), shape, rows, list(grid), [0.64, 2.56, 5.12], draws)
        for x in lines:
            assert not gain.below(x["no_smaller"], x["exact"], draws)
            slack = 4.5 * (x["exact"] * (1 - x["exact"]) / draws + 1 / draws**2) ** 0.5
            assert abs(x["no_crossing"] - x["exact"]) < slack
            assert x["no_smaller"] >= x["no_crossing"]
            below += gain.below(x["no_smaller"], x["as_printed"], draws)
    assert below >= (0 if family == "GRR" else 3)


def test_counts_err_as_expected_and_as_the_public_metric_says():
    grid, rows = [1, 128], 20_000
    method = Method("Clamp-map")
    seeds = list(range(24))
    found = ranges.counted(method.as_json(), NORMAL, grid, rows, 2000, 0.05, seeds)
    spread = np.std(found["mse"], ddof=1) / len(seeds) ** 0.5
    assert abs(np.mean(found["mse"]) - found["expected"]) < 4.5 * spread
    domain = op.Domain(*grid)
    cells = column(NORMAL, 1, 128, rows)
    rng = op.SeededRng(0).child((method.as_json(), 0.05))
    noisy = method.mechanism(domain, 0.05).sample(cells, rng=rng)
    asked = random_queries(domain, 2000, op.SeededRng(0))
    assert op.range_query_mse(cells, noisy, asked) == pytest.approx(found["mse"][0], rel=1e-9)


def test_expected_error_is_that_of_all_outcomes():
    m = op.GlobalMap(op.Domain(1, 3), 1.0)
    matrix, counts = m.transition_matrix(), np.array([2, 0, 1])
    queries = np.array([[0, 0], [0, 1], [1, 2]])
    total = 0.0
    for outcome in np.ndindex(3, 3, 3):
        p = matrix[0, outcome[0]] * matrix[0, outcome[1]] * matrix[2, outcome[2]]
        for lo, hi in queries:
            seen = sum(lo <= y <= hi for y in outcome)
            total += p * ((seen - counts[lo : hi + 1].sum()) / 3) ** 2
    assert ranges.expected_error(matrix, counts, queries) == pytest.approx(total / 3, abs=1e-12)


def test_reconstruction_answers_better_than_counts_on_a_thousand_cells():
    settings = (SALARIES_ALIKE, [1, 1024], 50_000, 2000, 0.02)
    method = Method("Clamp-map").as_json()
    distribution = ranges.reconstructed(method, *settings, 0)
    plain = ranges.counted(method, *settings, [0])
    assert distribution["mse"] < plain["mse"][0] / 10


def ahead_errors(epsilon, users, seeds):
    x = np.clip(np.rint(np.random.default_rng(0).normal(512, 100, users)), 0, 1023)
    counts = np.bincount(x.astype(int), minlength=1024)
    asked = np.sort(np.random.default_rng(1).integers(0, 1024, (200, 2)), axis=1)
    rise = np.r_[0, counts.cumsum()] / users
    true = rise[asked[:, 1] + 1] - rise[asked[:, 0]]
    found = {"coded": [], "textbook": []}
    for seed in range(seeds):
        tree = ahead.grow(counts, epsilon, np.random.default_rng(seed))
        for weights, errors in found.items():
            got = ahead.answers(ahead.weighed(tree, weights)[0], asked)
            errors.append(np.mean((got - true) ** 2))
    return found


def test_ahead_errs_as_its_authors_run_does():
    """Their stored run at ε = 1 on 100,000 normal values has 2.56e-4; the median of ours is 3.4e-4,
    and nine in ten are between 1.4e-4 and 5.2e-4."""
    found = ahead_errors(1.0, 100_000, 60)
    assert 2.7e-4 < np.median(found["coded"]) < 4.1e-4
    assert np.quantile(found["coded"], 0.05) < 2.56e-4 < np.quantile(found["coded"], 0.95)
    assert np.median(found["textbook"]) < 0.8 * np.median(found["coded"])


def test_ahead_without_noise_to_speak_of_finds_the_shares():
    counts = np.bincount(np.random.default_rng(3).integers(0, 16, 400_000) // 2, minlength=16)
    tree = ahead.grow(counts, 12.0, np.random.default_rng(0))
    every = np.array([[k, k] for k in range(16)] + [[0, 7], [4, 15], [0, 15]])
    rise = np.r_[0, counts.cumsum()] / counts.sum()
    for weights in ("coded", "textbook"):
        got = ahead.answers(ahead.weighed(tree, weights)[0], every)
        assert np.abs(got - (rise[every[:, 1] + 1] - rise[every[:, 0]])).max() < 0.02
    assert ahead.answers(ahead.weighed(tree, "textbook")[0], every)[-1] == 1.0


def test_ahead_does_not_divide_what_holds_nothing():
    counts = np.zeros(64, dtype=int)
    counts[:8] = 5_000
    leaves, waiting = [], [ahead.grow(counts, 2.0, np.random.default_rng(0))]
    while waiting:
        node = waiting.pop()
        waiting += node.children
        leaves += [] if node.children else [node]
    assert sorted(n.begin for n in leaves)[:8] == list(range(8))
    assert all(n.end - n.begin >= 8 for n in leaves if n.begin >= 16)
    assert sum(n.end - n.begin for n in leaves) == 64


def test_kendall_is_one_where_nothing_moves():
    x = column(UNIFORM, 1, 10, 500)
    assert weighted_kendall(x, x) == pytest.approx(1)
    assert expected_kendall(np.eye(10), np.full(10, 50))[0] == pytest.approx(1)


@pytest.mark.parametrize(
    "label",
    [
        "fig:split_prob",
        "fig:adult_kendall",
        "fig:syn10_kendall",
        "fig:order preserving probability",
        "fig:rq_salaries",
        "fig:rq_uniform",
        "cor:maximum_gain",
        "crossover of alpha",
    ],
)
def test_artefacts_list_their_tasks_without_data_and_full_runs_have_the_papers_repeats(label):
    quick = artefact(label).tasks(Scope(quick=True, bundled=True))
    full = artefact(label).tasks(Scope())
    assert artefact(label).label == label
    assert len(set(quick)) == len(quick) <= len(full)
    assert sum(t.cost for t in quick) < 60
    if label.startswith("fig:rq"):
        assert any('"seeds": [0, 1, 2' in t.settings and " 99]" in t.settings for t in full)


def test_a_figure_is_shown_from_its_results():
    scope = Scope(quick=True, bundled=True)
    found = artefact("fig:syn10_kendall")
    shown = found.show(scope, {t: t.run() for t in found.tasks(scope)})
    assert shown.summary.startswith("63 of 63 measured means are within 4.5 standard errors")
    assert [p.title for p in shown.panels] == [
        "θ = 2, as in the paper",
        "θ = 4, as in the paper",
        "Equal exact ε, θ = 4",
        "Equal total ε",
    ]
    labels = [c.label for c in shown.panels[0].curves]
    assert {"Clamp-map", "Global-map", "Local-map", "Piecewise", "GRR"} < set(labels)
    assert shown.headlines[1].best == pytest.approx(0.85, abs=0.02)
