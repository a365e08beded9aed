"""Migration of version 0.1's ledgers keeps every draw and every charge."""

from __future__ import annotations

import random
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections import Counter, defaultdict
from contextlib import closing

import pandas as pd
import pytest

from opboost.columns.column_specs import column_to_dict
from opboost.errors import PrivacyError
from opboost.ledger import Caps, Ledger
from opboost.ledger.ledger_summary import summary
from opboost.ledger.lookup import spent
from opboost.ledger.person_answers import about_person
from opboost.ledger.verify_ledger import holds, verify
from opboost.ledger.wanted_columns import identity
from robustness.command_line import run
from tests.support.format1 import UNBOUNDED, Column, OldLedger
from tests.support.ledger import AGE, CITY, GAPS, release

SHOP = """
[mechanism]
kind = "clamp-map"
epsilon = 0.5

[columns.age]
bounds = [0, 100]

[align]
id = "id"

[ledger]
folder = "ledger"
key = "keys/k"
"""


def declared(column):
    return {name: value for name, value in column_to_dict(column).items() if name != "name"}


AGES = Column("age", identity(AGE), 4_500_000_000, 1, declared(AGE))
CITIES = Column("city", identity(CITY), 1_000_000_000, 2, declared(CITY))
GAPPED = Column("gaps", identity(GAPS), 4_500_000_000)
OTHER = Column("age", "another mechanism", 2_000_000_000)


@pytest.fixture
def old(tmp_path):
    (tmp_path / "shop.toml").write_text(SHOP)
    return OldLedger(tmp_path)


def give_tables(home, *tables):
    """Write tables with IDs; return the options that name them."""
    options = []
    for number, ids in enumerate(tables):
        file = home / f"{number}.csv"
        pd.DataFrame({"id": ids}).to_csv(file, index=False)
        options += ["--table", file]
    return options


def migrate(home, *tables, more=()):
    return run("ledger", "migrate", "-c", home / "shop.toml", *give_tables(home, *tables), *more)


def opened(home, **more):
    return Ledger(home / "ledger", home / "keys" / "k", **more)


def charged(ledger, ids, attribute=None):
    """Return what was spent on each person, in billionths."""
    files = [ledger.run_file(run) for run in ledger.runs()]
    handles = ledger.handles(ledger.people([i.encode() for i in ids]))
    return dict(zip(ids, spent(files, handles, attribute).tolist(), strict=True))


def released(ledger, ids, columns=(AGE,), **more):
    """Release now; return each person's cells (None if not sent), and how many were drawn."""
    people = pd.DataFrame({"id": ids, "age": 50.0, "gaps": 50.0, "city": "a"})
    out, drawing = release(ledger, people, columns, job="now", known_by="id", **more)
    cells = {}
    for row, name in enumerate(ids):
        cells[name] = [
            None
            if parts[0].missing is not None and parts[0].missing[row]
            else [int(part.values[row]) for part in parts]
            for parts in out
        ]
    return cells, drawing.new_cells


def filled(old, ids=("Ann", "Bob"), draw=7):
    """Commit a release of ages; return its receipt."""
    number = old.reserve([AGES])
    old.draw(number, [AGES], [{i: (5, bytes([draw])) for i in ids}])
    return old.commit(number)


def test_draws_stand_and_charges_add_up_whatever_the_value(old, tmp_path):
    filled(old, draw=7)
    number = old.reserve([AGES], job="2", to="insurer")
    old.draw(number, [AGES], [{"Ann": (9, bytes([2]))}])  # her value changed
    old.commit(number, job="2", to="insurer")
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        assert verify(ledger) == []
        assert charged(ledger, ["ann", "bob"]) == {"ann": 9 * 10**9, "bob": 45 * 10**8}
        cells, new = released(ledger, ["ann", "bob", "eve"])
        assert (cells["ann"], cells["bob"], new) == ([[7]], [[7]], 1)


