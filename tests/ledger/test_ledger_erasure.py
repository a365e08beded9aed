"""Erasing one person: removed from every place that the ledger knows of, and never sent again."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import opboost as op
from opboost.columns.row_ids import id_bytes
from opboost.config.columns_file import parse
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import ConfigError, PeerError, PrivacyError
from opboost.files.stored_release import read_manifest
from opboost.ledger import Drawing
from opboost.ledger.compaction import merge_runs
from opboost.ledger.forget_person import KEPT, erase, forgotten
from opboost.ledger.ledger_summary import summary
from opboost.ledger.renewal import renew
from opboost.ledger.verify_ledger import verify
from opboost.protocol.messages import Welcome
from opboost.protocol.stored_columns import read_column
from opboost.scale import Charge
from opboost.storage import atomic_files
from opboost.transport.feature.feature_job import write_manifest
from opboost.transport.feature.forget_everywhere import forget
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import federation, joined, serving
from tests.ledger.test_ledger_renewal import reserved
from tests.ledger.test_ledger_rotation import files_in, handles_in, members_by_person, rotate_key
from tests.support.kills import killed_at_every_step
from tests.support.ledger import AGE, CITY, opened, release, table, values
from tests.support.parties import tree
from tests.support.releases import (
    AGE_ONLY,
    DECLARED,
    PLAN,
    charge_to,
    made,
    people,
    release_of,
    toml,
)

PEOPLE = table(300, city=[*"abcdefghij"] * 30)
COLUMNS = (AGE, CITY)
WHO = b"7"


def forgot(ledger, who=WHO):
    with atomic_files.alone(ledger.folder):
        return erase(ledger, who)


def hidden(out):
    """Return which rows of a release send nothing at all."""
    return np.all([c.missing for columns in out for c in columns], axis=0)


def shown(out, row):
    """Return what a release sends about all people except one."""
    return [np.delete(v, row).tolist() for v in values(out)]


@pytest.fixture
def ledger(tmp_path):
    with opened(tmp_path) as ledger:
        yield ledger


def test_nothing_of_the_person_is_left_and_everybody_else_stays(tmp_path, ledger):
    first, _ = release(ledger, PEOPLE[:200], COLUMNS, job="1")
    release(ledger, PEOPLE, COLUMNS, job="2", to="rival")
    release(ledger, PEOPLE[5:10], COLUMNS, job="3")
    handle = ledger.handles(ledger.people([WHO]))
    told = members_by_person(ledger, PEOPLE)
    before = summary(ledger)["spent"]
    done = forgot(ledger)
    assert (done.records, ledger.entry(done.entry).kind) == (1, "forget")
    assert not (handles_in(ledger) == handle).all(axis=1).any()
    assert len(handles_in(ledger)) == 299
    assert not verify(ledger)
    assert [line["people"] - 1 for line in before] == [
        line["people"] for line in summary(ledger)["spent"]
    ]
    assert [line["most"] for line in before] == [line["most"] for line in summary(ledger)["spent"]]
    after = members_by_person(ledger, PEOPLE)
    assert set(after) == set(told)
    for number, bits in told.items():
        assert bits[7]
        assert after[number] == [bit and row != 7 for row, bit in enumerate(bits)]
    again, repeated = release(ledger, PEOPLE[:200], COLUMNS, job="4")
    assert repeated.new_cells == 0
    assert shown(again, 7) == shown(first, 7)
    assert hidden(again).tolist() == [row == 7 for row in range(200)]
    assert not verify(ledger)


def test_the_old_files_are_overwritten_before_they_are_removed(tmp_path, ledger):
    release(ledger, PEOPLE, COLUMNS)
    old = files_in(tmp_path)
    handle = bytes(ledger.handles(ledger.people([WHO])))
    (name,) = old
    with (tmp_path / "ledger/runs" / name).open("rb") as file:
        assert handle in file.read()
        forgot(ledger)
        file.seek(0)
        assert not any(file.read())
    assert not files_in(tmp_path) & old
    for path in (tmp_path / "ledger/runs").iterdir():
        assert handle not in path.read_bytes()


def test_a_copy_by_hard_link_is_not_overwritten(tmp_path):
    """Some backups are hard links; overwriting would destroy them."""
    for name in ("one", "two"):
        (tmp_path / name).write_bytes(b"drawn")
    os.link(tmp_path / "one", tmp_path / "backup")
    with (tmp_path / "two").open("rb") as two:
        atomic_files.wipe(tmp_path / "one")
        atomic_files.wipe(tmp_path / "two")
        assert two.read() == bytes(5)
    assert [f.name for f in tmp_path.iterdir()] == ["backup"]
    assert (tmp_path / "backup").read_bytes() == b"drawn"


def test_a_tombstone_outlasts_renewals_keys_and_merged_runs(tmp_path):
    with opened(tmp_path) as ledger:
        release(ledger, PEOPLE[:200], COLUMNS)
        forgot(ledger)
        renew(ledger)
        out, drawn = release(ledger, PEOPLE[:200], COLUMNS, job="2")
        assert drawn.new_cells == 2 * 199
        assert hidden(out).sum() == hidden(out)[7] == 1
        renew(ledger, "age")
    rotate_key(tmp_path)
    with opened(tmp_path) as ledger:
        for n in range(9):
            release(ledger, PEOPLE[10 * n + 200 : 10 * n + 210], COLUMNS, job=f"r{n}")
        assert "rotate" in [e.kind for e in ledger.entries()]
        with atomic_files.alone(ledger.folder):
            merge_runs(ledger, most=2)
        assert "merge" in [e.kind for e in ledger.entries()]
        out, drawn = release(ledger, PEOPLE[:200], COLUMNS, job="3")
        assert drawn.new_cells == 199
        assert hidden(out).sum() == hidden(out)[7] == 1
        assert forgot(ledger).entry is None
        forgot(ledger, b"8")
        out, _ = release(ledger, PEOPLE[:200], COLUMNS, job="4")
        assert np.flatnonzero(hidden(out)).tolist() == [7, 8]
        assert not verify(ledger)


def test_somebody_is_forgotten_under_a_new_key_that_nothing_was_released_with(tmp_path):
    with opened(tmp_path) as ledger:
        first, _ = release(ledger, PEOPLE[:20], COLUMNS)
    rotate_key(tmp_path)
    with opened(tmp_path) as ledger:
        assert forgot(ledger).records == 1
        out, drawn = release(ledger, PEOPLE[:20], COLUMNS, job="2")
        assert (drawn.new_cells, shown(out, 7)) == (0, shown(first, 7))
        assert np.flatnonzero(hidden(out)).tolist() == [7]
        assert [e.kind for e in ledger.entries()][-4:] == ["forget", "rotate", "reserve", "commit"]
        assert not verify(ledger)


def test_a_file_that_names_no_people_is_refused(home):
    (home / "b.toml").write_text(CONFIG.replace('[align]\nid = "id"\n', ""))
    status, _, words = forget_by_command(home)
    assert status == 2
    assert "names no ID column" in words


def test_nobody_who_is_forgotten_is_charged(ledger):
    forgot(ledger)
    _, drawn = release(ledger, PEOPLE[:20], COLUMNS)
    assert drawn.new_cells == 2 * 19
    assert {line["people"] for line in summary(ledger)["spent"]} == {19}
    with Drawing(ledger, [AGE], ["age"], job="parts", recipient="bank", stored="x") as drawing:
        drawing.charge([WHO, b"500"], np.ones((2, 1), dtype=bool))
        assert drawing.forgotten([WHO, b"500"]).tolist() == [True, False]
    assert (drawing.rows, drawing.new_cells) == (2, 1)


def test_a_person_who_was_never_known_gets_a_tombstone_as_well(ledger):
    release(ledger, PEOPLE[:100], COLUMNS)
    done = forgot(ledger, b"250")
    assert (done.records, ledger.entry(done.entry).kind) == (0, "forget")
    assert forgot(ledger, b"250").entry is None
    out, drawn = release(ledger, PEOPLE, COLUMNS, job="2")
    assert np.flatnonzero(hidden(out)).tolist() == [250]
    assert drawn.new_cells == 2 * 199
    assert not verify(ledger)


def test_many_tombstones_are_looked_up_exactly(ledger):
    gone = [str(n).encode() for n in range(0, 300, 2)]
    for person in gone[:20]:
        forgot(ledger, person)
    is_gone = forgotten(ledger, b"299")
    ids = id_bytes([PEOPLE["id"].tolist()], ["id"])
    assert is_gone(ids).tolist() == [n in range(0, 40, 2) or n == 299 for n in range(300)]


# Every place that the ledger knows of

PARTY = '[party]\nname = "shop"\njob = "job.toml"\ntable = "people.csv"\nstate = "state"\n'
CONFIG = PARTY + toml()
WELCOME = Welcome("20260102T030405Z-01020304", bytes(32), b"")
ID = "person 10"
THIRDS = [people(100), people(100, 100), people(100, 200)]


@pytest.fixture
def home(tmp_path):
    """Make a party with a stored release, a finished job that sent it, and a ledger of 0.1.0."""
    return filled_home(tmp_path / "home", THIRDS)


def filled_home(home, tables, plan=PLAN):
    home.mkdir()
    (home / "b.toml").write_text(CONFIG)
    charge = charge_to(home)
    with charge.ledger:
        made(home / "out", tables, charge, plan)
        finished_job(home, charge.ledger, plan=plan)
        atomic_files.write(home / "ledger" / KEPT, b"x" * 10_000, mode=0o600)
    return home


def finished_job(home, ledger, job=WELCOME.job, plan=PLAN):
    party = shop(home, ledger, plan)
    party.release(Welcome(job, bytes(32), b""))
    write_manifest(party, job, "released", 0, 0.0)
    write_manifest(party, job, "done", 0, 0.0)


def shop(home, ledger, plan=PLAN):
    return op.FeatureParty(home / "out", plan, ledger=ledger, ids="id", state=home / "state")


def forget_by_command(home, *more):
    return run("ledger", "forget", "-c", home / "b.toml", "--person", ID, *more)


def ids_in(folder):
    return pq.read_table(folder)["id"].to_pylist()


def test_the_command_reaches_everything_that_the_ledger_knows(home):
    rows = pd.read_parquet(home / "out").set_index("id")
    job = home / "state" / WELCOME.job
    assert {"schema", "00000.arrow", "00000.values"} <= {f.name for f in job.iterdir()}
    status, out, _ = forget_by_command(home, "--format", "json")
    assert status == 0
    assert json.loads(out) == {
        "entry": 5,
        "records": 1,
        "kept": 1,
        "jobs": 1,
        "elsewhere": 0,
        "rewritten": {str(home / "out"): 1},
        "without_ids": [],
        "not_found": [],
        "files": [],
    }
    assert not (home / "ledger" / KEPT).exists()
    assert {f.name for f in job.iterdir()} == {"binding.json", "released.json", "manifest.json"}
    left = pd.read_parquet(home / "out").set_index("id")
    assert ID not in left.index
    pd.testing.assert_frame_equal(left, rows.drop(ID))
    assert read_manifest(home / "out").rows == 299
    with opened(home) as ledger:
        assert not verify(ledger)
        entry = ledger.entry(5)
        assert entry.body["outputs"] == {
            read_manifest(home / "out").release: read_manifest(home / "out").output()
        }
        shop(home, ledger).release(Welcome("20260102T030405Z-0a020304", bytes(32), b""))


def test_the_command_tells_what_it_did_and_never_about_whom(home):
    status, out, err = forget_by_command(home)
    assert status == 0
    lines = out.splitlines()
    assert lines[0] == (
        "Entry 5 leaves a tombstone: no later release sends anything about this person."
    )
    assert "Ledger: 1 record removed." in lines
    assert f"Stored release {home / 'out'}: 1 row removed." in lines
    assert "Jobs: the rows of 1 finished job removed." in lines
    assert any(line.startswith("Kept ledger of version 0.1.0: removed") for line in lines)
    assert "Delete the row from the table yourself" in lines[-1]
    status, again, _ = forget_by_command(home)
    assert status == 0
    assert again.startswith("An earlier entry leaves a tombstone")
    for path in [home / "ledger/ledger.sqlite", *(home / "ledger").rglob("*-wal")]:
        assert ID.encode() not in path.read_bytes()
    exported = run("ledger", "export", "-c", home / "b.toml")[1]
    with opened(home) as ledger:
        assert bytes(ledger.tombstones()).hex() not in exported
    assert json.loads(exported)[5]["body"]["tombstones"] == 1
    for said in (out, err, again, exported):
        assert ID not in said


def test_somebody_whom_nobody_knows_is_no_error(home):
    status, out, _ = run("ledger", "forget", "-c", home / "b.toml", "--person", "nobody at all")
    assert status == 0
    assert "Ledger: 0 records removed." in out
    assert len(ids_in(home / "out")) == 300
    with opened(home) as ledger:
        assert len(ledger.tombstones()) == 1


def test_another_spelling_is_the_same_person_unless_ids_are_exact(home, tmp_path):
    assert run("ledger", "forget", "-c", home / "b.toml", "--person", " PERSON 10")[0] == 0
    assert ID not in ids_in(home / "out")
    with opened(tmp_path, ids="exact") as ledger:
        spelt = pd.DataFrame({"id": ["ann", "ANN"], "age": [10.0, 20.0]})
        release(ledger, spelt)
        forget(ledger, ["ANN"], ["id"])
        assert hidden(release(ledger, spelt, job="2")[0]).tolist() == [False, True]


def test_an_id_of_several_parts_is_given_part_by_part(tmp_path):
    rows = pd.DataFrame({"branch": ["a", "b"], "number": [1, 1], "age": [10.0, 20.0]})
    party = op.FeatureParty(rows, [AGE], ids=["branch", "number"], ledger=opened(tmp_path))
    party.release(WELCOME)
    ledger = party.ledger
    with pytest.raises(ConfigError, match=r"has 2 parts \(branch, number\); got 1"):
        forget(ledger, ["a"], ["branch", "number"])
    assert forget(ledger, ["b", "1"], ["branch", "number"]).records == 1
    ledger.close()


def test_it_is_refused_while_a_release_is_reserved(home):
    with opened(home) as ledger:
        number = reserved(ledger, people="id")
    before = tree(home)
    status, _, words = forget_by_command(home)
    assert status == 3
    assert f"opboost ledger abort -c FILE {number}" in words
    assert not changed(tree(home), before)
    assert run("ledger", "abort", "-c", home / "b.toml", number)[0] == 0
    assert forget_by_command(home)[0] == 0


def changed(after, before):
    """Return which files changed, except locks and SQLite's temporary journal."""
    passing = (".sqlite-wal", ".sqlite-shm", "/lock")
    names = {name for name in {*after, *before} if not name.endswith(passing)}
    return {name for name in names if after.get(name) != before.get(name)}


