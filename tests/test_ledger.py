"""The ledger: a cell is noised once, every spend is charged, one changed bit does not verify."""

from __future__ import annotations

import dataclasses
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.errors import DataError, ParameterError, PrivacyError
from opboost.ids import id_bytes
from opboost.ledger import Caps, Drawing
from opboost.ledger.store import UNIT
from opboost.ledger.summary import summary
from opboost.ledger.verify import verify
from tests.ledger import AGE, CITY, GAPS, GRID, LEVEL, WIDE, opened, release, table, values


@pytest.fixture
def home(tmp_path):
    return tmp_path


def test_a_cell_is_noised_once_whoever_asks(home):
    people = table()
    with opened(home) as ledger:
        first, made = release(ledger, people)
        assert made.new_cells == 200
        again, repeated = release(ledger, people, to="rival", job="2")
        assert values(again) == values(first)
        assert (repeated.new_cells, repeated.old_cells) == (0, 200)
        most = {line["attribute"]: line["most"] for line in summary(ledger)["spent"]}
    assert most == {"age": LEVEL, "all together": LEVEL}
    with opened(home) as ledger:  # and after a restart
        assert values(release(ledger, people, job="3")[0]) == values(first)


def test_noise_is_real_and_fresh_for_new_people(home):
    people = table(2000)
    with opened(home) as ledger:
        first, _ = release(ledger, people)
        others = people.assign(id=people["id"] + 10_000)
        second, made = release(ledger, others, job="2")
    assert made.new_cells == 2000
    assert values(first) != values(second)
    cells = AGE.prepare(people).cells
    assert 0.05 < np.mean(np.array(values(first)[0]) != cells) < 0.95


def test_renaming_a_column_does_not_reset_it(home):
    people = table()
    renamed = op.PrivateColumn("years", AGE.mapping, AGE.mechanism)
    with opened(home) as ledger:
        first, _ = release(ledger, people)
        moved = people.rename(columns={"age": "years"})
        again, made = release(ledger, moved, (renamed,), names=["age"], job="2")
        assert made.new_cells == 0
        assert values(again) == values(first)
        with pytest.raises(PrivacyError, match=r"which this ledger has never seen; it knows age"):
            release(ledger, moved, (renamed,), names=["years"], job="3")
        _, made = release(
            ledger, moved, (renamed,), names=["years"], job="4", new_attributes=["years"]
        )
        assert made.new_cells == 200


def test_a_changed_value_is_a_new_release_and_charged(home):
    people = table()
    changed = people.copy()
    changed.loc[:4, "age"] = 99.9 - changed.loc[:4, "age"]
    moved = AGE.prepare(people).cells != AGE.prepare(changed).cells
    with opened(home) as ledger:
        release(ledger, people)
        _, made = release(ledger, changed, job="2")
        assert made.new_cells == int(moved.sum()) > 0
        ids = id_bytes([people["id"].tolist()], ["id"])
        spent = ledger.spent({ledger.key.name: ledger.key.persons(ids)}, "age")
        assert (spent == np.where(moved, 2, 1) * round(LEVEL * UNIT)).all()
        _, made = release(ledger, people, job="3")
        assert made.new_cells == 0


def test_another_mechanism_is_another_release(home):
    people = table()
    other = op.PrivateColumn("age", AGE.mapping, op.ClampMap(GRID, 0.25))
    with opened(home) as ledger:
        release(ledger, people)
        _, made = release(ledger, people, (other,), job="2")
        assert made.new_cells == 200
        assert summary(ledger)["spent"][0]["most"] == LEVEL * 1.5


def test_a_release_over_the_cap_is_refused_and_taken_back(home):
    people = table()
    changed = people.assign(age=100 - people["age"])
    with opened(home, attribute=LEVEL) as ledger:
        first, _ = release(ledger, people)
        with pytest.raises(PrivacyError, match=r"no more than 4.5 may be spent a person"):
            release(ledger, changed, job="2")
        assert summary(ledger)["spent"][0]["most"] == LEVEL
        assert values(release(ledger, people, job="3")[0]) == values(first)
    with opened(home, attribute=2 * LEVEL) as ledger:
        assert release(ledger, changed, job="4")[1].new_cells > 0
        assert not verify(ledger)


