"""The commands of docs/howto/sources.md that need a server, run against one."""

from __future__ import annotations

import shlex
import shutil

import pyarrow.csv
import pyarrow.parquet

from robustness.command_line import run
from tools.manual.blocks import DOCS, commands

PAGE = DOCS / "howto" / "sources.md"


def typed(mark):
    return [shlex.split(line)[1:] for _, line in commands(PAGE) if mark in line]


def test_the_commands_on_postgres_run(postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "files" / "b.toml", tmp_path)
    postgres.execute("DROP TABLE IF EXISTS people")
    postgres.ingest("people", pyarrow.csv.read_csv(DOCS / "files" / "people.csv"))
    found = typed("db.example")
    assert len(found) == 3
    for words in found:
        done = run(*(word.replace("db.example:5432", postgres.address) for word in words))
        assert done[0] == 0, done
    assert pyarrow.parquet.read_table("released.parquet").num_rows == 1000
    assert "5432" not in (tmp_path / "first.toml").read_text().replace(postgres.address, "")


def test_the_commands_on_a_store_run(s3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copy(DOCS / "files" / "b.toml", tmp_path)
    s3.put("people.csv", (DOCS / "files" / "people.csv").read_bytes())
    found = typed("store.example")
    assert len(found) == 2
    for words in found:
        done = run(*(word.replace("https://store.example", s3.endpoint) for word in words))
        assert done[0] == 0, done
    assert (tmp_path / "m.opboost").exists()