def test_it_is_refused_while_a_job_is_under_way(home):
    job = home / "state" / WELCOME.job
    (job / "manifest.json").unlink()
    before = tree(home)
    status, _, words = forget_by_command(home)
    assert status == 3
    assert f"Job {WELCOME.job} is not finished" in words
    assert f"remove {job}" in words
    assert not changed(tree(home), before)
    shutil.rmtree(job)
    status, out, _ = forget_by_command(home)
    assert status == 0
    assert "Jobs without a folder here: 1." in out


def test_it_is_refused_while_somebody_else_works_there(home):
    for folder in ("state", "ledger"):
        with atomic_files.alone(home / folder):
            status, _, words = forget_by_command(home)
        assert status == 2
        assert "Another process is already working in" in words
    assert ID in ids_in(home / "out")


# Stored releases


def test_a_release_without_ids_is_reported(tmp_path):
    plan = parse(DECLARED.replace('public = ["id"]\ndrop = [', 'drop = ["id", '), "b.toml")
    charge = charge_to(tmp_path)
    made(tmp_path / "out", THIRDS, charge, plan)
    done = forget(charge.ledger, [ID], ["id"])
    assert (done.records, done.without_ids) == (1, [str(tmp_path / "out")])
    assert not done.rewritten
    assert len(pq.read_table(tmp_path / "out")) == 300
    charge.ledger.close()