def scenario(seed, old):
    """Make random releases; return the charges and draws that must remain, by canonical ID."""
    rng = random.Random(seed)
    ids = [f"P{i}" for i in range(9)] + ["p0", "p3"]
    spent_on, records = Counter(), defaultdict(list)
    choices = {}
    for job in range(rng.randrange(2, 7)):
        if rng.random() < 0.3:
            old.rotate()
        columns = rng.sample([AGES, CITIES, GAPPED], rng.randrange(1, 4))
        few = len(columns) > 1 and rng.random() < 0.6
        rows = rng.sample(ids, rng.randrange(2, len(ids)))
        since, end = old.marks(), rng.choice(["commit", "commit", "abort", "open"])
        number = old.reserve(columns, job=str(job))
        plan = frozenset(c.attribute for c in columns)
        drawn, chosen, said = [{} for _ in columns], {}, defaultdict(dict)
        for i in sorted(rows, key=ids.index):
            sends = {c.attribute for c in columns}
            if few:
                sends = choices.get((i, plan)) or {rng.choice(columns).attribute}
                if (i, plan) not in choices:
                    chosen[i] = sends
            for j, column in enumerate(columns):
                value = None
                if column.attribute in sends:
                    value = bytes([rng.randrange(1, 11), 0][: column.width])
                    drawn[j][i] = job, value
                said[i][column.attribute] = column.amount, value
        old.draw(number, columns, drawn, chosen)
        if end == "abort":
            old.abort(number, since, job=str(job))
            continue
        if end == "commit":
            old.commit(number, job=str(job))
        choices |= {(i, plan): sends for i, sends in chosen.items()}
        for i, cells in said.items():
            for attribute, (amount, value) in cells.items():
                spent_on[i.lower(), attribute] += amount if value else 0
                records[i.lower(), attribute].append((end != "commit", value))
    stands = {cell: min(found, key=lambda r: r[0])[1] for cell, found in records.items()}
    return ids, spent_on, stands


@pytest.mark.parametrize("seed", range(12))
def test_whatever_was_released_is_charged_and_stands(old, tmp_path, seed):
    ids, spent_on, stands = scenario(seed, old)
    half = len(ids) // 2
    status, _, said = migrate(tmp_path, ids[: half + 1], ids[half:])
    assert status == 0, said
    people = sorted({i.lower() for i in ids})
    columns = {"age": AGE, "city": CITY, "gaps": GAPS}
    with opened(tmp_path) as ledger:
        assert verify(ledger) == []
        for attribute in columns:
            expected = {i: spent_on[i, attribute] for i in people}
            assert charged(ledger, people, attribute) == expected
        found, new = released(ledger, people, columns.values(), new_attributes=list(columns))
        assert new == len(people) * len(columns) - len(stands)
        for (person, attribute), value in stands.items():
            cell = found[person][list(columns).index(attribute)]
            assert cell == as_released(attribute, value), (person, attribute)


def as_released(attribute, value):
    if value is None:
        return None
    if attribute == "city":
        return [value[0] >> (7 - k) & 1 if k < 8 else 0 for k in range(10)]
    return [value[0]]


def test_what_an_unfinished_release_drew_counts_and_stands_behind_the_others(old, tmp_path):
    left_open = old.reserve([AGES], job="killed")
    old.draw(left_open, [AGES], [{"Ann": (1, b"\x01"), "Bob": (1, b"\x02")}])
    number = old.reserve([AGES])
    old.draw(number, [AGES], [{"Ann": (2, b"\x09")}])
    old.commit(number)
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        told = [line["what"] for line in summary(ledger)["releases"]]
        reason = "not finished in version 0.1: what it drew counts as spent"
        assert sorted(told) == [f"aborted ({reason})", "release"]
        assert ledger.open_reservations() == []
        assert {run.committed for run in ledger.runs()} == {number + 2, ledger.head().number}
        assert charged(ledger, ["ann", "bob"]) == {"ann": 9 * 10**9, "bob": 45 * 10**8}
        assert released(ledger, ["ann", "bob"]) == ({"ann": [[9]], "bob": [[2]]}, 0)