def test_the_cap_per_person_adds_attributes_up(home):
    people = table(pay=np.linspace(0, 100, 200))
    pay = op.PrivateColumn("pay", AGE.mapping, AGE.mechanism)
    with opened(home, person=2 * LEVEL - 0.1) as ledger:
        with pytest.raises(PrivacyError, match=r"'pay', and on all attributes together"):
            release(ledger, people, (AGE, pay))
        assert release(ledger, people)[1].new_cells == 200


def test_a_cap_is_a_level():
    with pytest.raises(ParameterError, match=r"above zero; got -1"):
        Caps(attribute=-1)


def test_what_has_no_bound_fits_under_no_cap(home):
    shown = op.PrivateColumn("age", AGE.mapping, op.LocalMap(GRID, epsilon=0.5, theta=2))
    words = r"would spend without bound more on column 'age'"
    with opened(home, attribute=1e12) as ledger, pytest.raises(PrivacyError, match=words):
        release(ledger, table(), (shown,))
    with opened(home) as ledger:
        release(ledger, table(), (shown,), job="2")
        release(ledger, table(), job="3")
        assert summary(ledger)["spent"][0]["most"] == float("inf")
    with opened(home, attribute=1e9) as ledger:
        changed = table().assign(age=100 - table()["age"])
        with pytest.raises(PrivacyError, match=r"1e\+09 may be spent"):
            release(ledger, changed, job="4")


@pytest.mark.parametrize("column", [CITY, WIDE, GAPS], ids=lambda c: c.name)
def test_every_kind_of_column_is_remembered(home, column):
    rng = np.random.default_rng(3)
    people = table(
        city=rng.choice([*"abcdefghij"], 200),
        wide=rng.uniform(0, 100, 200),
        gaps=np.where(rng.random(200) < 0.3, np.nan, rng.uniform(0, 100, 200)),
    )
    with opened(home) as ledger:
        first, _ = release(ledger, people, (column,))
        again, made = release(ledger, people, (column,), job="2")
    assert made.new_cells == 0
    assert values(again) == values(first)
    for a, b in zip(first[0], again[0], strict=True):
        assert (a.missing is None) == (b.missing is None)
        assert a.missing is None or (a.missing == b.missing).all()
    if column is GAPS:
        assert 0 < first[0][0].missing.sum() < 200
    if column is WIDE:
        assert abs(np.array(values(first)[0])).max() > 2**16


def test_which_columns_a_row_releases_is_drawn_once(home):
    people = table(pay=np.linspace(0, 100, 200), debt=np.linspace(100, 0, 200))
    columns = [AGE, *(op.PrivateColumn(n, AGE.mapping, AGE.mechanism) for n in ("pay", "debt"))]
    budget = op.Budget.sampled(1)
    with opened(home) as ledger:
        first, made = release(ledger, people, columns, budget=budget)
        again, repeated = release(ledger, people, columns, budget=budget, job="2", to="rival")
        most = {line["attribute"]: line["most"] for line in summary(ledger)["spent"]}
    shown = np.column_stack([~c[0].missing for c in first])
    assert (shown.sum(axis=1) == 1).all()
    assert (shown == np.column_stack([~c[0].missing for c in again])).all()
    assert (made.new_cells, repeated.new_cells) == (200, 0)
    assert most["all together"] == LEVEL


def test_an_id_that_stands_twice_is_refused(home):
    twice = table().assign(id=[*range(199), 7])
    with opened(home) as ledger:
        with pytest.raises(DataError, match=r"1 rows repeat an ID"):
            release(ledger, twice)
        with pytest.raises(DataError, match=r"2 rows repeat an ID"):
            _drawn_twice(ledger)
        assert summary(ledger)["spent"][-1]["most"] == 0


def _drawn_twice(ledger):
    prepared = [AGE.prepare(table(2))]
    with Drawing(ledger, [AGE], ["age"], job="2", recipient="bank") as drawing:
        drawing.draw([b"1", b"2"], prepared)
        drawing.draw([b"1", b"2"], prepared)


@pytest.mark.parametrize("bad", [None, "", 1.5, True, " 7", b"7", pd.NA])
def test_an_id_that_is_none_is_refused(bad):
    with pytest.raises(DataError, match=r"An ID in column 'id'"):
        id_bytes([[1, bad]], ["id"])


