"""``opboost desensitize --engine`` makes a folder of parts, once."""

import json

import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from robustness.command_line import run
from tests.support.releases import files

CONFIG = """
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [17, 40]
[table]
drop = ["name", "pay", "city"%s]
"""
LEDGER = '[align]\nid = "id"\n[ledger]\nfolder = "ledger"\nkey = "keys/ledger.key"\n'


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files(tmp_path / "raw", parts=2, rows=60)
    (tmp_path / "b.toml").write_text(CONFIG % "" + LEDGER)
    return tmp_path


def test_a_folder_of_parts_is_made_charged_and_then_known(home):
    arguments = ("desensitize", "raw", "-c", "b.toml", "-o", "out", "--engine", "local")
    status, out, err = run(*arguments, "--workers", "1", "--format", "json")
    assert status == 0
    assert json.loads(out)["rows"] == 120
    assert json.loads(out)["files"] == 2
    assert "Clamped to their bounds (do not share these counts): age" in err
    first = pd.read_parquet("out")
    status, _, err = run(*arguments)
    assert status == 0
    assert "already exists: nothing was drawn" in err
    assert_frame_equal(pd.read_parquet("out"), first)
    assert run("ledger", "verify", "-c", "b.toml")[0] == 0


def test_a_pattern_is_a_table(home):
    (home / "b.toml").write_text(CONFIG % ', "id"')
    status, _, _ = run("desensitize", "raw/*.parquet", "-c", "b.toml", "-o", "out")
    assert status == 0
    assert sorted(p.name for p in (home / "out").iterdir()) == ["0.parquet", "1.parquet"]
    files(home / "more", parts=1)
    status, _, err = run("desensitize", "*/0.parquet", "-c", "b.toml", "-o", "again")
    assert (status, "have the same name" in err) == (5, True)
    status, _, err = run("desensitize", "nobody-*.csv", "-c", "b.toml", "-o", "again")
    assert (status, "file matches" in err) == (5, True)


def test_engines_need_people_and_no_seed(home):
    with_engine = ("desensitize", "raw", "-c", "b.toml", "-o", "out", "--engine", "local")
    status, _, err = run(*with_engine, "--seed", "7")
    assert status == 3
    (home / "b.toml").write_text(CONFIG % ', "id"')
    status, _, err = run(*with_engine)
    assert status == 2
    assert "names no ID column. Add [align]" in err
    status, _, err = run(*with_engine, "--seed", "7")
    assert status == 2


def test_what_an_engine_would_do_otherwise_than_asked_is_refused(home):
    asked = ("desensitize", "raw", "-c", "b.toml", "-o")
    status, _, err = run(*asked, "out", "--workers", "2")
    assert (status, "--workers needs --engine" in err) == (2, True)
    status, _, err = run(*asked, "out.csv", "--engine", "local")
    assert (status, "such as out, or leave --engine out" in err) == (2, True)
    assert not list(home.glob("*out*"))


def test_a_cap_refuses_before_anything_is_drawn(home):
    asked = ("desensitize", "raw", "-c", "b.toml", "--engine", "local", "--workers", "1", "-o")
    (home / "b.toml").write_text(CONFIG % "" + LEDGER + "cap_person = 5.0\n")
    status, _, err = run(*asked, "more")
    assert status == 3
    assert "on all attributes together no more than 5 may be spent" in err
    assert not (home / ".more.release").exists()
    (home / "b.toml").write_text(CONFIG % "" + LEDGER + "cap_person = 12.0\n")
    assert run(*asked, "more")[0] == 0
    assert not (home / ".more.release").exists()
