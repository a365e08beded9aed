"""Denoising: properties of EM, posteriors and draws, and that denoising helps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer

import opboost as op
from opboost.denoise import (
    BitNoise,
    Groups,
    NoiseMatrix,
    Outputs,
    Space,
    Verdict,
    fit,
    noise_matrix_of,
)
from opboost.denoise.category_shares import BitTally
from opboost.denoise.column_pairs import pairing
from opboost.denoise.column_pmfs import ColumnStart
from opboost.denoise.encoded_rows import EncodedRows
from opboost.denoise.mixture_kernel import UNSENT
from opboost.denoise.model_selection import Base, best_base, one_class, seeded, tally
from opboost.denoise.reconstruct import deconvolve
from opboost.denoise.whether_to_denoise import losses
from opboost.training.denoised_rows import LARGE_TABLE_ROWS, judges
from opboost.training.released_columns import from_sample, rows_of

GRID = op.Domain(1, 10)


def mechanisms():
    return [
        op.ClampMap(GRID, 0.5),
        op.GlobalMap(GRID, 0.5),
        op.AdjMap(GRID, 0.5, theta=2),
        op.LocalMap(GRID, epsilon=0.5, theta=2),
        op.RandomizedResponse(GRID, 1.0),
        op.Piecewise(GRID, 1.0),
    ]


def noisy(clean, m, seed):
    """Return the codes of grid values (from 0 on) after noise."""
    return (m.sample(clean + GRID.L, rng=op.SeededRng(seed)) - m.outputs.L).astype(np.uint8)


def no_bits(rows):
    return np.zeros((rows, 0), dtype=np.uint8)


def world(seed=0, rows=4000, epsilon=0.64):
    """Return rows of two classes, each with two latent kinds, in three columns."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, rows)
    kind = rng.integers(0, 2, rows)
    middle = np.array([[[2, 2, 7], [6, 6, 2]], [[4, 2, 2], [8, 6, 7]]])[y, kind]
    clean = np.clip(np.rint(middle + rng.normal(0, 0.8, (rows, 3))), 0, 9).astype(np.int64)
    m = op.ClampMap(GRID, epsilon)
    codes = np.column_stack([noisy(clean[:, j], m, 10 * seed + j) for j in range(3)])
    space = Space((noise_matrix_of(m),) * 3, (10,) * 3)
    return space, Groups.classes(y, 2), Outputs(codes, no_bits(rows)), clean, y


@pytest.mark.parametrize("m", mechanisms(), ids=lambda m: type(m).__name__)
def test_noise_matrices_are_the_mechanisms_own_distributions(m):
    channel = noise_matrix_of(m)
    assert np.allclose(channel.matrix, m.transition_matrix())
    assert np.allclose(channel.posterior(np.full(10, 0.1)).sum(axis=1), 1)
    part = noise_matrix_of(m, sent=0.25)
    assert part.outputs == channel.outputs + 1
    assert np.allclose(part.matrix[:, -1], 0.75)


def test_a_flagged_columns_channel_is_what_its_mechanism_does():
    m = op.WithMissing(op.ClampMap(GRID, 0.5), eps_missing=1.0, constant=4)
    n = 200_000
    for x in (3, None):
        cells = np.full(n, 4 if x is None else x)
        drawn, gone = m.sample(cells, np.full(n, x is None), rng=op.SeededRng(1))
        seen = np.bincount(np.where(gone, 10, drawn - 1), minlength=11) / n
        distribution = noise_matrix_of(m).matrix[10 if x is None else x - 1]
        assert np.abs(seen - distribution).max() < 0.005