def test_an_abort_takes_back_its_own_run_alone(old, tmp_path):
    number = old.reserve([AGES])
    old.draw(number, [AGES], [{"Ann": (1, b"\x01")}])  # killed, then run again:
    since = old.marks()
    old.draw(number, [AGES], [{"Bob": (1, b"\x02")}])
    old.abort(number, since)
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        assert charged(ledger, ["ann", "bob"]) == {"ann": 45 * 10**8, "bob": 0}
        (line,) = summary(ledger)["releases"]
        assert line["what"] == "aborted (refused: the table does not fit)"


def test_a_choice_of_an_earlier_release_holds_for_a_later_one_that_followed_it(old, tmp_path):
    first, second = [OTHER, CITIES], [AGES, CITIES]
    number = old.reserve(first)
    chosen = {"Ann": ["age"], "Bob": ["city"]}
    cells = [{"Ann": (1, b"\x01")}, {"Bob": (1, b"\x80\x00")}]
    old.draw(number, first, cells, chosen)
    old.commit(number)
    number = old.reserve(second, job="2")
    old.draw(number, second, [{"Ann": (1, b"\x04")}, {}])
    old.commit(number, job="2")
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        found, new = released(ledger, ["ann", "bob"], [AGE, CITY])
        assert found["ann"] == [[4], None]
        assert found["bob"][1] == [1] + [0] * 9
        assert new == 1  # Bob's age under the second mechanism is in none of his releases


