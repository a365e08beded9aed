"""The ledger: a cell is noised once, every spend is charged, one changed bit does not verify."""

from __future__ import annotations

import dataclasses
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.errors import ConfigError, DataError, ParameterError, PrivacyError
from opboost.ids import id_bytes
from opboost.ledger import Caps, Drawing, Ledger
from opboost.ledger.store import UNIT
from opboost.ledger.summary import summary
from opboost.ledger.verify import verify
from tests.cli import run

GRID = op.Domain(1, 10)
AGE = op.PrivateColumn("age", op.NumericMapping(GRID, (0, 100)), op.ClampMap(GRID, 0.5))
CITY = op.PrivateColumn("city", None, op.UnaryEncoding([*"abcdefghij"], 1.0))
WIDE = op.PrivateColumn(
    "wide",
    op.NumericMapping(op.Domain(-(2**30), 2**30), (0, 100)),
    op.ClampMap(op.Domain(-(2**30), 2**30), 1e-8),
)
GAPS = op.PrivateColumn(
    "gaps", op.NumericMapping(GRID, (0, 100)), op.ClampMap(GRID, 0.5), missing=op.Flag(1.0, 50)
)
LEVEL = AGE.guarantee().total  # 4.5


@pytest.fixture
def home(tmp_path):
    return tmp_path


def opened(home, **caps):
    return Ledger(home / "ledger", home / "keys" / "ledger.key", Caps(**caps))


def table(rows=200, seed=0, **columns):
    rng = np.random.default_rng(seed)
    made = {"id": np.arange(rows), "age": rng.uniform(0, 100, rows)}
    return pd.DataFrame({**made, **columns})


def release(ledger, people, columns=(AGE,), *, to="bank", job="1", names=None, known_by="", **more):
    names = names or [str(c.name) for c in columns]
    ids = id_bytes([people["id"].tolist()], ["id"])
    more["people"] = known_by
    with Drawing(ledger, columns, names, job=job, recipient=to, **more) as drawing:
        out = drawing.draw(ids, [c.prepare(people) for c in columns])
    return out, drawing


def values(out):
    return [c.values.tolist() for columns in out for c in columns]


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
from tests.test_ledger import *
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
        assert (made.new_cells, made.old_cells) == (100, 100)
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


def test_two_processes_may_make_a_ledger_at_once(home):
    script = (
        "import sys; from opboost.ledger import Ledger; from pathlib import Path; "
        "h = Path(sys.argv[1]); Ledger(h / 'ledger', h / 'keys' / 'ledger.key').close()"
    )
    both = [
        subprocess.Popen([sys.executable, "-c", script, str(home)], stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    assert [p.communicate()[1] or p.returncode for p in both] == [0, 0, 0]
    with opened(home) as ledger:
        assert [e.kind for e in ledger.entries()] == ["open"]
        assert not verify(ledger)


def test_files_are_whole_whoever_writes_them(home):
    from concurrent.futures import ThreadPoolExecutor

    from opboost import durable

    bodies = [bytes([k]) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(durable.write, home / "file", b) for b in bodies * 5]:
            done.result()
            assert (home / "file").read_bytes() in bodies
    assert [f.name for f in home.iterdir()] == ["file"]


def filled(home):
    with opened(home) as ledger:
        release(ledger, table(40))
        release(ledger, table(40).assign(age=50.0), job="2")
        ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def altered(home, statement, *values):
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        for table_ in ("entries", "charges", "noise"):
            for verb in ("UPDATE", "DELETE"):
                db.execute(f"DROP TRIGGER IF EXISTS {table_}_{verb}")
        db.execute(statement, values)
    db.close()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("UPDATE entries SET at = '2020-01-01' WHERE number = 1", "was changed"),
        ("UPDATE entries SET kind = 'abort' WHERE number = 2", "was changed"),
        ("UPDATE entries SET body = replace(body, 'bank', 'back') WHERE number = 1", "was changed"),
        ("UPDATE entries SET hash = zeroblob(32) WHERE number = 3", "was changed"),
        ("DELETE FROM entries WHERE number = 2", "an entry is missing"),
        ("UPDATE charges SET amount = 1 WHERE id = 1", "block 1 of charges was changed"),
        ("UPDATE charges SET reservation = 9 WHERE id = 1", "block 1 of charges was changed"),
        ("DELETE FROM charges WHERE id = 1", "block 1 of charges is missing"),
        ("DELETE FROM noise WHERE id = 1", "block 1 of noise is missing"),
        ("UPDATE noise SET drawn = zeroblob(length(drawn)) WHERE id = 1", "block 1 of noise"),
        ("INSERT INTO charges SELECT 99, reservation, key, attribute, amount, persons "
         "FROM charges WHERE id = 1", "belongs to no entry"),
    ],
)  # fmt: skip
def test_a_changed_ledger_does_not_verify(home, statement, words):
    filled(home)
    with opened(home) as ledger:
        assert verify(ledger) == []
    altered(home, statement)
    with opened(home) as ledger:
        assert any(words in f.words for f in verify(ledger))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    home = tmp_path_factory.mktemp("whole")
    filled(home)
    return home


