"""With a new key, people and draws stay, under new handles, even after a kill at any step."""

from __future__ import annotations

import secrets

import numpy as np
import pytest

from opboost.columns.row_ids import id_bytes
from opboost.errors import PrivacyError
from opboost.ledger import release_members
from opboost.ledger.drawing import Drawing
from opboost.ledger.forget_person import erase
from opboost.ledger.ledger_summary import summary
from opboost.ledger.lookup import spent
from opboost.ledger.rotation import rotate
from opboost.ledger.verify_ledger import verify
from opboost.storage import atomic_files
from tests.support.kills import killed_at_every_step
from tests.support.ledger import AGE, CITY, opened, release, table, values

PEOPLE = table(300, city=[*"abcdefghij"] * 30)
COLUMNS = (AGE, CITY)


def key_of(home):
    return home / "keys" / "ledger.key"


def rotate_key(home):
    """Add a new line at the top of the key file, as the docs say."""
    before = key_of(home).read_text()
    key_of(home).write_text(f"{secrets.token_hex(32)}\n{before}")


def handles_in(ledger):
    return np.concatenate([np.array(ledger.run_file(run).handles) for run in ledger.runs()])


def files_in(home):
    return {p.name for p in (home / "ledger" / "runs").iterdir()}


def filled(home):
    """Make a ledger with three releases and an erased person; return the first release."""
    with opened(home) as ledger:
        first, _ = release(ledger, PEOPLE[:200], COLUMNS, job="1")
        release(ledger, PEOPLE, COLUMNS, job="2", to="rival")
        release(ledger, PEOPLE[100:150], COLUMNS, job="3")
        with atomic_files.alone(ledger.folder):
            erase(ledger, b"7")
        return first


def spent_on(ledger, people):
    ids = id_bytes([people["id"].tolist()], ["id"], spelling=ledger.ids)
    files = [ledger.run_file(run) for run in ledger.runs()]
    return spent(files, ledger.handles(ledger.people(ids)))


def members_by_person(ledger, people):
    """Return the people whom each release included, if earlier runs hold them."""
    ids = id_bytes([people["id"].tolist()], ["id"], spelling=ledger.ids)
    handles = ledger.handles(ledger.people(ids))
    runs = {run.file: ledger.run_file(run) for run in ledger.runs()}
    found = {}
    for number, told in ledger.members().items():
        here = np.zeros(len(people), dtype=bool)
        for name, bits in release_members.read(ledger.runs_folder, told).items():
            places = runs[name].places(handles)
            here |= (places >= 0) & bits[np.maximum(places, 0)]
        found[number] = here.tolist()
    return found


def test_people_stay_known_under_a_new_key_and_nobody_is_counted_anew(tmp_path):
    first = filled(tmp_path)
    with opened(tmp_path) as ledger:
        before = summary(ledger)["spent"], spent_on(ledger, PEOPLE), handles_in(ledger)
        members_before = members_by_person(ledger, PEOPLE)
        old_stones = ledger.tombstones()
    old_files = files_in(tmp_path)
    rotate_key(tmp_path)
    with opened(tmp_path) as ledger:
        again, made = release(ledger, PEOPLE[:200], COLUMNS, job="4")
        assert made.new_cells == 0
        gone = np.arange(200) == 7
        for old, new in zip(values(first), values(again), strict=True):
            assert [v for v, g in zip(old, gone, strict=True) if not g] == [
                v for v, g in zip(new, gone, strict=True) if not g
            ]
        for columns in again:
            assert all((c.missing == gone).all() for c in columns)
        assert summary(ledger)["spent"] == before[0]
        assert (spent_on(ledger, PEOPLE) == before[1]).all()
        after = members_by_person(ledger, PEOPLE)
        assert {n: after[n] for n in members_before} == members_before
        old, new = ({bytes(h) for h in handles} for handles in (before[2], handles_in(ledger)))
        assert len(old) == len(new) == 299
        assert not old & new
        assert len(ledger.tombstones()) == 1
        assert (ledger.tombstones() != old_stones).any()
        assert [e.kind for e in ledger.entries()].count("rotate") == 1
        assert not verify(ledger)
    assert not files_in(tmp_path) & old_files
    with opened(tmp_path) as ledger:
        release(ledger, PEOPLE[:200], COLUMNS, job="5")
        assert [e.kind for e in ledger.entries()].count("rotate") == 1


def test_a_key_may_be_rotated_again_and_again(tmp_path):
    first = filled(tmp_path)
    for number in range(4, 7):
        rotate_key(tmp_path)
        with opened(tmp_path) as ledger:
            again, made = release(ledger, PEOPLE[:200], COLUMNS, job=str(number))
            assert made.new_cells == 0
            assert not verify(ledger)
    kept = np.arange(200) != 7
    for old, new in zip(values(first), values(again), strict=True):
        assert (np.array(old)[kept] == np.array(new)[kept]).all()


@pytest.mark.parametrize("line", [0, 1, 2], ids=["newest", "middle", "oldest"])
def test_no_key_that_was_used_may_be_removed(tmp_path, line):
    filled(tmp_path)
    for number in (4, 5):
        rotate_key(tmp_path)
        with opened(tmp_path) as ledger:
            release(ledger, PEOPLE, COLUMNS, job=str(number))
    lines = key_of(tmp_path).read_text().split()
    key_of(tmp_path).write_text("\n".join([*lines[:line], *lines[line + 1 :]]) + "\n")
    with pytest.raises(PrivacyError, match=r"which the key file does not hold"):
        opened(tmp_path)


def test_the_oldest_key_stays_the_last_line(tmp_path):
    filled(tmp_path)
    key_of(tmp_path).write_text(key_of(tmp_path).read_text() + secrets.token_hex(32) + "\n")
    with pytest.raises(PrivacyError, match=r"is not the key under which the ledger knows people"):
        opened(tmp_path)


def rotated(home):
    """Do what the next release does before it reserves anything."""
    with opened(home) as ledger, atomic_files.alone(ledger.folder):
        ledger.clear()
        rotate(ledger)


def test_a_kill_anywhere_in_a_rotation_leaves_a_ledger_that_goes_on(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    first = filled(home)
    old = files_in(home)
    rotate_key(home)
    for place in killed_at_every_step(rotated, home, tmp_path / "places"):
        with opened(place) as ledger:
            assert not verify(ledger)
            assert [e.kind for e in ledger.entries()].count("rotate") == 1
            again, made = release(ledger, PEOPLE[:200], COLUMNS, job="4")
            assert made.new_cells == 0
            assert (np.delete(values(again), 7, 1) == np.delete(values(first), 7, 1)).all()
        assert not files_in(place) & old


def test_a_drawing_rotates_before_it_reserves(tmp_path):
    filled(tmp_path)
    rotate_key(tmp_path)
    with opened(tmp_path) as ledger:
        people = [AGE.prepare(PEOPLE[:5])]
        with Drawing(ledger, [AGE], ["age"], job="x", recipient="y") as drawing:
            drawing.draw([b"0", b"1", b"2", b"3", b"4"], people)
        kinds = [e.kind for e in ledger.entries()]
        assert kinds[-3:] == ["rotate", "reserve", "commit"]
        assert ledger.storage_key.name == ledger.key.name