def test_a_release_that_is_gone_is_reported_and_may_come_back(home):
    shutil.move(home / "out", home / "moved")
    status, out, _ = forget_by_command(home)
    assert status == 0
    assert f"Stored release {home / 'out'}: it is missing" in out
    shutil.move(home / "moved", home / "out")
    with opened(home) as ledger:  # the row is not sent, although it is still in the file
        sent = rows_sent(shop(home, ledger), ledger)
        assert len(sent) == 300
        assert sent[ids_in(home / "out").index(ID)] == [None] * 5
        assert sum(row == [None] * 5 for row in sent) == 1
    shutil.rmtree(home / "state")
    status, out, _ = forget_by_command(home)
    assert (status, ID in ids_in(home / "out")) == (0, False)
    assert f"Stored release {home / 'out'}: 1 row removed." in out
    with opened(home) as ledger:
        assert len(rows_sent(shop(home, ledger), ledger)) == 299


def rows_sent(party, ledger):
    welcome = Welcome(f"20260102T030405Z-{ledger.head().number:08x}", bytes(32), b"")
    schema, files = party.release(welcome)
    columns = []
    for file in files:
        column = read_column(file)[1]
        gaps = np.zeros(schema.rows, bool) if column.missing is None else column.missing
        columns.append(
            [None if g else v for v, g in zip(column.values.tolist(), gaps, strict=True)]
        )
    return [list(row) for row in zip(*columns, strict=True)]