@pytest.mark.parametrize("spellings", [["Ann", "ANN"], ["ANN", "Ann"]])
def test_an_answer_tells_what_each_spelling_of_a_person_sent(old, tmp_path, spellings):
    """Each spelling had its own row, its own choice of columns and its own draw."""
    number, columns = old.reserve([AGES, CITIES]), [AGES, CITIES]
    one, other = spellings
    chosen = {one: ["city"], other: ["age"], "Bob": ["age"]}
    cells = [{other: (1, b"\x03"), "Bob": (1, b"\x04")}, {one: (1, b"\x80\x00")}]
    old.draw(number, columns, cells, chosen)
    old.commit(number)
    number = old.reserve([AGES], job="2")
    old.draw(number, [AGES], [dict.fromkeys(spellings, (2, b"\x05"))])
    old.commit(number, job="2")
    assert migrate(tmp_path, ["Ann", "ANN", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        first, second = about_person(ledger, b"ann").releases
        assert [(c.sent, c.charged) for c in first.cells] == [(True, 4.5), (True, 1.0)]
        assert first.cells[0].output == {"age": 3}
        (both,) = second.cells
        assert (both.charged, both.output) == (9.0, None)
        assert both.means == "2 draws, one for each spelling of the ID"
        assert about_person(ledger, b"ann").spent[-1]["spent"] == 14.5
        (bob,) = about_person(ledger, b"bob").releases
        assert [(c.sent, c.means) for c in bob.cells][1] == (False, "not sent")


def test_an_unbounded_release_stays_unbounded(old, tmp_path):
    shown = Column("run", "local", UNBOUNDED)
    number = old.reserve([shown])
    old.draw(number, [shown], [{"Ann": (1, b"\x01")}])
    old.commit(number)
    assert migrate(tmp_path, ["Ann"])[0] == 0
    with opened(tmp_path) as ledger:
        assert summary(ledger)["spent"][-1]["most"] == float("inf")


def test_caps_hold_for_what_was_spent_before(old, tmp_path):
    filled(old)
    number = old.reserve([OTHER], job="2")
    old.draw(number, [OTHER], [{"ANN": (1, b"\x01")}])  # the same person, spelt differently
    old.commit(number, job="2")
    assert migrate(tmp_path, ["Ann", "Bob", "ANN"])[0] == 0
    people = ["ann", "bob"]
    with opened(tmp_path, caps=Caps(person=10.5)) as ledger:
        with pytest.raises(PrivacyError, match=r"1 people would exceed"):
            released(ledger, people, [AGE, GAPS], new_attributes=["gaps"])
        assert released(ledger, ["bob"], [AGE, GAPS], new_attributes=["gaps"])[1] == 1


def test_a_release_in_parts_is_kept_elsewhere(old, tmp_path):
    number = old.reserve([AGES, CITIES], job="release abc")
    cells = [{"Ann": (0, b"")}, {"Ann": (0, b""), "Bob": (0, b"")}]
    old.draw(number, [AGES, CITIES], cells, part=0)
    old.commit(number, job="release abc", output="00")
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        assert [run.stored for run in ledger.runs()] == ["abc"]
        assert charged(ledger, ["ann", "bob"]) == {"ann": 55 * 10**8, "bob": 10**9}
        with pytest.raises(PrivacyError, match=r"1 people .* kept in that stored release"):
            released(ledger, ["ann", "bob"])
        assert released(ledger, ["bob"]) == ({"bob": [None]}, 0)


def test_ids_may_stay_apart_by_case(old, tmp_path):
    (tmp_path / "shop.toml").write_text(SHOP + 'ids = "exact"\n')
    filled(old, ids=["Ann", "ann"])
    assert migrate(tmp_path, ["Ann", "ann"])[0] == 0
    with opened(tmp_path) as ledger:
        assert ledger.ids == "exact"
        assert charged(ledger, ["Ann", "ann"]) == {"Ann": 45 * 10**8, "ann": 45 * 10**8}


def test_ids_are_trimmed_as_jobs_did(old, tmp_path):
    filled(old, ids=["Ann"])
    assert migrate(tmp_path, [" Ann "])[0] == 0
    with opened(tmp_path) as ledger:
        assert released(ledger, ["ann"]) == ({"ann": [[7]]}, 0)


def test_people_in_no_table_are_refused_by_number(old, tmp_path):
    filled(old, ids=["Ann", "Bob", "Eve"])
    before = contents(old.file)
    status, _, said = migrate(tmp_path, ["Ann"])
    assert status == 3
    assert said.startswith("2 people of the ledger are in none of the tables.")
    assert "--table" in said
    assert "--leave-out-unknown" in said
    assert contents(old.file) == before
    assert not list((tmp_path / "ledger").glob(".*"))
    status, said, _ = migrate(tmp_path, ["Ann"], more=["--leave-out-unknown"])
    assert (status, said.split(";")[0]) == (0, "migrated: 1 people, 2 left out, 5 entries")
    with opened(tmp_path) as ledger:
        assert ledger.head().body["left_out"] == 2
        assert released(ledger, ["ann", "bob"])[1] == 1


def test_the_partys_own_table_is_the_default(old, tmp_path):
    filled(old)
    party = '[party]\nname = "shop"\njob = "job.toml"\ntable = "0.csv"\n'
    (tmp_path / "shop.toml").write_text(party + SHOP)
    give_tables(tmp_path, ["Ann", "Bob"])
    assert run("ledger", "migrate", "-c", tmp_path / "shop.toml")[0] == 0


@pytest.mark.parametrize(
    ("tables", "words"),
    [((), "names no table"), ((["Ann", None],), "is missing")],
)
def test_what_the_tables_lack_is_said(old, tmp_path, tables, words):
    filled(old)
    status, _, said = migrate(tmp_path, *tables)
    assert status in (2, 5)
    assert words in said


def test_a_table_without_the_id_is_refused(old, tmp_path):
    filled(old)
    pd.DataFrame({"name": ["Ann"]}).to_csv(tmp_path / "t.csv", index=False)
    status, _, said = run(
        "ledger", "migrate", "-c", tmp_path / "shop.toml", "--table", tmp_path / "t.csv"
    )
    assert (status, "'id' is not in t.csv" in said) == (5, True)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE entries SET at = '2020-01-01' WHERE number = 1",
        "UPDATE entries SET body = replace(body, 'bank', 'back') WHERE number = 1",
        "UPDATE entries SET hash = zeroblob(32) WHERE number = 3",
        "DELETE FROM entries WHERE number = 2",
        "DELETE FROM entries WHERE number = 3",
        "UPDATE entries SET key = 'ffffffffffffffff' WHERE number = 1",
        "UPDATE charges SET amount = 1 WHERE id = 1",
        "DELETE FROM charges WHERE id = 1",
        "UPDATE noise SET drawn = zeroblob(length(drawn)) WHERE id = 1",
        "DELETE FROM noise WHERE id = 1",
        "INSERT INTO charges SELECT 99, reservation, key, attribute, amount, persons FROM charges",
    ],
)
def test_a_damaged_ledger_is_refused_and_stays_as_it_is(old, tmp_path, statement):
    filled(old)
    with closing(sqlite3.connect(old.file)) as db, db:
        db.execute(statement)
    before = contents(old.file)
    status, _, said = migrate(tmp_path, ["Ann", "Bob"])
    assert status == 3
    assert "Restore" in said
    assert contents(old.file) == before
    assert not (tmp_path / "ledger" / "runs").exists()


