"""Columns that are not sent: how the posterior handles them, and how much a partner helps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import opboost as op
from opboost.files.predict_without import predicted_without
from opboost.training.absent_columns import absent_column, clear_column, spread
from opboost.training.column_origins import Origins
from opboost.training.feature_matrix import OwnTable
from opboost.training.own_trees_first import prepare_partly_known_rows
from opboost.training.released_columns import from_sample
from opboost.training.targets import Target
from opboost.training.training_settings import TrainingSettings

GRID = op.Domain(1, 10)
ROWS = 1500


@pytest.fixture(scope="module")
def fitted():
    """Train a denoised model on a number, on categories and on an own column."""
    rng = np.random.default_rng(0)
    x = rng.uniform(0, 100, ROWS)
    city = np.where(rng.random(ROWS) < 0.8, x > 50, x <= 50)
    table = pa.table({"x": x, "city": np.where(city, "north", "south"), "own": rng.random(ROWS)})
    model = op.OpBoostClassifier(
        {
            "x": op.ClampMap(GRID, 1.0),
            "city": op.UnaryEncoding(["north", "south"], 4.0),
        },
        bounds={"x": (0, 100)},
        categories={"city": ["north", "south"]},
        denoise=True,
        booster_params={"n_estimators": 10, "nthread": 1},
        random_state=0,
        noise_rng=op.SeededRng(0),
    ).fit(table, x > 50)
    model.origins_ = Origins({"x": "shop", "city": "telco"})
    return model, table


def test_a_row_without_any_column_is_as_likely_of_a_class_as_the_classes_are(fitted):
    model, _ = fitted
    posterior = model.trained_model_.posterior.with_absent()
    release = [absent_column(c, 3) for c in model.private_columns_]
    own = np.full((3, 1), np.nan, dtype=np.float32)
    chance = posterior.distribution.chances(posterior.coding.outputs(release, own))
    # Training had no missing own values, so they reveal next to nothing about the class.
    np.testing.assert_allclose(chance, np.tile(posterior.distribution.share, (3, 1)), atol=0.05)


def test_columns_in_the_clear_keep_their_values_and_tell_about_those_that_lack(fitted):
    model, table = fitted
    posterior = model.trained_model_.posterior
    number, city = model.private_columns_
    clear = {
        "x": clear_column(number, number.prepare(table)),
        "city": clear_column(city, city.prepare(table)),
    }
    own = model.trained_model_.layout.own_values(table, ROWS)
    for known, lacking in ((0, city), (1, number)):
        release = [absent_column(c, ROWS) for c in model.private_columns_]
        release[known] = clear[str(model.private_columns_[known].name)]
        there = posterior.with_absent(frozenset({known}))
        outputs = there.coding.outputs(release, own)
        chance = there.distribution.chances(outputs)
        states = there.distribution.guesses(outputs, chance, 1, 0)
        drawn = there.coding.clean(release, [states])
        assert (drawn[known].parts[0].values == release[known].parts[0].values).all()
        truth = clear[str(lacking.name)].parts[0].values
        guess = drawn[1 - known].parts[0].values
        assert abs(np.corrcoef(truth, guess)[0, 1]) > 0.25
    by_x = predicted_without(model, table.drop_columns(["city"]), ["telco"])
    by_city = predicted_without(model, table.drop_columns(["x"]), ["shop"])
    wanted = model.classes_[(table["x"].to_numpy() > 50).astype(int)]
    right = [np.mean(model.classes_[p.argmax(axis=1)] == wanted) for p in (by_x, by_city)]
    assert right[0] > 0.95
    assert 0.75 < right[1] < 0.85


@pytest.mark.parametrize("denoise", [True, False])
@pytest.mark.parametrize("useful", [True, False])
def test_rounds_of_partners_are_added_only_where_they_help(useful, denoise):
    rng = np.random.default_rng(1)
    own, x = rng.random((ROWS, 1)), rng.random((ROWS, 1))
    y = own[:, 0] + (x[:, 0] if useful else rng.random(ROWS)) + 0.3 * rng.random(ROWS)
    column = op.PrivateColumn(0, op.NumericMapping(GRID, (0, 1)), op.ClampMap(GRID, 0.8))
    known = np.flatnonzero(rng.random(ROWS) < 0.5)
    noisy = column.release(column.prepare(x[known]), op.SeededRng(1))
    (sent,) = from_sample([column], {0: noisy}, sent=1.0)
    settings = TrainingSettings.of(
        "xgboost", {"n_estimators": 20, "nthread": 1}, denoise, random_state=0
    )
    prepared = prepare_partly_known_rows(
        [spread(sent, known, ROWS)],
        OwnTable.of(pa.table({"own": own[:, 0]})),
        Target.of_numbers(y),
        settings,
    )
    assert prepared.own_rounds == 20
    assert (prepared.booster.rounds > 0) == useful
    assert len(prepared.problem.y) == len(known) * (4 if denoise else 1)
    trained = prepared.booster.train(prepared.problem)
    assert trained.rounds == 20 + prepared.booster.rounds