def test_a_release_that_was_moved_is_named(home):
    shutil.move(home / "out", home / "moved")
    assert forget_by_command(home, "--stored", home / "moved")[0] == 0
    assert ID not in ids_in(home / "moved")
    with opened(home) as ledger:
        party = op.FeatureParty(home / "moved", PLAN, ledger=ledger, ids="id", state=home / "other")
        assert len(rows_sent(party, ledger)) == 299
    stranger = charge_to(home / "stranger")
    made(home / "theirs", THIRDS, stranger)
    stranger.ledger.close()
    status, _, words = forget_by_command(home, "--stored", home / "theirs")
    assert status == 2
    assert "The ledger does not know the stored release" in words


def test_copies_of_a_release_are_changed_alike_or_not_at_all(home):
    shutil.copytree(home / "out", home / "copy")
    assert forget_by_command(home, "--stored", home / "copy")[0] == 0
    assert ids_in(home / "copy") == ids_in(home / "out")
    assert read_manifest(home / "copy").output() == read_manifest(home / "out").output()


def test_a_copy_that_missed_an_earlier_erasure_loses_those_rows_too(home):
    shutil.copytree(home / "out", home / "copy")
    assert run("ledger", "forget", "-c", home / "b.toml", "--person", "person 200")[0] == 0
    shutil.rmtree(home / "out")
    assert forget_by_command(home, "--stored", home / "copy")[0] == 0
    assert not {ID, "person 200"} & set(ids_in(home / "copy"))
    assert len(ids_in(home / "copy")) == 298