@given(data=st.data())
def test_one_bit_changed_anywhere_is_found_or_means_nothing(whole, tmp_path_factory, data):
    """Flip one bit of one stored field: verify finds it."""
    home = tmp_path_factory.mktemp("bit")
    shutil.copytree(whole, home, dirs_exist_ok=True)
    table_, columns = data.draw(
        st.sampled_from(
            [
                ("entries", ("at", "kind", "body", "hash")),
                ("charges", ("attribute", "persons")),
                ("noise", ("attribute", "mechanism", "cells", "drawn")),
            ]
        )
    )
    column = data.draw(st.sampled_from(columns))
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        rows = db.execute(f"SELECT rowid, {column} FROM {table_}").fetchall()
    db.close()
    rowid, value = data.draw(st.sampled_from(rows))
    raw = bytearray(value.encode() if isinstance(value, str) else value)
    raw[data.draw(st.integers(0, len(raw) - 1))] ^= 1 << data.draw(st.integers(0, 6))
    new = bytes(raw)
    if isinstance(value, str):
        try:
            new = new.decode()
        except UnicodeDecodeError:
            return
    altered(home, f"UPDATE {table_} SET {column} = ? WHERE rowid = ?", new, rowid)
    try:
        with opened(home) as ledger:
            assert verify(ledger)
    except (DataError, PrivacyError):
        pass


def test_the_ledger_only_grows(home):
    filled(home)
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        for statement in ("DELETE FROM entries", "UPDATE noise SET width = 2"):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                db.execute(statement)
    db.close()


def test_a_ledger_that_was_rolled_back_is_told_by_a_receipt(home):
    with opened(home) as ledger:
        release(ledger, table(40))
        ledger._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copytree(home / "ledger", home / "old")
    with opened(home) as ledger:
        release(ledger, table(40).assign(age=1.0), job="2")
        head = ledger.head()
    receipts = [(head.number, head.hash)]
    with opened(home) as ledger:
        assert verify(ledger, receipts) == []
    shutil.rmtree(home / "ledger")
    shutil.copytree(home / "old", home / "ledger")
    with opened(home) as ledger:
        assert verify(ledger) == []  # by itself it looks whole
        assert "rolled back" in verify(ledger, receipts)[0].words


def test_neither_ids_nor_values_stand_in_the_files(home):
    people = table(50).assign(id=[f"person-{i:04d}" for i in range(50)])
    with opened(home) as ledger:
        release(ledger, people)
    stored = b"".join(f.read_bytes() for f in (home / "ledger").iterdir())
    assert b"person-" not in stored
    for value in people["age"]:
        assert repr(float(value)).encode() not in stored
        assert np.float64(value).tobytes() not in stored


def test_the_key_stays_outside_the_folder_and_closed_to_others(home):
    with pytest.raises(ConfigError, match=r"inside the ledger's folder"):
        Ledger(home / "ledger", home / "ledger" / "key")
    with opened(home) as ledger:
        release(ledger, table(10))
    key = home / "keys" / "ledger.key"
    assert key.stat().st_mode & 0o777 == 0o600
    key.chmod(0o644)
    with pytest.raises(ConfigError, match=r"chmod 600"):
        opened(home)
    key.chmod(0o600)
    lines = key.read_text()
    key.write_text("not hex\n")
    with pytest.raises(ConfigError, match=r"64 hex digits"):
        opened(home)
    key.write_text("00" * 32 + "\n")
    with pytest.raises(PrivacyError, match=r"which the key file does not hold"):
        opened(home)
    key.unlink()
    with pytest.raises(ConfigError, match=r"Bring the key back"):
        opened(home)
    key.write_text(lines)
    key.chmod(0o600)
    with opened(home) as ledger:
        assert not verify(ledger)


