"""Weighted columns: consistent sampling without replacement, and the bounds in a plan."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given

import opboost as op
from opboost.budgets.budget import below_share, columns_sent
from opboost.budgets.column_chances import MAX_WEIGHT_RATIO, checked_weights, sending_people
from opboost.ledger import Drawing, Ledger
from opboost.ledger.pilot import in_pilot

NAMES = ["a", "b", "c", "d", "e"]


def words(rows, seed=0):
    return np.random.default_rng(seed).integers(0, 2**64, (rows, len(NAMES)), dtype=np.uint64)


def sent(weights, per_row=2, rows=2_000, seed=0, pilot=None):
    budget = op.Budget.record(4, columns_per_row=per_row, weights=weights)
    return columns_sent(budget, lambda: words(rows, seed), NAMES, pilot)


def test_equal_weights_choose_as_no_weights_do():
    found = sent(None)
    smallest = np.argsort(words(2_000), axis=1)[:, :2]
    assert all(
        set(np.flatnonzero(row)) == set(two) for row, two in zip(found, smallest, strict=True)
    )
    assert np.array_equal(sent(dict.fromkeys(NAMES, 3.0)), found)


@given(
    st.lists(st.floats(0.05, 20), min_size=5, max_size=5),
    st.sampled_from(NAMES),
    st.floats(1.01, 50),
    st.integers(1, 4),
)
def test_a_larger_weight_only_adds_its_column(weights, name, factor, per_row):
    before = dict(zip(NAMES, weights, strict=True))
    after = before | {name: before[name] * factor}
    old, new = sent(before, per_row, 300), sent(after, per_row, 300)
    place = NAMES.index(name)
    others = [k for k in range(5) if k != place]
    assert (new[:, place] >= old[:, place]).all()
    assert (new[:, others] <= old[:, others]).all()
    assert (new.sum(axis=1) == per_row).all()


def test_columns_are_drawn_in_turn_in_proportion_to_their_weights():
    weights = np.array([8.0, 4.0, 2.0, 1.0, 1.0])
    found = sent(dict(zip(NAMES, weights, strict=True)), 2, 200_000).mean(axis=0)
    share = weights / weights.sum()
    # Without replacement: drawn first, or second after another column.
    due = [
        p + sum(q * p / (1 - q) for k, q in enumerate(share) if k != j) for j, p in enumerate(share)
    ]
    assert np.abs(found - due).max() < 0.005
    single = sent(dict(zip(NAMES, weights, strict=True)), 1, 200_000).mean(axis=0)
    assert np.abs(single - share).max() < 0.005


def test_people_of_the_pilot_ignore_the_weights():
    first = below_share(words(2_000, seed=9)[:, 0], 0.25)
    assert abs(first.mean() - 0.25) < 0.04
    found = sent({"a": 8.0, "b": 1, "c": 1, "d": 1, "e": 1}, pilot=lambda: first)
    assert np.array_equal(found[first], sent(None)[first])
    assert found[~first, 0].mean() > 1.3 * found[first, 0].mean()
    assert not below_share(words(100), 0.0).any()


def test_a_plan_shows_the_bounds_of_a_pilot():
    names = list(range(100))
    budget = op.Budget.record(4, columns_per_row=2, pilot=0.1)
    least, most = sending_people(budget, names)[0]
    assert (least, most) == (4, 132)
    extreme = {name: 1.0 if name else 1.0 * MAX_WEIGHT_RATIO for name in names}
    found = sending_people(replace(budget, weights=extreme), names)
    assert found[0][0] == pytest.approx(most, abs=8)
    plan = op.RecordPlan.of(op.Budget.record(4, pilot=0.1), bounds=dict.fromkeys(NAMES, (0, 1)))
    assert "released first" in str(plan)
    assert " to " in plan.table()[0]["sent for"]
    sure = op.RecordPlan.of(op.Budget.record(4), bounds=dict.fromkeys(NAMES, (0, 1)))
    assert " to " not in sure.table()[0]["sent for"]


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        ({"a": 1, "b": 1, "z": 1}, "'z', which is not a private column"),
        ({"a": 1}, "no weight for column 'b'"),
        ({"a": 1, "b": 0}, "not above zero"),
        ({"a": 9, "b": 1}, "too far apart"),
    ],
)
def test_weights_beyond_the_plan_are_refused(weights, words):
    with pytest.raises(op.ParameterError) as caught:
        checked_weights(weights, ["a", "b"], "weights.json")
    assert words in str(caught.value)
    assert "weights.json" in str(caught.value)


def test_a_ledger_keeps_the_pilots_columns_whatever_the_weights(tmp_path):
    bounds = dict.fromkeys(NAMES, (0, 1))
    plain = op.Budget.record(4, columns_per_row=1, pilot=0.3)
    plan = op.RecordPlan.of(plain, bounds=bounds)
    ids = [str(k).encode() for k in range(400)]
    ledger = Ledger(tmp_path / "ledger", tmp_path / "key")
    people = ledger.people(ids)
    first = in_pilot(ledger, people, 0.3)
    assert 60 < first.sum() < 180
    table = pd.DataFrame(0.5, index=range(400), columns=NAMES)

    def released(budget, rows, job):
        prepared = [c.prepare(table[rows]) for c in plan.columns]
        with Drawing(
            ledger, plan.columns, NAMES, job=job, recipient="bank", budget=budget
        ) as drawing:
            out = drawing.draw([ids[k] for k in np.flatnonzero(rows)], prepared)
        return np.column_stack([~c[0].missing for c in out]), drawing.new_cells

    even, new = released(plan.budget, first, "pilot")
    assert new == first.sum()
    weights = dict.fromkeys(NAMES, 0.125) | {"c": 1.0}
    whole, new = released(replace(plan.budget, weights=weights), np.ones(400, bool), "all")
    assert new == (~first).sum()  # nobody in the pilot is charged again
    assert np.array_equal(whole[first], even)
    assert whole[~first, 2].mean() > 0.5 > even[:, 2].mean()


@pytest.mark.parametrize("weights", [None, {"a": 1.0, "b": 4.0, "c": 2.0}])
def test_the_choice_does_not_depend_on_how_many_rows_are_looked_at_at_a_time(weights, monkeypatch):
    words = np.random.default_rng(0).integers(0, 2**64, size=(500, 3), dtype=np.uint64)
    first = np.arange(500) % 5 == 0
    budget = replace(op.Budget.record(4, columns_per_row=2, pilot=0.2), weights=weights)

    def chosen():
        return columns_sent(budget, lambda: words, ["a", "b", "c"], lambda: first)

    whole = chosen()
    monkeypatch.setattr("opboost.budgets.budget.CHUNK_ROWS", 64)
    np.testing.assert_array_equal(chosen(), whole)
    assert (whole.sum(axis=1) == 2).all()