def test_parts_that_were_changed_are_not_made_acceptable(home):
    part = home / "out" / "part-00000.parquet"
    rows = pq.read_table(part)
    pq.write_table(rows.set_column(1, "age", pa.array([1] * 100, rows["age"].type)), part)
    before = tree(home)
    status, _, words = forget_by_command(home)
    assert status == 5
    assert "is not the one that people were charged for" in words
    assert not changed(tree(home), before)


def test_a_release_that_is_still_being_made_is_finished_first(home):
    (home / ".out.release").mkdir()
    status, _, words = forget_by_command(home)
    assert status == 3
    assert "is not finished. Run its command again" in words
    assert ID in ids_in(home / "out")


def forget_once(home):
    status, _, words = forget_by_command(home)
    assert status == 0, words


def test_a_kill_anywhere_leaves_what_the_same_command_finishes(tmp_path):
    """Kill the command at each step, each time in a new copy, and run it again.

    One column and two parts, one of which holds the person, cover all kinds of steps.
    """
    plan = parse(AGE_ONLY, "b.toml")
    home = filled_home(tmp_path / "home", [people(20), people(20, 100)], plan)
    expected = sorted(set(ids_in(home / "out")) - {ID})
    places = killed_at_every_step(forget_once, home, tmp_path / "places")
    assert len(places) > 30
    for place in places:
        with opened(place) as ledger:
            assert not verify(ledger), place.name
            handle = ledger.handles(ledger.people([ID.encode()]))
            assert not (handles_in(ledger) == handle).all(axis=1).any()
            assert (ledger.tombstones() == handle).all()
            named = {run.file for run in ledger.runs()}
            named |= {m.file for m in ledger.members().values()}
            assert files_in(place) == named
            assert len(list(ledger.entries("forget"))) == 1
            party = shop(place, ledger, plan)
            party._table.stored.check_parts()
        assert sorted(ids_in(place / "out")) == expected
        assert not [f for f in os.listdir(place) if f.endswith((".forget", ".part"))]
        assert not (place / "ledger" / KEPT).exists()
        assert {f.name for f in (place / "state" / WELCOME.job).iterdir()} == {
            "binding.json", "released.json", "manifest.json",
        }  # fmt: skip