def test_a_new_key_on_top_still_knows_everyone(home):
    people = table()
    with opened(home, attribute=LEVEL) as ledger:
        first, _ = release(ledger, people)
    key = home / "keys" / "ledger.key"
    key.write_text("ab" * 32 + "\n" + key.read_text())
    with opened(home, attribute=LEVEL) as ledger:
        again, made = release(ledger, people, job="2")
        assert made.new_cells == 0
        assert values(again) == values(first)
        with pytest.raises(PrivacyError, match=r"4.5"):
            release(ledger, people.assign(age=100 - people["age"]), job="3")
        assert not verify(ledger)


def test_a_file_that_is_no_ledger_is_refused(home):
    with opened(home):
        pass
    file = home / "ledger" / "ledger.sqlite"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match=r"is not a ledger that can be read"):
        opened(home)


def test_two_releases_at_once_do_not_noise_a_cell_twice(home):
    people = table()
    with opened(home) as one, opened(home) as other:
        first = Drawing(one, [AGE], ["age"], job="1", recipient="bank")
        with first:
            with pytest.raises(ConfigError, match=r"Another process already works in"):
                release(other, people, job="2")
            ids = id_bytes([people["id"].tolist()], ["id"])
            out = first.draw(ids, [AGE.prepare(people)])
        again, made = release(other, people, job="2")
    assert made.new_cells == 0
    assert values(again) == values(out)


CONFIG = """
[mechanism]
epsilon = 0.5
[columns.age]
bounds = [0, 100]
[ledger]
folder = "ledger"
key = "keys/ledger.key"
cap_attribute = 9.0
"""


def test_the_verb_shows_verifies_and_exports(home):
    (home / "b.toml").write_text(CONFIG)
    assert run("ledger", "show", "-c", home / "b.toml")[0] == 2
    filled(home)
    code, out, _ = run("ledger", "show", "-c", home / "b.toml")
    assert code == 0
    assert "age" in out
    assert "4.5" in out or "9" in out
    code, out, _ = run("ledger", "verify", "-c", home / "b.toml")
    assert (code, out) == (0, "whole: 7 entries, 0 receipts\n")
    code, out, _ = run("ledger", "export", "-c", home / "b.toml", "--format", "text")
    assert out.splitlines()[0] == "entry,at,kind,body,key,hash"
    assert run("ledger", "export", "-c", home / "b.toml", "-o", home / "out.json")[0] == 0
    assert run("ledger", "export", "-c", home / "b.toml", "-o", home / "out.json")[0] == 2
    altered(home, "UPDATE charges SET amount = 1 WHERE id = 1")
    code, _, words = run("ledger", "verify", "-c", home / "b.toml")
    assert code == 3
    assert "block 1 of charges was changed" in words


def test_two_processes_do_not_write_at_once(home):
    with opened(home) as one, opened(home) as other:
        with one.writing():
            other._db.execute("PRAGMA busy_timeout = 50")
            with pytest.raises(OSError, match=r"cannot be written: database is locked"):
                release(other, table(5))
        release(other, table(5))
        assert not verify(one)


def test_a_file_goes_through_the_ledger(home):
    config = CONFIG.replace("[ledger]", '[align]\nid = "id"\n[ledger]')
    (home / "b.toml").write_text(config)
    people = table(300)
    people.to_csv(home / "people.csv", index=False)
    files = [home / f"{n}.csv" for n in "abc"]

    def desensitised(source, out, *more):
        return run("desensitize", home / source, "-c", home / "b.toml", "-o", out, *more)

    status, _, words = desensitised("people.csv", files[0], "--to", "bank")
    assert status == 0, words
    assert "300 cells drawn and charged, 0 known already" in words
    status, _, words = desensitised("people.csv", files[1], "--to", "rival")
    assert "0 cells drawn and charged, 300 known already" in words
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_text().splitlines()[0] in ('"age"', "age")
    for shift in (30, 60):
        people.assign(age=(people["age"] + shift) % 100).to_csv(home / "moved.csv", index=False)
        status, _, words = desensitised("moved.csv", files[2])
        if shift == 30:
            assert status == 0, words
            files[2].unlink()
    assert status == 3, words
    assert "no more than 9 may be spent" in words
    assert not files[2].exists()
    assert run("ledger", "verify", "-c", home / "b.toml")[0] == 0
    assert desensitised("people.csv", files[2], "--seed", "1")[0] == 3
    (home / "b.toml").write_text(CONFIG.replace("[ledger]", '[table]\ndrop = ["id"]\n[ledger]'))
    status, _, words = desensitised("people.csv", files[2])
    assert status == 2
    assert "Add [align]" in words