def test_numbers_and_text_are_the_same_id_and_parts_stay_apart():
    assert id_bytes([[7]], ["a"]) == id_bytes([["7"]], ["a"])
    assert id_bytes([["ab"], ["c"]], ["a", "b"]) != id_bytes([["a"], ["bc"]], ["a", "b"])


CRASH = """
import os, sys
sys.path.insert(0, ".")
from tests.ledger import *
from pathlib import Path
home = Path(sys.argv[1])
people = table()
with opened(home) as ledger:
    with Drawing(ledger, [AGE], ["age"], job="1", recipient="bank") as drawing:
        ids = id_bytes([people["id"].tolist()], ["id"])
        part = AGE.prepare(people[:100])
        out = drawing.draw(ids[:100], [part])
        print(out[0][0].values.tolist(), flush=True)
        os.kill(os.getpid(), 9)
"""


def test_a_reservation_that_a_kill_left_counts_as_spent_and_is_taken_up_again(home):
    script = textwrap.dedent(CRASH)
    killed = subprocess.run(
        [sys.executable, "-c", script, str(home)], capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    drawn = eval(killed.stdout)
    people = table()
    with opened(home) as ledger:
        assert not verify(ledger)
        left = summary(ledger)
        assert left["releases"][0]["what"] == "reserved, never finished: counts as spent"
        assert left["spent"][0]["people"] == 100
        out, made = release(ledger, people)
        assert values(out)[0][:100] == drawn
        # What was drawn before the kill was drawn for this release, and is said with it.
        assert (made.new_cells, made.old_cells) == (200, 0)
        assert [e.kind for e in ledger.entries("reserve")] == ["reserve"]
        assert summary(ledger)["spent"][0] == {
            "attribute": "age",
            "people": 200,
            "most": LEVEL,
            "cap": None,
        }


def test_an_abort_takes_back_only_what_its_own_run_drew(home):
    """Another job may have sent what an earlier, killed run of this reservation drew."""
    script = textwrap.dedent(CRASH)
    subprocess.run([sys.executable, "-c", script, str(home)], capture_output=True)
    people = table()
    with opened(home) as ledger:
        sent, made = release(ledger, people[:100], job="2", to="rival")
        assert made.new_cells == 0
        with pytest.raises(DataError):
            release(ledger, people.assign(id=[*range(199), 7]))  # job 1 again, a bad table
        again, made = release(ledger, people[:100], job="3")
        assert made.new_cells == 0
        assert values(again) == values(sent)
        assert summary(ledger)["spent"][0]["most"] == LEVEL
        assert summary(ledger)["spent"][0]["people"] == 100
        assert not verify(ledger)


def test_people_by_another_id_are_not_taken_for_new_ones(home):
    with opened(home) as ledger:
        release(ledger, table(), known_by="id")
        with pytest.raises(PrivacyError, match=r'add people = "id" to \[ledger\]'):
            release(ledger, table(), known_by="customer", job="2")
        _, made = release(ledger, table(), known_by="id", job="3")
        assert made.new_cells == 0


def test_a_law_spelt_in_another_way_is_the_same(home):
    people = table()
    spellings = [
        dataclasses.replace(AGE, missing=50),
        dataclasses.replace(AGE, missing=50.0),
        dataclasses.replace(AGE, outside="raise"),
        dataclasses.replace(AGE, mapping=op.NumericMapping(GRID, (0.0, 100.0))),
    ]
    with opened(home) as ledger:
        first, _ = release(ledger, people)
        for job, column in enumerate(spellings, 2):
            again, made = release(ledger, people, (column,), job=str(job))
            assert made.new_cells == 0
            assert values(again) == values(first)
        flagged = dataclasses.replace(AGE, missing=op.Flag(1.0, 50))
        assert release(ledger, people, (flagged,), job="9")[1].new_cells == 200


@pytest.mark.parametrize("epsilon", [0.1, 0.2, 0.3, 0.64, 0.7])
def test_a_cap_has_room_for_its_own_level(home, epsilon):
    column = op.PrivateColumn("age", AGE.mapping, op.ClampMap(GRID, epsilon))
    people = table()
    with opened(home, attribute=round(18 * epsilon, 6)) as ledger:
        release(ledger, people, (column,))
        release(ledger, people.assign(age=100 - people["age"]), (column,), job="2")
        with pytest.raises(PrivacyError):
            release(ledger, people.assign(age=(people["age"] + 37) % 100), (column,), job="3")