def test_a_grid_too_large_to_invert_has_no_channel():
    assert noise_matrix_of(op.ClampMap(op.Domain(1, 5000), 0.01)) is None
    with pytest.raises(op.ParameterError, match="too large to be deconvolved"):
        op.reconstruct([3], op.ClampMap(op.Domain(1, 5000), 0.01))
    with pytest.raises(op.ParameterError, match="add up to 1"):
        NoiseMatrix(np.ones((2, 2)))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 50), min_size=10, max_size=10).filter(lambda c: sum(c) > 0),
    st.sampled_from(mechanisms()[:5]),
    st.integers(1, 40),
)
def test_em_never_makes_the_counts_less_likely(counts, m, steps):
    channel = noise_matrix_of(m)
    before = deconvolve(counts, channel, steps)
    after = deconvolve(counts, channel, steps + 1)
    assert before.sum() == pytest.approx(1)
    assert (before >= 0).all()
    likely = [
        np.asarray(counts) @ np.log(np.maximum(p @ channel.matrix, 1e-300)) for p in (before, after)
    ]
    assert likely[1] >= likely[0] - 1e-7 * abs(likely[0])


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**31), st.integers(2, 5), st.sampled_from([0.1, 0.64, 2.0]))
def test_a_step_of_the_mixture_keeps_pmfs_and_rarely_loses_likelihood(seed, classes, epsilon):
    space, groups, outputs, _, _ = world(seed % 7, 600, epsilon)
    rows = EncodedRows.of(outputs.codes, outputs.bits, groups.of, 2)
    counts = tally(rows, space.index())
    one = one_class(space, counts, Base.alike(len(space.channels), 0, 20), groups)
    rng = np.random.default_rng(seed)
    model = seeded(one, rows, classes, np.eye(2, dtype=np.float32), groups, rng)
    scores = []
    for _ in range(12):
        scores.append(float(model.likelihoods(rows).sum()))
        model = model.stepped(rows)
        assert np.allclose(model.pi.sum(axis=1), 1, atol=1e-5)
        for j in range(3):
            pmfs = model.P[:, 10 * j : 10 * j + 10]
            assert np.allclose(pmfs.sum(axis=1), 1, atol=1e-4)
    # Over-relaxation and shrinkage may make single steps worse, but not the whole path.
    assert scores[-1] > scores[0] - 1.0


def test_the_compiled_likelihood_is_the_sum_over_classes():
    """Compare with an independent, slow computation."""
    space, groups, outputs, _, _ = world(rows=300)
    rows = EncodedRows.of(outputs.codes, outputs.bits, groups.of, 2)
    counts = tally(rows, space.index())
    assert counts[:, :10].sum() == 300
    one = one_class(space, counts, Base.alike(len(space.channels), 0, 20), groups)
    model = seeded(one, rows, 3, np.eye(2, dtype=np.float32), groups, np.random.default_rng(0))
    model = model.stepped(rows)
    slow = []
    for row in rows.order:
        g = groups.of[row]
        chance = model.pi[g].astype(float)
        for j in range(3):
            pmf = model.P[g, 10 * j : 10 * j + 10].astype(float)
            seen = outputs.codes[row, j]
            chance = (
                chance * (space.channels[j].matrix[:, seen] @ pmf) / model.constant[10 * j + seen]
            )
        slow.append(np.log(chance.sum()))
    assert np.allclose(model.likelihoods(rows)[:, 0], slow, atol=1e-3)


def test_draws_follow_the_posterior():
    """One class and one column: P(x | y, label) in closed form."""
    m = op.ClampMap(GRID, 0.64)
    rng = np.random.default_rng(0)
    clean = rng.choice(10, 40_000, p=np.arange(1, 11) / 55)
    outputs = Outputs(noisy(clean, m, 3)[:, None], no_bits(len(clean)))
    groups = Groups.classes(np.zeros(len(clean)), 1)
    denoiser = fit(Space((noise_matrix_of(m),), (10,)), groups, outputs, seed=1)
    member = denoiser.members[0]
    if member.classes == 1:
        drawn = denoiser.draw(outputs, np.zeros(len(clean)), 0, seed=5).cells[:, 0]
        distribution = noise_matrix_of(m).posterior(member.P[0, :, 0])
        for y in range(10):
            seen = np.bincount(drawn[outputs.codes[:, 0] == y], minlength=10)
            assert np.abs(seen / seen.sum() - distribution[y]).max() < 0.03
    assert np.abs(np.bincount(drawn, minlength=10) / 40_000 - np.arange(1, 11) / 55).max() < 0.03


def test_draws_repeat_by_seed_and_number_and_differ_between_them():
    space, groups, outputs, _, y = world()
    one, two = (fit(space, groups, outputs, seed=3) for _ in range(2))
    first = one.draw(outputs, y, 0, seed=9).cells
    assert (first == two.draw(outputs, y, 0, seed=9).cells).all()
    assert (first != one.draw(outputs, y, 1, seed=9).cells).any()
    assert (first != one.draw(outputs, y, 0, seed=8).cells).any()
    some = np.arange(0, 4000, 2)
    part = one.draw(outputs[some], y[some], 0, seed=9).cells
    assert part.shape == (2000, 3)


