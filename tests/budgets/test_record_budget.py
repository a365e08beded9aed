"""Record budgets: the total of one person is given, and every plan keeps to it."""

from __future__ import annotations

import html
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.budgets.declared_column import DeclaredColumn
from opboost.budgets.planning_rule import columns_per_row
from opboost.budgets.record_plan import RecordPlan, level_of
from opboost.ledger.store import UNITS_PER_EPSILON
from opboost.ledger.wanted_columns import decimal, wanted_columns
from opboost.mechanisms.window_width import smooth_information

BOUNDS = {"age": (17, 90), "pay": (0, 90_000), "hours": op.Integers(0, 23)}
CATEGORIES = {"city": ["north", "south", "east"], "size": op.Ordered(["S", "M", "L", "XL"])}

totals = st.floats(min_value=0.01, max_value=200, allow_nan=False)


def plan_of(budget, bounds=BOUNDS, categories=CATEGORIES):
    return RecordPlan.of(budget, bounds=bounds, categories=categories)


@given(total=totals, sent=st.integers(1, 40))
def test_levels_add_up_to_the_total_exactly_and_as_the_ledger_counts(total, sent):
    level = level_of(total, sent)
    assert sent * Fraction(level) <= Fraction(total)
    billionths = math.ceil(decimal(level) * UNITS_PER_EPSILON)
    assert sent * billionths <= decimal(total) * UNITS_PER_EPSILON
    assert sent * Fraction(level) >= Fraction(total) * (1 - Fraction(1, 10**6)) - Fraction(
        sent, 10**9
    )


@given(
    total=totals,
    radius=st.one_of(st.none(), st.floats(0.01, 1.0)),
    columns=st.integers(1, 12),
    sent=st.integers(1, 12),
)
def test_every_plan_keeps_its_total_exactly(total, radius, columns, sent):
    sent = min(sent, columns)
    bounds = {f"c{k}": (0, 10 + k) for k in range(columns)}
    budget = op.Budget.record(total, radius, columns_per_row=sent)
    plan = plan_of(budget, bounds, {})
    assert plan.guarantee().total <= total
    charged = wanted_columns(plan.columns, [c.name for c in plan.columns], draws_here=True)
    assert sent * max(w.amount for w in charged) <= decimal(total) * UNITS_PER_EPSILON


@pytest.mark.parametrize("total", [0.5, 1, 2, 4, 8, 16])
@pytest.mark.parametrize("radius", [None, 0.3])
def test_the_exact_loss_of_every_pair_of_every_column_is_covered(total, radius):
    plan = plan_of(op.Budget.record(total, radius))
    for column in plan.columns:
        guarantee = column.guarantee()
        assert guarantee.total <= level_of(total, plan.columns_per_row)
        if hasattr(column.mechanism, "certificate"):
            assert column.mechanism.certificate().covered


def test_columns_per_row_grow_with_the_total_and_never_exceed_the_columns():
    for columns in (1, 2, 5, 16, 100):
        sent = [columns_per_row(total, columns) for total in np.geomspace(0.1, 200, 40)]
        assert sent == sorted(sent)
        assert sent[0] == 1
        assert sent[-1] == columns or sent[-1] <= 200


def test_whole_numbers_have_a_cell_each_and_explicit_cells_win():
    plan = plan_of(op.Budget.record(4, cells={"age": 20}))
    cells = {line.name: line.cells for line in plan.lines}
    assert cells["hours"] == 24
    assert cells["age"] == 20
    assert cells["city"] == 3
    assert cells["size"] == 4
    many = RecordPlan.of(op.Budget.record(4), bounds={"year": op.Integers(1900, 2020)})
    assert many.lines[0].cells < 33


@pytest.mark.parametrize("radius", [None, 0.2])
def test_a_plan_takes_the_width_that_tells_most_about_smooth_distributions(radius):
    budget = op.Budget.record(2, radius=radius, columns_per_row=1)
    for column in RecordPlan.of(budget, bounds={"age": (0, 1), "few": op.Integers(0, 19)}).columns:
        m = column.mechanism
        told = [smooth_information(m.domain.size, 2.0, m.slope, w) for w in range(10)]
        assert m.window == int(np.argmax(told))