# Releases in parts


def test_a_release_in_parts_leaves_a_forgotten_person_out(tmp_path):
    charge = charge_to(tmp_path)
    forget(charge.ledger, [ID], ["id"])
    manifest = made(tmp_path / "out", THIRDS, charge)
    released = pq.read_table(tmp_path / "out").to_pylist()
    assert manifest.rows == len(released) == 300
    cells = [row | {"id": None} for row in released if row["id"] == ID]
    assert cells == [dict.fromkeys(released[0])]
    full = [row for row in released if row["id"] != ID]
    assert all(row["age"] is not None for row in full)
    assert {line["people"] for line in summary(charge.ledger)["spent"]} == {299}
    assert not verify(charge.ledger)
    sent = rows_sent(shop(tmp_path, charge.ledger), charge.ledger)
    assert sum(row == [None] * 5 for row in sent) == 1
    charge.ledger.close()


def test_a_person_who_is_forgotten_while_a_release_is_made_is_left_out(tmp_path):
    charge = charge_to(tmp_path)
    with release_of(tmp_path / "out", 3, charge) as making:
        for number in making.missing():
            making.block.write(number, [THIRDS[number]])
        forget(charge.ledger, [ID], ["id"])
        making.commit()
    released = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["age"] for row in released if row["id"] == ID] == [None]
    assert {line["people"] for line in summary(charge.ledger)["spent"]} == {299}
    charge.ledger.close()


def test_a_person_who_is_forgotten_just_before_the_charge_is_not_stored(tmp_path):
    charge = charge_to(tmp_path)
    with release_of(tmp_path / "out", 1, charge) as making:
        making.block.write(0, [THIRDS[0]])
        hidden_rows, manifest = making._hide_forgotten(), making._whole()
        forget(charge.ledger, [ID], ["id"])
        with pytest.raises(PrivacyError, match="forgotten while the release was made"):
            making._pay(manifest, hidden_rows)
        assert making.commit().rows == 100
    released = pq.read_table(tmp_path / "out").to_pylist()
    assert [row["age"] for row in released if row["id"] == ID] == [None]
    charge.ledger.close()


