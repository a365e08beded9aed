"""The ledger's file: complete, chained, closed to others, and shown by its commands."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opboost.columns.row_ids import id_bytes
from opboost.errors import ConfigError, DataError, PrivacyError
from opboost.ledger import Drawing, Ledger, chain_witness, release_members
from opboost.ledger.verify_ledger import verify
from robustness.command_line import run
from tests.support.ledger import AGE, FINER, LEVEL, opened, release, table, values


@pytest.fixture
def home(tmp_path):
    return tmp_path


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

    from opboost.storage import atomic_files

    bodies = [bytes([k]) * 100_000 for k in range(8)]
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(atomic_files.write, home / "file", b) for b in bodies * 5]:
            done.result()
            assert (home / "file").read_bytes() in bodies
    assert [f.name for f in home.iterdir()] == ["file"]


def filled(home):
    with opened(home) as ledger:
        release(ledger, table(40))
        release(ledger, table(50), job="2")
    checkpoint(home)


def checkpoint(home):
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def altered(home, statement, *values):
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        for verb in ("UPDATE", "DELETE"):
            db.execute(f"DROP TRIGGER IF EXISTS entries_{verb}")
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
def test_one_bit_changed_in_an_entry_is_found(whole, tmp_path_factory, data):
    """Flip one bit of one stored field: verify finds it."""
    home = tmp_path_factory.mktemp("bit")
    shutil.copytree(whole, home, dirs_exist_ok=True)
    column = data.draw(st.sampled_from(("at", "kind", "body", "hash")))
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        rows = db.execute(f"SELECT rowid, {column} FROM entries").fetchall()
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
    altered(home, f"UPDATE entries SET {column} = ? WHERE rowid = ?", new, rowid)
    try:
        with opened(home) as ledger:
            assert verify(ledger)
    except (ConfigError, DataError, PrivacyError):
        pass


def harms(path):
    """Yield copies of the file with one bit of each byte changed, and one that is cut short."""
    data = path.read_bytes()
    for place in range(len(data)):
        yield data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
    yield data[:-1]


def test_one_bit_changed_in_a_run_is_found_and_nobody_is_drawn_anew(home):
    filled(home)
    files = sorted((home / "ledger" / "runs").iterdir())
    assert len(files) == 3  # two runs, and who got old draws
    for path in files:
        good = path.read_bytes()
        for bad in harms(path):
            path.write_bytes(bad)
            with opened(home) as ledger:
                assert verify(ledger)[0].words.startswith(str(path))
        with opened(home) as ledger, pytest.raises(DataError, match=r"Restore the ledger's folder"):
            release(ledger, table(50), job="3") if path != files[2] else members_of(ledger)
        path.write_bytes(good)
    files[0].unlink()
    with opened(home) as ledger, pytest.raises(DataError, match=r"000001 is gone"):
        release(ledger, table(50), job="4")


def members_of(ledger):
    (told,) = ledger.members().values()
    return release_members.read(ledger.runs_folder, told)


def test_who_was_sent_again_is_remembered(home):
    filled(home)
    with opened(home) as ledger:
        first, _ = ledger.runs()
        assert {name: bits.all() for name, bits in members_of(ledger).items()} == {first.file: True}


def test_the_ledger_only_grows(home):
    filled(home)
    with sqlite3.connect(home / "ledger" / "ledger.sqlite") as db:
        for statement in ("DELETE FROM entries", "UPDATE entries SET at = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                db.execute(statement)
    db.close()


def test_a_ledger_that_was_rolled_back_is_noticed(home):
    with opened(home) as ledger:
        release(ledger, table(40))
    checkpoint(home)
    shutil.copytree(home / "ledger", home / "old")
    with opened(home) as ledger:
        release(ledger, table(50), job="2")
        head = ledger.head()
    receipts = [(head.number, head.hash)]
    with opened(home) as ledger:
        assert verify(ledger, receipts) == []
    shutil.rmtree(home / "ledger")
    shutil.copytree(home / "old", home / "ledger")
    with pytest.raises(PrivacyError, match=r"has lost entries"):  # by the note next to the key
        opened(home)
    chain_witness.beside(home / "keys" / "ledger.key").unlink()
    with opened(home) as ledger:
        assert verify(ledger) == []  # by itself, it looks complete
        assert "rolled back" in verify(ledger, receipts)[0].words


def test_a_ledger_that_is_gone_is_not_made_anew(home):
    with opened(home) as ledger:
        first, _ = release(ledger, table(40))
    shutil.rmtree(home / "ledger")
    with pytest.raises(PrivacyError, match=r"There is no ledger in .* its key .* --new-ledger"):
        opened(home)
    assert not (home / "ledger").exists()
    (home / "ledger").mkdir()  # like a volume that is not mounted
    with pytest.raises(PrivacyError, match=r"is its volume mounted"):
        opened(home)
    with opened(home, new=True) as ledger:
        assert values(release(ledger, table(40))[0]) != values(first)
    with pytest.raises(ConfigError, match=r"There is a ledger in .* already"):
        opened(home, new=True)


def test_neither_ids_nor_values_stand_in_the_files(home):
    people = table(50).assign(id=[f"person-{i:04d}" for i in range(50)])
    with opened(home) as ledger:
        release(ledger, people)
    stored = b"".join(f.read_bytes() for f in (home / "ledger").rglob("*") if f.is_file())
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
    with pytest.raises(ConfigError, match=r"Restore the key"):
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
            release(ledger, people, (FINER,), job="3")
        assert not verify(ledger)


def test_a_file_that_is_no_ledger_is_refused(home):
    with opened(home):
        pass
    file = home / "ledger" / "ledger.sqlite"
    file.write_bytes(b"not a database" * 100)
    with pytest.raises(DataError, match=r"is not a readable ledger"):
        opened(home)


def test_two_releases_at_once_do_not_noise_a_cell_twice(home):
    people = table()
    with opened(home) as one, opened(home) as other:
        first = Drawing(one, [AGE], ["age"], job="1", recipient="bank")
        with first:
            with pytest.raises(ConfigError, match=r"Another process is already working in"):
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
    assert (code, out) == (0, "intact: 5 entries, 0 receipts\n")
    code, out, _ = run("ledger", "export", "-c", home / "b.toml", "--format", "text")
    assert out.splitlines()[0] == "entry,at,kind,body,key,hash"
    assert run("ledger", "export", "-c", home / "b.toml", "-o", home / "out.json")[0] == 0
    assert run("ledger", "export", "-c", home / "b.toml", "-o", home / "out.json")[0] == 2
    altered(home, "UPDATE entries SET at = '2020-01-01' WHERE number = 1")
    code, _, words = run("ledger", "verify", "-c", home / "b.toml")
    assert code == 3
    assert "entry 1 was changed" in words


def test_two_processes_do_not_write_at_once(home):
    with opened(home) as one, opened(home) as other:
        with one.writing():
            other._chain._db.execute("PRAGMA busy_timeout = 50")
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
    assert "300 cells drawn and charged, 0 already known" in words
    status, _, words = desensitised("people.csv", files[1], "--to", "rival")
    assert "0 cells drawn and charged, 300 already known" in words
    assert files[0].read_bytes() == files[1].read_bytes()
    assert files[0].read_text().splitlines()[0] in ('"age"', "age")
    (home / "b.toml").write_text(config.replace("epsilon = 0.5", "epsilon = 0.6"))
    status, _, words = desensitised("people.csv", files[2])
    assert status == 3, words
    assert "no more than 9 may be spent" in words
    assert not files[2].exists()
    (home / "b.toml").write_text(config)
    assert run("ledger", "verify", "-c", home / "b.toml")[0] == 0
    assert desensitised("people.csv", files[2], "--seed", "1")[0] == 3
    (home / "b.toml").write_text(CONFIG.replace("[ledger]", '[table]\ndrop = ["id"]\n[ledger]'))
    status, _, words = desensitised("people.csv", files[2])
    assert status == 2
    assert "Add [align]" in words


def test_a_journal_that_is_cut_short_is_noticed_at_every_place(home):
    """SQLite silently drops transactions without an end, so the last entry is noted elsewhere."""
    with opened(home) as ledger:
        ledger._chain._db.execute("PRAGMA wal_autocheckpoint = 0")
        release(ledger, table(40))
        shutil.copytree(home, home.parent / "killed")  # as after a kill, before any checkpoint
    journal = home.parent / "killed" / "ledger" / "ledger.sqlite-wal"
    whole = journal.read_bytes()
    for place in (0, 32, len(whole) // 3, len(whole) // 2, len(whole) - 1):
        (journal.parent / "ledger.sqlite-shm").unlink(missing_ok=True)
        journal.write_bytes(whole[:place])
        with pytest.raises(PrivacyError, match=r"has lost entries.*drawn again.*Restore the whole"):
            opened(home.parent / "killed").close()
    journal.write_bytes(whole)
    with opened(home.parent / "killed") as ledger:
        assert not verify(ledger)


def test_a_damaged_length_is_passed_over_place_by_place(home):
    filled(home)
    file = home / "ledger" / "length"
    whole = file.read_bytes()
    last, before = chain_witness.noted(file), chain_witness.noted(file).number - 1
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        damaged_last = place // 256 == last.number % 2
        assert chain_witness.noted(file).number == (before if damaged_last else last.number)
    file.write_bytes(b"")
    assert chain_witness.noted(file) is None
    opened(home).close()


def test_an_empty_key_file_is_named_with_the_next_step(tmp_path):
    Ledger(tmp_path / "ledger", tmp_path / "ledger.key").close()
    (tmp_path / "ledger.key").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"ledger\.key is empty: .* Restore the key\."):
        Ledger(tmp_path / "ledger", tmp_path / "ledger.key")