def test_the_joint_distribution_is_recovered():
    """Draws keep means by label and the dependence within a label, which noise hides."""
    space, groups, outputs, clean, y = world(rows=20_000)
    drawn = fit(space, groups, outputs, seed=0).draw(outputs, y, 0, seed=0).cells.astype(float)
    for label in (0, 1):
        own = y == label
        assert np.abs(drawn[own].mean(axis=0) - clean[own].mean(axis=0)).max() < 0.35
        true, found, raw = (
            np.corrcoef(x[own][:, :2].T)[0, 1] for x in (clean, drawn, outputs.codes.astype(float))
        )
        assert true > 0.8
        assert raw < 0.5
        assert found > 0.65


def test_unary_bits_are_denoised_as_one_category():
    rng = np.random.default_rng(0)
    kinds = op.UnaryEncoding(list("abcd"), epsilon=1.0)
    y = rng.integers(0, 2, 8000)
    clean = np.where(rng.random(8000) < 0.8, y, rng.integers(0, 4, 8000))
    bits = kinds.sample_positions(clean, op.SeededRng(2))
    bits[:50, 0] = UNSENT
    space = Space((), (), (BitNoise.of(kinds),))
    outputs = Outputs(np.zeros((8000, 0), np.uint8), bits)
    groups = Groups.classes(y, 2)
    drawn = fit(space, groups, outputs, seed=0).draw(outputs, y, 0, seed=0).categories[:, 0]
    for label in (0, 1):
        share = [
            np.bincount(x[y == label], minlength=4) / (y == label).sum() for x in (clean, drawn)
        ]
        assert np.abs(share[0] - share[1]).max() < 0.08  # a share's standard error is .03


def test_bins_of_a_target_are_even_and_know_their_neighbours():
    target = np.random.default_rng(0).normal(size=5000) ** 3
    groups = Groups.bins(target)
    assert groups.count == 32
    assert np.bincount(groups.of).min() > 100
    kernel = groups.kernel(2.0)
    assert (np.diag(kernel) == 1).all()
    assert (np.diff(kernel[0]) < 0).all()
    assert (groups.place(target) == groups.of).all()
    assert Groups.bins(np.ones(500)).count == 1


def test_noisier_columns_are_smoothed_more_over_labels():
    rng = np.random.default_rng(0)
    target = rng.random(6000)
    clean = np.clip((target * 10 + rng.normal(0, 0.5, 6000)).astype(int), 0, 9)
    widths = []
    for epsilon in (0.05, 2.0):
        m = op.ClampMap(GRID, epsilon)
        groups = Groups.bins(target)
        rows = EncodedRows.of(noisy(clean, m, 1)[:, None], no_bits(6000), groups.of, groups.count)
        space = Space((noise_matrix_of(m),), (10,))
        fold = rng.integers(0, 4, 6000)
        folds = [tally(rows.where(fold == f), space.index()) for f in range(4)]
        widths.append(best_base(space, groups, folds).near)
    assert widths[0] > widths[1]


def test_columns_that_belong_together_are_paired():
    space, groups, outputs, _, _ = world()
    found = pairing(space, groups, outputs.codes)
    assert found.pairs == ((0, 1),)
    codes = found.paired(outputs.codes)
    assert codes.shape == (4000, 2)
    assert (found.parted(codes) == outputs.codes).all()
    assert pairing(space, Groups.bins(np.arange(4000.0)), outputs.codes).pairs == ()


def test_the_verdict_denoises_unless_plain_rows_are_clearly_better():
    rng = np.random.default_rng(0)
    loss = rng.random(500)
    nothing = np.full(500, 0.6)  # little is known, so draws may be worse by up to the error
    assert Verdict.of(loss, loss + rng.normal(0.0, 1.0, 500), nothing, 5000).denoise
    assert not Verdict.of(loss, loss + 0.1, nothing, 5000).denoise
    y = rng.normal(size=400)
    timid, bold = 0.1 * y, 3 * y
    assert losses(timid, y, "regression") == pytest.approx(losses(bold, y, "regression"))
    chance = np.array([[0.6, 0.4], [0.4, 0.6]])[(y > 0).astype(int)]
    sure = np.array([[0.9, 0.1], [0.1, 0.9]])[(y > 0).astype(int)]
    gap = (
        losses(chance, (y > 0) * 1.0, "binary").mean()
        - losses(sure, (y > 0) * 1.0, "binary").mean()
    )
    assert 0 <= gap < 0.5