def release_in_parts(home):
    with opened(home) as ledger:
        if not (home / "out").exists():
            made(home / "out", THIRDS[:1], Charge(ledger, recipient="bank"))


def test_a_release_in_parts_that_is_cut_short_leaves_the_person_out_all_the_same(tmp_path):
    home = tmp_path / "home"
    with opened(home) as ledger:
        forget(ledger, [ID], ["id"])
    for place in killed_at_every_step(release_in_parts, home, tmp_path / "places"):
        released = pq.read_table(place / "out").to_pylist()
        assert [row["age"] for row in released if row["id"] == ID] == [None]
        assert len(released) == 100
        with opened(place) as ledger:
            assert {line["people"] for line in summary(ledger)["spent"]} == {99}
            assert shop(place, ledger)
            assert summary(ledger)["spent"][0]["most"] == pytest.approx(0.64 * 9)


# Jobs


def test_after_a_job_by_network_its_rows_are_gone_and_its_manifest_stays(tmp_path):
    made_federation = federation(tmp_path, ("shop",))
    with serving(made_federation) as (process, address):
        (manifest,) = joined(made_federation, address)
        process.communicate(timeout=60)
    config = made_federation.config("shop")
    config.write_text(f"{config.read_text()}\n[limits]\nconnect_seconds = 0.1\n")
    job = tmp_path / "shop/state" / manifest["job"]
    before = {f.name for f in job.iterdir()}
    assert {"common", "schema", "00000.arrow", "00000.values"} < before
    assert run("ledger", "forget", "-c", config, "--person", "person-0007")[0] == 0
    left = {f.name for f in job.iterdir()}
    assert left == {"answer", "binding.json", "manifest.json"}
    assert run("ledger", "verify", "-c", config)[0] == 0
    status, out, err = run("join", "-c", config, "--format", "json")
    assert status == 0, err
    assert json.loads(out)["job"] == manifest["job"]  # the job is still finished


@pytest.mark.parametrize("align", ["psi", "given"])
def test_the_next_job_by_network_leaves_the_person_out(tmp_path, align):
    made_federation = federation(tmp_path, ("shop",), align=align)
    manifests = []
    for more in ((), ("--again",)):
        with serving(made_federation, *more) as (process, address):
            manifests += joined(made_federation, address)
            said = process.communicate(timeout=60)[1]
        assert process.returncode == 0, said
        config = made_federation.config("shop")
        assert run("ledger", "forget", "-c", config, "--person", "person-0007")[0] == 0
    first, second = (m["rows"] for m in manifests)
    assert second == first - (align == "psi")
    shown = json.loads(run("ledger", "show", "-c", config, "--format", "json")[1])
    assert shown["spent"][-1]["people"] == first - 1
    old = [line["old_cells"] for line in shown["releases"] if line.get("old_cells") is not None]
    assert old == [0, 2 * (first - 1)]


def test_after_a_job_by_bundles_no_bundle_with_rows_is_kept(tmp_path):
    office = Office(federation(tmp_path, ("shop",), align="given"))
    sent = office.begun()["shop"]
    exported = office.written("shop", "export", sent)[LABEL_PARTY]
    config = office.made.config("shop")
    status, _, words = run("ledger", "forget", "-c", config, "--person", "person-0007")
    assert (status, "is not finished" in words) == (3, True)
    query = office.written(LABEL_PARTY, "split-query", exported)["shop"]
    office.written("shop", "answer", query)
    assert run("ledger", "forget", "-c", config, "--person", "person-0007")[0] == 0
    left = [f.name for f in (tmp_path / "shop/state").rglob("*") if f.is_file()]
    assert not [name for name in left if name.endswith((".bundle", ".arrow", ".values"))]
    assert "manifest.json" in left
    status, _, words = run("bundle", "answer", "-c", config, query, "--to", tmp_path / "again")
    assert status == 5
    assert "begin a new run (--again)" in words