def test_each_whole_number_reaches_a_cell_of_its_own():
    plan = RecordPlan.of(op.Budget.record(4), bounds={"hours": op.Integers(-3, 23)})
    mapping = plan.columns[0].mapping
    assert mapping.to_grid(np.arange(-3, 24)).tolist() == list(range(1, 28))


def test_a_radius_in_raw_units_is_kept_as_a_promise_by_distance():
    plan = RecordPlan.of(
        op.Budget.record(4, radius={"age": 20}, cells=16), bounds={"age": (0, 80), "pay": (0, 9)}
    )
    age, pay = (c.guarantee() for c in plan.columns)
    assert plan.lines[0].radius == pytest.approx(20)
    assert plan.lines[1].radius is None
    assert age.bound(1, 2) == pytest.approx(age.total / 4)
    assert age.bound(1, 5) == age.total == pay.bound(1, 2)


def test_a_radius_on_a_log_scale_is_reported_as_a_share():
    pay = DeclaredColumn.numeric("pay", (1_000, 200_000), scale="log")
    plan = RecordPlan.made(op.Budget.record(4, radius=0.25), [pay])
    assert plan.lines[0].radius is None
    assert plan.lines[0].within == "25% of the scale"


def test_a_plan_reads_the_total_first():
    text = str(plan_of(op.Budget.record(4)))
    assert text.startswith("One person's record: at most 4. Replacing a person's record")
    for name in (*BOUNDS, *CATEGORIES):
        assert f"\n{name} " in text


def test_a_notebook_shows_the_table_to_sign():
    plan = plan_of(op.Budget.record(4, radius={"age": 10}))
    titles, *lines = (
        [html.unescape(cell) for cell in re.findall(r"<t[hd]>(.*?)</t[hd]>", line)]
        for line in re.findall(r"<tr>(.*?)</tr>", plan._repr_html_())
    )
    assert [dict(zip(titles, line, strict=True)) for line in lines] == plan.table()
    assert [line[titles.index("radius")] for line in lines][:2] == ["9.125", "none"]
    assert "at most e^4 ≈ 55." in plan._repr_html_()
    assert plan.choice() in plan._repr_html_()
    page = plan_of(op.Budget.record(4), {"<b>": (0, 1)}, {})._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>&lt" not in page


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: op.Budget.record(0), "positive, finite number; got 0"),
        (lambda: op.Budget.record(-1), "positive, finite number; got -1"),
        (lambda: op.Budget.record(math.inf), "positive, finite number; got inf"),
        (lambda: op.Budget.record(math.nan), "positive, finite number; got nan"),
        (lambda: op.Budget.record("4"), "positive, finite number; got '4'"),
        (lambda: op.Budget.record(True), "positive, finite number; got True"),
        (lambda: op.Budget.record(4, radius=0), "radius must be above zero; got 0"),
        (lambda: op.Budget.record(4, radius=1.5), "share of each column's declared range"),
        (lambda: op.Budget.record(4, radius={"age": -1}), "radius of 'age' must be above zero"),
        (lambda: op.Budget.record(4, pilot=1), "0 or more and below 1; got 1"),
        (lambda: op.Budget.record(4, pilot=-0.1), "0 or more and below 1; got -0.1"),
        (lambda: op.Budget.record(4, pilot=0.1, rows=500), "has 50, too few"),
        (lambda: op.Budget.record(4, rows=0), "table, must be a whole number, 1 or more"),
        (lambda: op.Budget.record(4, cells=1), "cells must be a whole number, 2 or more; got 1"),
        (lambda: op.Budget.record(4, columns_per_row=0), "columns_per_row must be a whole number"),
        (lambda: op.Budget.record(4, weights={"age": 0}), "The weight of 'age' must be above zero"),
        (lambda: op.Budget.record(4, task="cluster"), "'classify' or 'regress'; got 'cluster'"),
        (lambda: plan_of(op.Budget.record(4, columns_per_row=6)), "columns_per_row is 6, but"),
        (lambda: plan_of(op.Budget.record(4, weights={"agee": 1})), "names 'agee'"),
        (lambda: plan_of(op.Budget.record(4, radius={"agee": 1})), "names 'agee'"),
        (lambda: plan_of(op.Budget.record(1e-8)), "too little for a table"),
        (lambda: plan_of(op.Budget.record(4), {}, {}), "nothing to plan"),
        (
            lambda: plan_of(op.Budget.record(4, radius={"age": 100})),
            "'age' needs a radius above zero and within its range of 73",
        ),
        (
            lambda: plan_of(op.Budget.record(4, radius={"city": 1})),
            "'city' has a radius, but categories without an order",
        ),
        (
            lambda: DeclaredColumn.numeric("pay", (1, 9), scale="log", radius=2),
            "'pay' has a radius in raw units, but a log scale",
        ),
        (
            lambda: DeclaredColumn.numeric("pay", (1, 9), missing=op.Flag(1.0, 2)),
            "'pay' flags missing values",
        ),
        (
            lambda: DeclaredColumn.numeric("pay", (0.5, 9), integers=True),
            "'pay' is declared as whole numbers",
        ),
    ],
)
def test_bad_wishes_get_one_sentence(make, words):
    with pytest.raises(op.OpBoostError) as caught:
        make()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def people(rows=2_000, seed=3):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.uniform(17, 90, rows),
            "pay": rng.uniform(0, 90_000, rows),
            "hours": rng.integers(0, 24, rows),
            "city": rng.choice(CATEGORIES["city"], rows),
            "size": rng.choice(["S", "M", "L", "XL"], rows),
        }
    )
    return X, (X.age / 90 + X.pay / 90_000 > 1.1).astype(int)