def contents(file):
    """Return all rows of an old ledger's file."""
    with closing(sqlite3.connect(file)) as db:
        tables = ("entries", "charges", "noise")
        return [db.execute(f"SELECT * FROM {t} ORDER BY 1").fetchall() for t in tables]


def test_a_key_line_that_is_gone_is_refused(old, tmp_path):
    filled(old)
    old.rotate()
    filled(old, ids=["Eve"])
    old.key.write_text(old.secrets[0].hex())
    status, _, said = migrate(tmp_path, ["Ann", "Bob", "Eve"])
    assert (status, "Restore that line of the key file" in said) == (3, True)


def test_the_old_file_is_kept_and_nobody_else_reads_either(old, tmp_path):
    filled(old)
    old.file.chmod(0o644)
    old.file.parent.chmod(0o755)
    before = contents(old.file)
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    assert contents(tmp_path / "ledger" / "ledger-0.1.0.sqlite") == before
    folder = tmp_path / "ledger"
    for path in [folder, *folder.rglob("*"), tmp_path / "keys" / "k.witness"]:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    "verb", [("ledger", "show"), ("ledger", "verify"), ("ledger", "export"), ("desensitize",)]
)
def test_every_other_verb_names_the_migration(old, tmp_path, verb):
    filled(old)
    before = contents(old.file)
    people = tmp_path / "people.csv"
    pd.DataFrame({"id": ["Ann"], "age": [50]}).to_csv(people, index=False)
    more = [people, "-o", tmp_path / "out.csv"] if verb == ("desensitize",) else []
    status, _, said = run(*verb, *more, "-c", tmp_path / "shop.toml")
    assert status == 2
    assert "has format 1" in said
    assert "opboost ledger migrate -c FILE --table TABLE" in said
    assert contents(old.file) == before


def test_a_ledger_of_now_is_not_migrated(old, tmp_path):
    filled(old)
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    status, _, said = migrate(tmp_path, ["Ann", "Bob"])
    assert status == 2
    assert (
        said
        == f"The ledger in {tmp_path}/ledger has format 2 already: there is nothing to migrate."
    )


def test_no_ledger_is_not_migrated(tmp_path):
    (tmp_path / "shop.toml").write_text(SHOP)
    status, _, said = migrate(tmp_path, ["Ann"])
    assert (status, "There is no ledger" in said) == (2, True)
    assert not (tmp_path / "ledger").exists()


def test_an_old_copy_that_was_put_back_is_not_migrated_again(old, tmp_path):
    filled(old)
    shutil.copytree(tmp_path / "ledger", tmp_path / "copy")
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    shutil.rmtree(tmp_path / "ledger")
    (tmp_path / "copy").rename(tmp_path / "ledger")
    status, _, said = migrate(tmp_path, ["Ann", "Bob"])
    assert (status, "was migrated before" in said) == (3, True)


def test_a_file_of_the_kept_name_is_not_overwritten(old, tmp_path):
    filled(old)
    (tmp_path / "ledger" / "ledger-0.1.0.sqlite").write_text("mine")
    status, _, said = migrate(tmp_path, ["Ann", "Bob"])
    assert (status, "Move it elsewhere" in said) == (2, True)
    assert (tmp_path / "ledger" / "ledger-0.1.0.sqlite").read_text() == "mine"


