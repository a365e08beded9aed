"""Attacks by record total: they grow with it, stay below its ceiling, and reveal faults."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import opboost as op
from opboost.estimators import Desensitizer
from opboost.model_card.card import guess_bound
from opboost_lab.attacks import attributes, invented_columns, labels, linkage
from opboost_lab.attacks.released_records import (
    ReleasedRecords,
    log_likelihoods,
    some_people,
    under_record_budget,
)
from opboost_lab.data.bundled import digits
from opboost_lab.data.datasets import DataSet, halves

KINDS = ["north", "south", "east"]


def people(count=3000, seed=0):
    """Return invented people: three numeric columns and one of categories, with a common cause."""
    rng = np.random.default_rng(seed)
    cause = rng.normal(size=count)
    table = pa.table(
        {
            "a": np.clip(0.5 + 0.2 * cause, 0, 1),
            "b": np.clip(0.5 + 0.2 * (cause + rng.normal(size=count)), 0, 1),
            "c": rng.random(count),
            "place": np.array(KINDS)[np.clip(np.round(cause + 1), 0, 2).astype(int)],
            "y": (cause + 0.5 * rng.normal(size=count) > 0.5).astype(int),
        }
    )
    bounds = dict.fromkeys("abc", (0.0, 1.0))
    return DataSet("people", "binary", bounds, *halves(table), "y", {"place": KINDS})


def linked(data, total, seed=0, count=500):
    table, _ = some_people(data, count, seed)
    return linkage.linked(ReleasedRecords.of(table, under_record_budget(data, total, seed)))


def test_evidence_is_the_exact_chance_of_what_was_sent():
    data = people()
    table, _ = some_people(data, 200, 1)
    records = ReleasedRecords.of(table, under_record_budget(data, 6.0, 1))
    seen = 0
    for column in records.columns:
        released, found = records.released[column.name], records.evidence[column.name]
        assert np.array_equal(found, log_likelihoods(column, released))
        sent = ~released[0].missing
        assert not found[~sent].any()
        if column.has_order:
            m = column.mechanism
            for row in np.flatnonzero(sent)[:20]:
                place = int(released[0].values[row]) - m.outputs.L
                chances = [m.pmf(x)[place] for x in range(m.domain.L, m.domain.R + 1)]
                assert np.exp(found[row]) == pytest.approx(chances)
                seen += 1
    assert seen > 30
    assert records.total == 6.0


def test_linkage_grows_with_the_total_and_stays_under_its_ceiling():
    data = people()
    found = {total: linked(data, total) for total in (0.01, 2.0, 8.0, 16.0)}
    firsts = [one.first for one in found.values()]
    assert firsts == sorted(firsts)
    assert firsts[-1] > 20 * firsts[0]
    for total, one in found.items():
        ceiling, listed = guess_bound(total, 1 / 500), guess_bound(total, 10 / 500)
        assert one.surest <= ceiling + 1e-9
        assert one.first <= ceiling + 4 * np.sqrt(ceiling / 500)
        assert one.top <= listed + 4 * np.sqrt(listed / 500)
    tiny = np.mean([linked(data, 0.01, seed).first for seed in range(10)])
    assert tiny == pytest.approx(1 / 500, abs=4 * np.sqrt(1 / 500 / 5000))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_release_at_twice_the_level_breaks_the_ceiling(seed):
    """In the auditor's view, the surest guess is more certain than the promised total allows."""
    data, total = people(seed=seed), 2.0
    table, _ = some_people(data, 500, seed)
    honest = ReleasedRecords.of(table, under_record_budget(data, total, seed))
    broken = ReleasedRecords.of(table, under_record_budget(data, 2 * total, seed))
    ceiling = guess_bound(total, 1 / 500)
    assert linkage.linked(honest).surest <= ceiling + 1e-9 < 1.5 * linkage.linked(broken).surest
    assert linkage.linked(broken).surest > 1.5 * ceiling


def test_ties_share_a_guess_and_a_clear_release_names_everybody():
    table = pa.table({"x": [0.05, 0.05, 0.95, 0.95]})
    grid = op.Domain(1, 10)
    clear = Desensitizer(op.ClampMap(grid, 60.0), bounds={"x": (0, 1)}, noise_rng=op.SeededRng(1))
    found = linkage.linked(ReleasedRecords.of(table, clear))
    assert (found.first, found.top, found.surest) == (0.5, 1.0, pytest.approx(0.5))
    assert found.total == pytest.approx(540)


def test_attributes_are_recovered_better_at_larger_totals_and_under_the_ceiling():
    data = people(9000)
    found = {total: attributes.recovered(data, total, 0, 1500, 4000) for total in (0.01, 4.0, 16.0)}
    tiny, middle, large = found.values()
    assert tiny.release == pytest.approx(tiny.prior, abs=0.02)
    assert tiny.release <= middle.release - 0.02 <= large.release - 0.04
    assert large.party > large.release  # other columns and the label reveal more
    assert middle.party > middle.prior + 0.05
    for one in found.values():
        assert one.release <= one.ceiling + 0.02
        assert one.label > one.prior
    assert large.most_gained > 0.1 > tiny.most_gained


def test_answers_are_quarters_of_the_range_or_categories():
    plan = op.RecordPlan.of(
        op.Budget.record(4), bounds={"x": (0, 1)}, categories={"few": ["u", "v"], "many": range(9)}
    )
    by_name = {c.name: attributes.answers(c).tolist() for c in plan.columns}
    assert by_name == {
        "x": [k for k in range(4) for _ in range(8)], "few": [0, 1], "many": [*range(9)]
    }  # fmt: skip


def test_trees_say_most_about_labels_and_a_query_for_all_values_nothing():
    data = people(7000)
    found = labels.inferred(data, 8.0, 0, 5200)
    assert 0.5 < found.nothing < found.ceiling
    assert found.nothing < found.trees <= found.ceiling + 0.02
    assert abs(found.query - found.nothing) < 0.1
    assert abs(found.weights - found.nothing) < 0.1
    assert labels.values_that_differ(data, 8.0, 0, 1500, "all") == 0
    assert labels.values_that_differ(data, 8.0, 0, 1500, "used") > 0


def test_every_class_of_several_is_inferred():
    data = digits()
    assert labels.classes_of(data, np.arange(10)).tolist() == np.eye(10, dtype=bool).tolist()
    assert labels.classes_of(people(), np.array([0, 1, 1])).tolist() == [[False], [True], [True]]


def test_invented_columns_read_labels_off_a_pilot_unless_labels_are_randomised():
    y = np.random.default_rng(3).integers(0, 2, 1100)

    def area(epsilon):
        scores = invented_columns.read_off(y, 100, 600, 3, epsilon)
        found = labels.mean_auc(scores[:, None], (y[:100] == 1)[:, None])
        return max(found, 1 - found)

    assert area(None) > 0.85
    assert area(0.01) < 0.75
