"""The one path to a model: the same for every caller, even if columns are sent unevenly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.boosting.booster import fit_booster
from opboost.config import parse
from opboost.training.feature_matrix import OwnTable
from opboost.training.released_columns import ReleasedColumn, from_sample, rows_of
from opboost.training.targets import Target
from opboost.training.train_model import HeldOut, prepare_rows, train_model, values_in
from opboost.training.training_settings import TrainingSettings

ROWS = 3000
NAMES = ("a", "b", "c", "d")
GRID = op.Domain(0, 9)


def clean_rows(rows=ROWS, seed=0):
    rng = np.random.default_rng(seed)
    common = rng.uniform(0, 10, rows)
    table = pd.DataFrame({n: (common + rng.normal(0, 1.5, rows)).clip(0, 9.99) for n in NAMES})
    return table, common > 5


def private(name, epsilon):
    return op.PrivateColumn(name, op.NumericMapping(GRID, (0, 10)), op.ClampMap(GRID, epsilon))


def settings(denoise=True, **more):
    return TrainingSettings.of("xgboost", {"n_estimators": 20}, denoise, 0, **more)


def release_of(table, shares, epsilon=1.0):
    """Return columns, each sent by a random share of the rows."""
    found, rng = [], np.random.default_rng(1)
    for name, share in zip(NAMES, shares, strict=True):
        column = private(name, epsilon)
        (out,) = column.release(column.prepare(table), op.SeededRng(2))
        gone = None if share == 1 else rng.random(len(table)) >= share
        out = type(out)(out.name, out.values, gone)
        found += from_sample([column], {name: [out]}, share)
    return found


def test_the_estimator_takes_the_same_path():
    table, y = clean_rows()
    columns = tuple(private(n, 0.5) for n in NAMES[:3])
    clf = op.OpBoostClassifier(
        columns,
        booster_params={"n_estimators": 20},
        denoise=True,
        random_state=0,
        noise_rng=op.SeededRng(3),
    ).fit(table, y)
    release = from_sample(columns, clf.desensitizer_.release(table)[1], sent=1.0)
    own = OwnTable.of(table, without=NAMES[:3])
    model = train_model(release, own, Target.of_classes(y), settings())
    assert model.layout == clf.trained_model_.layout
    rows = model.layout.plain_values(*clf.desensitizer_.prepare(table))
    assert np.array_equal(model.trained.predict(rows), clf.predict_proba(table))
    assert model.denoised
    assert model.labels.tolist() == [False, True]


def test_the_steps_in_sequence_are_the_whole():
    table, _ = clean_rows()
    target, held_y = Target.of_numbers(table["a"]), clean_rows(500, 1)[0]
    held = HeldOut(release_of(held_y, (1, 1, 1, 1)), None, held_y["a"].to_numpy())
    how = settings(early_stopping=5)
    whole = train_model(release_of(table, (1, 1, 1, 1)), OwnTable.of(None), target, how, held)
    prepared = prepare_rows(release_of(table, (1, 1, 1, 1)), OwnTable.of(None), target, how)
    trained = fit_booster(how.booster, prepared.with_held_out(held).problem)
    parts = prepared.finished(trained, values_in(prepared.books, trained))
    rows = table.to_numpy(dtype=np.float32).round()
    assert np.array_equal(whole.trained.predict(rows), parts.trained.predict(rows))
    assert prepared.problem.eval_set is None


def test_every_column_has_a_share_of_its_own():
    """Gaps in a column that few rows send reveal nothing, and the model must know that."""
    table, y = clean_rows()
    shares = (1.0, 0.25, 0.5, 1.0)
    release = release_of(table, shares, epsilon=0.3)
    seen = rows_of(release, slice(None))
    model = train_model(release, OwnTable.of(None), Target.of_classes(y), settings())
    assert model.denoised
    assert model.sent_shares() == dict(zip(NAMES, shares, strict=True))
    unsent = [c.matrix[0, -1] for c in model.posterior.coding.space.channels]
    assert unsent[1:3] == [0.75, 0.5]
    noisy = train_model(
        rows_of(seen, slice(None)), OwnTable.of(None), Target.of_classes(y), settings(False)
    )
    new, truth = clean_rows(seed=9)
    clean = np.column_stack([private(n, 1).prepare(new).cells for n in NAMES]).astype(np.float32)
    right = [(m.trained.predict(clean).argmax(axis=1) == truth).mean() for m in (model, noisy)]
    assert right[0] > right[1] + 0.02
    released = model.of_released(None, seen)
    assert (released.argmax(axis=1) == y).mean() > 0.75


def plan(names, columns_per_row=None):
    lines = "".join(f'[columns."{n}"]\nbounds = [0.0, 10.0]\n' for n in names)
    some = f'[budget]\nsplit = "sampled"\ncolumns_per_row = {columns_per_row}\n'
    return parse(f"[mechanism]\nepsilon = 0.5\n{some if columns_per_row else ''}{lines}", "b.toml")


def parties(table):
    return [
        op.MemoryChannel(op.FeatureParty(table[["a", "b"]], plan("ab", 1), name="samples")),
        op.MemoryChannel(op.FeatureParty(table[["c", "d"]], plan("cd"), name="sends-all")),
    ]


@pytest.mark.parametrize("denoise", [True, "auto"])
def test_parties_that_send_different_shares_are_denoised_together(denoise, capsys, tmp_path):
    table, y = clean_rows()
    bank = op.LabelParty(None, y, denoise=denoise, random_state=0)
    model = bank.train(parties(table))
    assert "denoising is off" not in capsys.readouterr().err
    assert model.denoised_ or model.verdict_ is not None
    assert model.score(table, y) > 0.85
    if model.sent_shares_ is not None:
        assert model.sent_shares_ == {"a": 0.5, "b": 0.5, "c": 1.0, "d": 1.0}
    model.save(tmp_path / "m.opboost")
    again = op.load(tmp_path / "m.opboost")
    assert again.sent_shares_ == model.sent_shares_
    new, truth = clean_rows(400, seed=5)
    predicted = op.LabelParty(new[[]], None).predict(again, parties(new))
    assert (predicted.prediction == truth).mean() > 0.75


def test_a_withheld_codebook_turns_denoising_off_and_says_so(capsys):
    table, y = clean_rows(500)
    release = release_of(table, (1, 1, 1, 1))
    part = release[0].parts[0]
    release[0] = ReleasedColumn(release[0].private, (type(part)(part.codes, None),))
    prepared = prepare_rows(release, OwnTable.of(None), Target.of_classes(y), settings())
    assert "opboost: denoising is off, because a party withholds" in capsys.readouterr().err
    assert prepared.rows.denoised is None
    assert prepared.books[0] is None