def test_a_ledger_that_another_process_reads_is_not_moved(old, tmp_path):
    filled(old)
    with closing(sqlite3.connect(old.file)) as other:
        other.execute("BEGIN")
        other.execute("SELECT count(*) FROM entries").fetchone()
        status, _, said = migrate(tmp_path, ["Ann", "Bob"])
    assert (status, "Another process has the ledger" in said) == (2, True)
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0


def test_receipts_of_the_old_chain_are_honoured(old, tmp_path):
    number, head = filled(old)
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        assert verify(ledger, [(number, head)]) == []
        assert holds(ledger, number, ledger.entry(number).hash)
        lost = verify(ledger, [(number, bytes(32)), (99, head)])
        assert [f.entry for f in lost] == [number, 99]
        assert all("rolled back" in f.words for f in lost)


def test_entries_keep_their_numbers_times_and_words(old, tmp_path):
    filled(old)
    was = contents(old.file)[0]
    assert migrate(tmp_path, ["Ann", "Bob"])[0] == 0
    with opened(tmp_path) as ledger:
        now = list(ledger.entries())
    assert [e.kind for e in now] == [*(row[2] for row in was), "migrate"]
    for entry, (number, at, _, text, _, digest) in zip(now, was, strict=False):
        assert (entry.number, entry.at) == (number, at)
        if entry.kind in ("reserve", "draw"):
            assert entry.text == text
        assert {"number": number, "hash": digest.hex()} in now[-1].body["history"]


KILLED = """
import os, shutil, signal, sys
from opboost.cli import app
import opboost.cli.ledger_migrate, opboost.files.read_tables, opboost.ledger.migration

source, homes = sys.argv[1:]
STEPS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.chmod", "open"}

def migrate(home, at):
    seen = 0
    def hook(event, args):
        nonlocal seen
        if event not in STEPS or not any(str(a).startswith(f"{home}/") for a in args):
            return
        if event == "open" and not args[2] & (os.O_WRONLY | os.O_RDWR):
            return
        seen += 1
        if seen == at:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    app(["ledger", "migrate", "-c", f"{home}/shop.toml", "--table", f"{home}/0.csv"])

for step in range(1, 200):
    home = f"{homes}/{step}"
    shutil.copytree(source, home)
    if (child := os.fork()) == 0:
        migrate(home, step)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status):
        sys.exit(os.WEXITSTATUS(status))
    assert os.WTERMSIG(status) == signal.SIGKILL
"""


def test_a_kill_at_any_step_leaves_the_old_ledger_or_the_new_one(tmp_path):
    """Kill the migration before each of its changes to a file or folder."""
    source, homes = tmp_path / "source", tmp_path / "homes"
    source.mkdir()
    (source / "shop.toml").write_text(SHOP)
    old = OldLedger(source)
    filled(old, ids=["Ann", "ann", "Bob"])
    give_tables(source, ["Ann", "ann", "Bob"])
    before = contents(old.file)
    script = [sys.executable, "-c", KILLED, str(source), str(homes)]
    done = subprocess.run(script, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *killed, whole = sorted(homes.iterdir(), key=lambda home: int(home.name))
    after = Counter()
    for home in killed:
        said = migrate_again(home)
        after[said] += 1
        assert contents(home / "ledger" / "ledger-0.1.0.sqlite") == before, home.name
        with opened(home) as ledger:
            assert verify(ledger) == [], home.name
            assert charged(ledger, ["ann", "bob"]) == {"ann": 9 * 10**9, "bob": 45 * 10**8}
            assert released(ledger, ["ann", "bob"]) == ({"ann": [[7]], "bob": [[7]]}, 0)
        assert not list((home / "ledger").rglob(".*")), home.name
    assert migrate_again(whole) == "the new one"
    assert after["the old one"] > 10
    assert after["the new one"] > 2


def migrate_again(home):
    """Run the migration a second time; return what the first one had left."""
    status, _, said = run("ledger", "migrate", "-c", home / "shop.toml", "--table", home / "0.csv")
    if status == 0:
        return "the old one"
    assert "format 2 already" in said, (home.name, said)
    return "the new one"
