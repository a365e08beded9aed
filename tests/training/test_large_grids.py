"""Grids of up to 2,048 cells are modelled in runs of cells and drawn as cells."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.columns.private_column import Flag
from opboost.denoise import States
from opboost.denoise.noise_matrix import run_length, runs_matrix_of
from opboost.training.clean_states import StateCoding
from opboost.training.feature_matrix import Layout
from opboost.training.released_columns import from_sample

WIDE = op.Domain(1, 2048)


def column(epsilon, **more):
    return op.PrivateColumn(
        "a", op.NumericMapping(WIDE, (0, 1)), op.ClampMap(WIDE, epsilon), **more
    )


def test_a_run_s_chances_are_the_mean_of_its_cells():
    m = op.ClampMap(op.Domain(0, 599), 0.05)
    length = run_length(m)
    found = runs_matrix_of(m).matrix
    exact = m.transition_matrix()[:length].mean(axis=0)
    assert found.shape == (120, 120)
    assert np.allclose(found[0, :3], [exact[k * length : (k + 1) * length].sum() for k in range(3)])
    assert run_length(op.ClampMap(op.Domain(1, 512), 0.1)) == 1
    assert runs_matrix_of(op.ClampMap(op.Domain(1, 2049), 0.1)) is None


def test_cells_are_drawn_by_what_the_row_sent():
    private = column(2.0, missing=Flag(2.0, 0.5))
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": np.where(rng.random(4000) < 0.1, np.nan, rng.random(4000))})
    noisy = private.release(private.prepare(table), op.SeededRng(1))
    release = from_sample([private], {"a": noisy}, sent=1.0)
    coding = StateCoding.of(Layout((private,), ()), [1.0], ())
    outputs = coding.outputs(release, np.zeros((4000, 0)))
    assert int(outputs.codes.max()) == 128  # a gap comes after 128 runs
    states = States(outputs.codes.astype(np.uint8), np.zeros((4000, 0), np.uint8))
    clean = coding.clean(release, [states])[0].parts[0]
    sent = release[0].parts[0]
    there = ~sent.missing
    assert (clean.missing == sent.missing).all()
    assert np.abs(clean.values[there].astype(int) - sent.values[there]).mean() < 1.5
    again = coding.clean([release[0].where(slice(100, 200))], [States(states.cells[100:200],
                         states.categories[100:200])])[0].parts[0]  # fmt: skip
    assert (again.codes == clean.codes[100:200]).all()


@pytest.mark.parametrize("memory", ["internal", "external"])
def test_a_large_grid_is_denoised_and_its_model_saved(tmp_path, memory):
    rng = np.random.default_rng(3)
    table = pd.DataFrame({"a": rng.beta(2, 2, 6000)})
    y = 3 * np.sin(6 * table["a"]) + 0.1 * rng.normal(size=6000)
    party = op.FeatureParty(table, [column(0.003)])
    scores = {}
    for denoise in (False, True):
        bank = op.LabelParty(None, y, denoise=denoise, random_state=0, memory=memory,
                             booster_params={"n_estimators": 40, "max_depth": 3})  # fmt: skip
        model = bank.train([op.MemoryChannel(party)])
        scores[denoise] = model.score(table, y)
    assert model.denoised_
    assert scores[True] > scores[False] + 0.05
    model.save(tmp_path / "m.opboost")
    again = op.load(tmp_path / "m.opboost")
    assert again._model.posterior.coding.channels == {0}