@pytest.mark.parametrize("m", mechanisms()[:5], ids=lambda m: type(m).__name__)
def test_a_reconstructed_column_is_nearer_than_the_noisy_one(m):
    rng = np.random.default_rng(1)
    clean = np.clip(rng.poisson(3, 20_000) + 1, 1, 10)
    released = m.sample(clean, rng=op.SeededRng(4))
    found = op.reconstruct(released, m)
    true = np.bincount(clean - 1, minlength=10) / len(clean)
    raw = np.bincount(np.clip(released, 1, 10) - 1, minlength=10) / len(clean)
    assert found.pmf.sum() == pytest.approx(1)
    gaps = [np.abs(np.cumsum(p - true)).max() for p in (found.pmf, raw)]
    assert gaps[0] < 0.5 * gaps[1]
    assert (np.abs(found.pmf - true) < 6 * found.error + 0.05).all()
    assert abs(found.mean - clean.mean()) < 0.5 * abs(raw @ np.arange(1, 11) - clean.mean()) + 0.1
    assert found.quantile([0, 1]).tolist() == [found.quantile(0.0), found.quantile(1.0)]
    assert found.range([[1, 10]])[0] == pytest.approx(1)
    assert (found.pmf == op.reconstruct(released, m).pmf).all()


def test_reconstruct_refuses_what_it_cannot_use():
    m = op.ClampMap(GRID, 0.5)
    with pytest.raises(op.DataError, match="released integers"):
        op.reconstruct([0.5], m)
    with pytest.raises(op.DataError, match="must lie in"):
        op.reconstruct([11], m)
    found = op.reconstruct([1, 5, 9, 9], m)
    with pytest.raises(op.ParameterError, match="between 0 and 1"):
        found.quantile(2)
    with pytest.raises(op.DataError, match="shape"):
        found.range([1, 2])
    with pytest.raises(op.DataError, match="end before"):
        found.range([[2, 1]])


def clean_problem(seed=0, rows=6000):
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 4))
    hidden = 3 * X[:, 0] + 2 * (X[:, 1] > 0.5) + X[:, 2] ** 2
    return X, hidden + rng.normal(0, 0.1, rows)


@pytest.mark.parametrize("denoise", [True, "auto"])
def test_denoising_wins_back_what_noise_took(denoise):
    """Noisy rows, and draws without the label, do not reach this margin."""
    X, y = clean_problem()
    score = {}
    for way in (False, denoise):
        reg = op.OpBoostRegressor(
            op.ClampMap(GRID, 0.16), bounds=(0, 1), denoise=way, random_state=0,
            noise_rng=op.SeededRng(5),
        )  # fmt: skip
        score[way] = reg.fit(X[:5000], y[:5000]).score(X[5000:], y[5000:])
        assert reg.denoised_ is bool(way)
    assert score[denoise] > score[False] + 0.12


def test_without_a_label_groups_and_cells_follow_bayes():
    """One column, two groups: P(group | y) and P(x | y) in closed form."""
    m = op.ClampMap(GRID, 0.64)
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 20_000)
    clean = np.where(y == 0, rng.integers(0, 5, len(y)), rng.integers(3, 10, len(y)))
    outputs = Outputs(noisy(clean, m, 3)[:, None], no_bits(len(y)))
    distribution = fit(
        Space((noise_matrix_of(m),), (10,)), Groups.classes(y, 2), outputs, seed=1
    ).distribution()
    every = Outputs(np.arange(10, dtype=np.uint8)[:, None], no_bits(10))
    pmfs = np.einsum(
        "gxc,gc->gx", distribution.member.P.astype(float), distribution.member.pi.astype(float)
    )
    joint = distribution.share[:, None, None] * pmfs[:, :, None] * noise_matrix_of(m).matrix
    bayes = joint.sum(axis=1).T / joint.sum(axis=(0, 1))[:, None]
    chance = distribution.chances(every)
    assert np.allclose(chance, bayes, atol=1e-3)
    times = 20_000
    drawn = distribution.guesses(every, chance, times, seed=7).cells[:, 0].reshape(10, times)
    cells = joint.sum(axis=0).T / joint.sum(axis=(0, 1))[:, None]
    for seen in range(10):
        shares = np.bincount(drawn[seen], minlength=10) / times
        assert np.abs(shares - cells[seen]).max() < 0.02


