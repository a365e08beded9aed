"""Runs of many releases are merged, and the ledger knows the same as before."""

from __future__ import annotations

import pytest

from opboost.ledger import release_members
from opboost.ledger.compaction import MAX_ALIKE_RUNS
from opboost.ledger.ledger_summary import summary
from opboost.ledger.verify_ledger import verify
from tests.support.ledger import AGE, CITY, opened, release, table, values


@pytest.fixture
def home(tmp_path):
    return tmp_path


def weekly(week, rows=20):
    """Return some earlier people and some new ones."""
    people = table(rows * (week + 1), city="a")
    return people[max(0, week - 1) * rows :]


def included(ledger, number):
    """Return the handles of the people in a release."""
    found = set()
    for run in ledger.runs():
        file = ledger.run_file(run)
        if run.committed == number and not run.merged:
            found |= set(map(bytes, file.handles))
        told = ledger.members().get(number)
        bits = {} if told is None else release_members.read(ledger.runs_folder, told)
        if run.file in bits:
            found |= set(map(bytes, file.handles[bits[run.file]]))
    return found


def test_many_runs_become_one_and_nothing_else_changes(home):
    sent, about = {}, {}
    with opened(home) as ledger:
        for week in range(MAX_ALIKE_RUNS):
            out, made = release(ledger, weekly(week), (AGE, CITY), job=str(week))
            sent[week], about[made.entry.number] = values(out), len(weekly(week))
        assert len(ledger.runs()) == MAX_ALIKE_RUNS
        before = {number: included(ledger, number) for number in about}
        assert {n: len(found) for n, found in before.items()} == about
        spent = summary(ledger)["spent"]
        release(ledger, weekly(0), (AGE, CITY), job="again")
        (run,) = ledger.runs()
        assert run.merged
        assert {number: included(ledger, number) for number in about} == before
        assert summary(ledger)["spent"] == spent
        for week in range(MAX_ALIKE_RUNS):
            again, made = release(ledger, weekly(week), (AGE, CITY), job=f"again {week}")
            assert made.new_cells == 0
            assert values(again) == sent[week]
        assert not verify(ledger)


def test_draws_of_changed_values_are_not_merged(home):
    with opened(home, changed="redraw") as ledger:
        for week in range(MAX_ALIKE_RUNS + 2):
            release(ledger, table(20).assign(age=5.0 + 10 * week), job=str(week))
        assert len(ledger.runs()) == MAX_ALIKE_RUNS + 2