@pytest.mark.parametrize("kind", [op.OpBoostClassifier, op.OpBoostRegressor])
def test_estimators_need_no_mechanism(kind):
    X, y = people()
    made = kind(bounds=BOUNDS, categories=CATEGORIES, budget=op.Budget.record(4)).fit(X, y)
    assert made.guarantee_.total <= 4
    assert made.plan_.total == 4
    assert made.guarantee_.columns_per_row == made.plan_.columns_per_row


def test_an_estimator_takes_a_plan_as_its_budget():
    X, y = people()
    plan = plan_of(op.Budget.record(4))
    for made in (op.OpBoostClassifier(budget=plan).fit(X, y), op.Desensitizer(budget=plan).fit(X)):
        assert made.plan_ == plan
        assert made.guarantee_.total <= 4
    with pytest.raises(op.ParameterError, match="The plan says which columns are private"):
        op.OpBoostClassifier(bounds=BOUNDS, budget=plan).fit(X, y)
    with pytest.raises(op.ColumnError, match="'pay' is declared but not in the table"):
        op.OpBoostClassifier(budget=plan).fit(X.drop(columns="pay"), y)


def test_each_person_sends_as_many_columns_as_planned():
    X, _ = people()
    made = op.Desensitizer(bounds=BOUNDS, categories=CATEGORIES, budget=op.Budget.record(4))
    _, released = made.fit_release(X)
    sent = np.column_stack([~columns[0].missing for columns in released.values()])
    assert (sent.sum(axis=1) == made.plan_.columns_per_row).all()
    share = sent.mean(axis=0)
    assert np.abs(share - made.plan_.columns_per_row / 5).max() < 0.06


def test_a_mechanism_beside_a_record_budget_is_refused_before_anything_is_drawn():
    X, y = people(50)
    m = op.ClampMap(op.Domain(1, 10), 0.64)
    clf = op.OpBoostClassifier(m, bounds=BOUNDS, categories=CATEGORIES, budget=op.Budget.record(4))
    with pytest.raises(op.ParameterError, match="A mechanism and a record budget are given"):
        clf.fit(X, y)
    with pytest.raises(op.ColumnError, match=r"budget=op\.Budget\.record\(4\)"):
        op.OpBoostClassifier(bounds=BOUNDS, categories=CATEGORIES).fit(X, y)


def test_the_plan_does_not_depend_on_the_rows():
    small, large = people(300, 1), people(3_000, 2)
    plans = [
        str(
            op.Desensitizer(bounds=BOUNDS, categories=CATEGORIES, budget=op.Budget.record(4))
            .fit(X)
            .plan_
        )
        for X, _ in (small, large)
    ]
    assert plans[0] == plans[1]
