"""The ledger: noise is drawn once per cell, every spend is charged, a changed bit is detected."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.columns.row_ids import canonical, id_array, id_bytes
from opboost.errors import ConfigError, DataError, ParameterError, PrivacyError
from opboost.ledger import Caps, Drawing
from opboost.ledger.ledger_summary import summary
from opboost.ledger.lookup import spent
from opboost.ledger.store import UNITS_PER_EPSILON
from opboost.ledger.verify_ledger import verify
from tests.support.ledger import (
    AGE,
    CITY,
    FINER,
    GAPS,
    GRID,
    LEVEL,
    WIDE,
    opened,
    release,
    table,
    values,
)


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


def spent_on(ledger, people, attribute=None):
    ids = id_bytes([people["id"].tolist()], ["id"], spelling=ledger.ids)
    files = [ledger.run_file(run) for run in ledger.runs()]
    return spent(files, ledger.handles(ledger.people(ids)), attribute)


def changed_by(people, rows):
    moved = people.copy()
    moved.loc[rows, "age"] = 99.9 - moved.loc[rows, "age"]
    return moved


def test_a_draw_stands_when_its_value_changes(home):
    """A recipient of both releases sees no difference, so it does not learn who changed."""
    people = table(2000)
    rows = np.arange(0, 2000, 9)
    changed = changed_by(people, rows)
    assert (AGE.prepare(people).cells != AGE.prepare(changed).cells).sum() > 150
    with opened(home) as ledger:
        first, _ = release(ledger, people)
        second, made = release(ledger, changed, job="2", to="rival")
        assert values(second) == values(first)
        assert (made.new_cells, made.old_cells) == (0, 2000)
        assert (spent_on(ledger, people) == round(LEVEL * UNITS_PER_EPSILON)).all()


def test_a_gap_and_not_sent_stand_when_the_value_changes(home):
    people = table(400, gaps=np.where(np.arange(400) % 3, np.nan, 50.0))
    changed = people.assign(gaps=np.where(np.arange(400) % 2, np.nan, 20.0), age=50.0)
    with opened(home) as ledger:
        kept = {"budget": op.Budget.sampled(1)}
        first, _ = release(ledger, people, (AGE, GAPS), **kept)
        second, made = release(ledger, changed, (AGE, GAPS), job="2", **kept)
    assert made.new_cells == 0
    for a, b in zip(first, second, strict=True):
        assert (a[0].missing == b[0].missing).all()
        assert a[0].values.tolist() == b[0].values.tolist()


def test_the_files_hold_draws_and_nothing_else_of_a_value(home):
    """Ledger and key together reveal draws, not cells."""
    with opened(home) as ledger:
        out, _ = release(ledger, table(50))
        (run,) = ledger.runs()
        file = ledger.run_file(run)
        assert run.record_bytes == 16 + 2 + 1  # handles, two bitmaps, one draw
        places = file.places(ledger.handles(ledger.people([str(i).encode() for i in range(50)])))
        assert (file.draws[places, 0] == np.array(values(out)[0])).all()
        assert file.decided(places).all()
        assert file.sent(places).all()


def test_where_values_are_redrawn_a_change_is_drawn_and_charged(home):
    people = table()
    changed = changed_by(people, range(5))
    moved = AGE.prepare(people).cells != AGE.prepare(changed).cells
    with opened(home, changed="redraw") as ledger:
        first, _ = release(ledger, people)
        _, made = release(ledger, changed, job="2")
        assert made.new_cells == int(moved.sum()) > 0
        expected = np.where(moved, 2, 1) * round(LEVEL * UNITS_PER_EPSILON)
        assert (spent_on(ledger, people, "age") == expected).all()
        back, made = release(ledger, people, job="3")
        assert made.new_cells == 0
        assert values(back) == values(first)
    with pytest.raises(ConfigError, match=r'says changed = "keep".*created with "redraw"'):
        opened(home, changed="keep")


def test_spellings_of_an_id_are_one_person(home):
    people = table(3).assign(id=["Ann001", "\uff22ob", "eve"])
    spelt = people.assign(id=["  ann001", "bob ", "EVE"])
    with opened(home) as ledger:
        first, _ = release(ledger, people)
        again, made = release(ledger, spelt, job="2")
        assert made.new_cells == 0
        assert values(again) == values(first)
        with pytest.raises(DataError, match=r"1 rows repeat an ID.*ids = \"exact\""):
            release(ledger, people.assign(id=["Ann001", "ann001", "bob"]), job="3")


def test_exact_ids_are_told_apart_by_every_character(home):
    people = table(3).assign(id=["Ann001", "ann001", "bob"])
    with opened(home, ids="exact") as ledger:
        assert release(ledger, people)[1].new_cells == 3
    with opened(home) as ledger:  # a ledger keeps the settings it was created with
        assert release(ledger, people, job="2")[1].new_cells == 0
    with pytest.raises(ConfigError, match=r'says ids = "canonical".*created with "exact"'):
        opened(home, ids="canonical")


@given(st.text())
def test_the_canonical_form_is_canonical(text):
    once = canonical(text)
    assert canonical(once) == once
    assert canonical(text.swapcase()) == canonical(text.swapcase().swapcase().swapcase())


@given(st.lists(st.text(st.characters(codec="ascii"), min_size=1), min_size=1))
def test_ids_of_a_table_are_those_of_its_rows(texts):
    """The fast path through Arrow gives the same IDs as the slow one, or the same refusal."""
    made = pa.table({"id": pa.array(texts)})
    for spelling in ("canonical", "exact"):
        try:
            slow = id_bytes([texts], ["id"], spelling=spelling)
        except DataError:
            with pytest.raises(DataError):
                id_array(made, ["id"], spelling=spelling)
        else:
            assert id_array(made, ["id"], spelling=spelling).to_pylist() == slow


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
    with opened(home, attribute=LEVEL) as ledger:
        first, _ = release(ledger, people)
        with pytest.raises(PrivacyError, match=r"on attribute 'age' no more than 4.5 may be spent"):
            release(ledger, people, (FINER,), job="2")
        assert summary(ledger)["spent"][0]["most"] == LEVEL
        assert values(release(ledger, people, job="3")[0]) == values(first)
    with opened(home, attribute=2 * LEVEL) as ledger:
        assert release(ledger, people, (FINER,), job="4")[1].new_cells == 200
        assert not verify(ledger)


def test_the_cap_per_person_adds_attributes_up(home):
    people = table(pay=np.linspace(0, 100, 200))
    pay = op.PrivateColumn("pay", AGE.mapping, AGE.mechanism)
    with opened(home, person=2 * LEVEL - 0.1) as ledger:
        with pytest.raises(PrivacyError, match=r"on all attributes together no more than 8.9"):
            release(ledger, people, (AGE, pay))
        assert release(ledger, people)[1].new_cells == 200


def test_a_cap_is_a_level():
    with pytest.raises(ParameterError, match=r"above zero; got -1"):
        Caps(attribute=-1)


def test_what_has_no_bound_fits_under_no_cap(home):
    shown = op.PrivateColumn("age", AGE.mapping, op.LocalMap(GRID, epsilon=0.5, theta=2))
    words = r"would spend without bound more on a person"
    with opened(home, attribute=1e12) as ledger, pytest.raises(PrivacyError, match=words):
        release(ledger, table(), (shown,))
    with opened(home) as ledger:
        release(ledger, table(), (shown,), job="2")
        release(ledger, table(), job="3")
        assert summary(ledger)["spent"][0]["most"] == float("inf")
    with (
        opened(home, attribute=1e9) as ledger,
        pytest.raises(PrivacyError, match=r"1e\+09 may be spent"),
    ):
        release(ledger, table(), (FINER,), job="4")


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
from tests.support.ledger import *
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


def killed_release(home):
    """Kill a release when its first hundred rows are drawn."""
    script = textwrap.dedent(CRASH)
    killed = subprocess.run(
        [sys.executable, "-c", script, str(home)], capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr


def test_a_killed_release_costs_nothing_and_goes_on(home):
    """Nothing leaves before the commit, so no recipient has seen what was drawn before."""
    killed_release(home)
    people = table()
    with opened(home) as ledger:
        assert not verify(ledger)
        left = summary(ledger)
        assert left["releases"][0]["what"] == "reserved, not finished: nothing was sent"
        assert left["spent"][-1]["people"] == 0
        out, made = release(ledger, people)
        assert (made.new_cells, made.old_cells) == (200, 0)
        assert [e.kind for e in ledger.entries("reserve")] == ["reserve"]
        assert values(release(ledger, people, job="2")[0]) == values(out)
        line = summary(ledger)["spent"][0]
        assert (line["people"], line["most"]) == (200, LEVEL)
        assert len(list(ledger.runs_folder.iterdir())) == 2  # a run, and who got old draws


def test_a_job_that_goes_on_with_another_plan_takes_back_its_reservation(home):
    killed_release(home)
    with opened(home) as ledger:
        release(ledger, table(), (FINER,))
        kinds = [e.kind for e in ledger.entries()]
        assert kinds == ["open", "reserve", "abort", "reserve", "commit"]
        assert not ledger.open_reservations()


def test_the_earliest_committed_draw_stands(home):
    """A failed release leaves no draw, whatever is released later."""
    people = table()
    with opened(home) as ledger:
        with pytest.raises(DataError):
            release(ledger, people.assign(id=[*range(199), 7]))
        sent, made = release(ledger, people, job="2", to="rival")
        assert made.new_cells == 200
        again, made = release(ledger, people)
        assert made.new_cells == 0
        assert values(again) == values(sent)
        assert not verify(ledger)


def test_columns_are_chosen_by_the_person_whatever_their_order(home):
    people = table(300, **{n: np.linspace(0, 100, 300) for n in ("pay", "debt")})
    columns = [AGE, *(op.PrivateColumn(n, AGE.mapping, AGE.mechanism) for n in ("pay", "debt"))]

    def shown(ledger, columns):
        out, _ = release(ledger, people, columns, budget=op.Budget.sampled(2), job="1")
        return {c[0].name: ~c[0].missing for c in out}

    with opened(home) as ledger:
        first = shown(ledger, columns)
    shutil.rmtree(home / "ledger")
    with opened(home, new=True) as ledger:  # the key chooses, not the ledger
        turned = shown(ledger, columns[::-1])
    assert all((first[n] == turned[n]).all() for n in first)
    assert 150 < first["age"].sum() < 250  # two of three columns each: about 200 people


def test_people_by_another_id_are_not_taken_for_new_ones(home):
    with opened(home) as ledger:
        release(ledger, table(), known_by="id")
        with pytest.raises(PrivacyError, match=r'add people = "id" to \[ledger\]'):
            release(ledger, table(), known_by="customer", job="2")
        _, made = release(ledger, table(), known_by="id", job="3")
        assert made.new_cells == 0


def test_a_distribution_spelt_in_another_way_is_the_same(home):
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
    column, twin, third = (
        op.PrivateColumn("age", op.NumericMapping(GRID, (0, top)), op.ClampMap(GRID, epsilon))
        for top in (100, 101, 102)
    )
    with opened(home, attribute=round(18 * epsilon, 6)) as ledger:
        release(ledger, table(), (column,))
        release(ledger, table(), (twin,), job="2")
        with pytest.raises(PrivacyError):
            release(ledger, table(), (third,), job="3")