@pytest.mark.parametrize("epsilon", [0.08, 0.16])
def test_desensitised_rows_are_predicted_through_the_posterior(tmp_path, epsilon):
    """Compare with the same model's predictions from the noisy values themselves."""
    X, y = clean_problem()
    reg = op.OpBoostRegressor(
        op.ClampMap(GRID, epsilon), bounds=(0, 1), random_state=0, noise_rng=op.SeededRng(5)
    ).fit(X[:5000], y[:5000])
    table, values = reg.desensitizer_.release(X[5000:])
    released = from_sample(reg.private_columns_, values, sent=1.0)
    model = reg.trained_model_
    direct = reg.trained_.predict(model.layout.values(released, np.empty((len(table), 0))))
    ours = model.of_released(table, released)
    var = y[5000:].var()
    assert ((ours - y[5000:]) ** 2).mean() < ((direct - y[5000:]) ** 2).mean() - 0.03 * var
    assert ((ours - y[5000:]) ** 2).mean() < var
    elsewhere = model.of_released(table[::-7], rows_of(released, slice(None, None, -7)))
    assert np.allclose(elsewhere, ours[::-7], rtol=1e-9)  # wherever in the table the row is
    reg.save(tmp_path / "model.opboost")
    again = op.load(tmp_path / "model.opboost").trained_model_
    assert (again.of_released(table, released) == ours).all()


def test_an_estimator_denoises_every_kind_of_column_and_stays_a_stock_model(tmp_path):
    frame, y = load_breast_cancer(return_X_y=True, as_frame=True)
    X = frame[["mean radius", "worst texture", "mean smoothness"]].copy()
    X["size"] = np.where(frame["mean area"] > 600, "large", "small")
    X["kind"] = np.where(frame["worst area"] > 700, "a", "b")
    X.loc[::9, "worst texture"] = np.nan
    clf = op.OpBoostClassifier(
        {
            "mean radius": op.ClampMap(GRID, 0.5),
            "worst texture": op.GlobalMap(GRID, 0.5),
            "size": op.UnaryEncoding(["small", "large"], 1.0),
            "kind": op.RandomizedResponse(op.Domain(1, 2), 1.0),
        },
        bounds={"mean radius": (5, 30), "worst texture": (10, 50)},
        categories={"kind": ["a", "b"]},
        missing={"worst texture": op.Flag(2.0, 20.0)},
        denoise=True,
        random_state=0,
        noise_rng=op.SeededRng(1),
    )
    first = clf.fit(X, y).predict_proba(X)
    assert clf.denoised_
    assert (first == clf.fit(X, y).predict_proba(X)).all()
    clf.save(tmp_path / "model.opboost")
    again = op.load(tmp_path / "model.opboost")
    assert (again.predict_proba(X) == first).all()
    table, values = clf.desensitizer_.release(X)
    released = from_sample(clf.private_columns_, values, sent=1.0)
    chances = clf.trained_model_.of_released(table, released)
    assert np.allclose(chances.sum(axis=1), 1)
    assert (again.trained_model_.of_released(table, released) == chances).all()


def test_sampled_columns_and_large_grids_are_served_too():
    X, y = clean_problem(rows=1500)
    few = op.OpBoostRegressor(
        op.ClampMap(GRID, 1.0), bounds=(0, 1), budget=op.Budget.sampled(2), denoise=True,
        random_state=0, noise_rng=op.SeededRng(5),
    ).fit(X, y)  # fmt: skip
    assert few.denoised_
    large = op.OpBoostRegressor(op.ClampMap(op.Domain(1, 5000), 0.01), bounds=(0, 1), denoise=True)
    assert not large.fit(X, y).denoised_


def test_few_rows_are_not_denoised():
    X, y = clean_problem(rows=200)
    reg = op.OpBoostRegressor(op.ClampMap(GRID, 0.5), bounds=(0, 1)).fit(X, y)
    assert not reg.denoised_
    assert reg.verdict_ is None