def parties_in_memory(tmp_path, align, rows=600):
    """Make a shop that has erased a person, and a bank that has not."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"id": np.arange(rows), "age": rng.uniform(0, 100, rows), "pay": rng.uniform(0, 100, rows)}
    )
    columns = [AGE, op.PrivateColumn("pay", AGE.mapping, AGE.mechanism)]
    ledger = opened(tmp_path)
    forget(ledger, ["42"], ["id"])
    rules = op.AlignRules(minimum_rows=10) if align == "psi" else "given"
    shop = op.FeatureParty(frame, columns, ledger=ledger, ids="id", align=rules)
    y = (frame["age"] + frame["pay"] > 100).to_numpy()
    own = pd.DataFrame({"debt": rng.uniform(0, 1, rows)})
    return shop, frame, own, y, rules


@pytest.mark.parametrize("align", ["psi", "given"])
@pytest.mark.parametrize("denoise", ["auto", False])
def test_a_job_goes_on_without_a_forgotten_person(tmp_path, align, denoise):
    shop, frame, own, y, rules = parties_in_memory(tmp_path, align)
    ids = frame["id"].tolist()
    settings = {"booster_params": {"n_estimators": 5}, "denoise": denoise, "random_state": 1}
    bank = op.LabelParty(own, y, ids=ids, align=rules, **settings)
    model = bank.train([op.MemoryChannel(shop)])
    asked = op.LabelParty(own, None, ids=ids, align=rules)
    found = asked.predict(model, [op.MemoryChannel(shop)])
    assert set(range(len(frame))) - set(found.rows.tolist()) == {42}
    assert np.mean(found.prediction == y[found.rows]) > 0.55
    if align == "psi":  # the bank does not learn that the shop has a row for this person
        common = [e.body["common"] for e in shop.ledger.entries("aligned")]
        assert common == [len(frame) - 1] * 2
    shop.ledger.close()


@pytest.mark.parametrize("align", ["psi", "given"])
def test_a_job_from_disk_goes_on_without_a_forgotten_person(tmp_path, align):
    """The same rows give the same trees, in memory and from disk."""
    shop, frame, own, y, rules = parties_in_memory(tmp_path, align)
    settings = {"booster_params": {"num_boost_round": 5}, "denoise": False, "random_state": 1}
    trees = []
    for memory in ("internal", "external"):
        bank = op.LabelParty(own, y, ids=frame["id"].tolist(), align=rules, memory=memory,
                             **settings)  # fmt: skip
        model = bank.train([op.MemoryChannel(shop)])
        trees.append(model.trained_.native.get_dump(with_stats=True))
    assert model.n_features_in_ == 3
    assert trees[0] == trees[1]
    shop.ledger.close()


def test_rows_of_forgotten_people_are_found_a_block_of_rows_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setattr("opboost.parties.label.received_release.BLOCK_ROWS", 100)
    monkeypatch.setattr("opboost.protocol.stored_columns._SYMBOLS", 70)
    test_a_job_from_disk_goes_on_without_a_forgotten_person(tmp_path, "given")


def test_gaps_in_some_columns_of_a_row_are_refused(tmp_path):
    from opboost.parties.label.received_release import ReceivedRelease, sent_by_all

    shop, *_ = parties_in_memory(tmp_path, "given")
    channel = op.MemoryChannel(shop)
    schema = channel.open(WELCOME)
    offer = ReceivedRelease(channel, schema, schema.private())
    released = offer.received()
    there = sent_by_all([offer], released)
    assert np.flatnonzero(~there).tolist() == [42]
    mixed = [
        dataclasses.replace(c, parts=[dataclasses.replace(p, missing=None) for p in c.parts])
        if c.private.name == "pay"
        else c
        for c in released
    ]
    with pytest.raises(PeerError, match=r"sent gaps in some columns of a row"):
        sent_by_all([offer], mixed)
    shop.ledger.close()