def test_a_blank_mixture_starts_at_each_columns_own_distribution():
    space, groups, outputs, clean, _ = world()
    rows = EncodedRows.of(outputs.codes, outputs.bits, groups.of, 2)
    columns = ColumnStart.of(space, tally(rows, space.index()))
    start = columns.blank(2, np.eye(2, dtype=np.float32))
    true = np.bincount(clean[:, 0], minlength=10) / len(clean)
    assert np.abs(start.P[0, :10, 0] - true).max() < 0.12


def test_where_noisy_rows_predict_well_draws_must_be_better():
    naive = np.ones(1000)
    ripple = np.tile([-0.01, 0.01], 500)  # a paired standard error of about .0003
    for shift, little, much in ((-0.05, True, True), (0.0, True, False), (0.05, False, False)):
        draws = naive + shift + ripple
        assert Verdict.of(naive, draws, np.full(1000, 1.5), 9000).denoise is little
        assert Verdict.of(naive, draws, np.full(1000, 20.0), 9000).denoise is much
        assert Verdict.of(naive, draws, np.full(1000, 1.5), 400).denoise is much  # few rows


def test_of_large_tables_more_rows_decide():
    part = np.full(LARGE_TABLE_ROWS + 1, 2, dtype=np.uint8)
    part[:8000], part[8000:10_000] = 1, 0
    seen, held = judges(part)
    assert len(seen) > LARGE_TABLE_ROWS // 4
    assert len(held) > 5000
    assert not set(seen) & set(held)


def test_shares_of_many_categories_and_few_rows_are_drawn_together():
    rng = np.random.default_rng(0)
    true = np.full(60, 1 / 60)
    for rows, epsilon, tells in ((2000, 0.64, False), (2000, 0.08, False), (120_000, 0.64, True)):
        kinds = op.UnaryEncoding([str(k) for k in range(60)], epsilon)
        group = np.sort(rng.integers(0, 20, rows))
        clean = rng.integers(0, 60, rows)
        if tells:  # half of a group's rows have a category of their own
            clean = np.where(rng.random(rows) < 0.5, group, clean)
        bits = kinds.sample_positions(clean, op.SeededRng(1))
        counts = np.array([[(group == g).sum(), *bits[group == g].sum(axis=0)] for g in range(20)])
        found = BitTally.of(counts, 0, 60, BitNoise.of(kinds).rates)
        shares = found.groups(np.eye(20, dtype=np.float32))
        assert shares.sum(axis=1) == pytest.approx(np.ones(20))
        if tells:
            assert shares[np.arange(20), np.arange(20)].min() > 0.25
        else:  # chance differences in a group of a hundred rows are shrunk away
            assert np.abs(shares - true).mean() < 0.02  # about .0165; .025 with raw shares
            assert np.abs(found.column() - true).mean() < 0.02


def test_nominal_columns_that_tell_nothing_do_not_undo_what_denoising_gains():
    kinds, ratio = [str(k) for k in range(40)], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, kind = rng.random(4500), rng.choice(kinds, 4500)
        X, y = pd.DataFrame({"x": x, "kind": kind}), np.sin(6 * x) + rng.normal(0, 0.3, 4500)
        errors = []
        for denoise in (True, False):
            reg = op.OpBoostRegressor(
                {"x": op.ClampMap(GRID, 1.0), "kind": op.UnaryEncoding(kinds, 1.0)},
                bounds={"x": (0, 1)},
                categories={"kind": kinds},
                booster_params={"n_estimators": 40, "max_depth": 3, "eta": 0.2},
                denoise=denoise,
                random_state=seed,
                noise_rng=op.SeededRng(seed),
            ).fit(X[:1500], y[:1500])
            errors.append(np.mean((reg.predict(X[1500:]) - y[1500:]) ** 2))
        ratio.append(errors[0] / errors[1])
    assert np.mean(ratio) < 0.95  # about .87; above 1 with raw shares


def test_predictions_that_are_noise_of_guessing_lose_no_less_than_nothing_would():
    rng = np.random.default_rng(0)
    y, guess = rng.normal(size=400), rng.normal(0, 0.1, 400)
    for variance in (0.0099, 0.0101, 0.02):  # estimates for uninformative guesses
        told = losses(guess, y, "regression", np.full(400, variance)).mean()
        assert 0.9 * y.var() < told <= y.var()
