"""Inputs that the command line once accepted silently are now refused with a reason."""

from __future__ import annotations

import json

import pytest

from robustness.command_line import run
from tests.support.parties import ended

TOML = """
[budget]
record = 8.0
[columns.age]
bounds = [0, 100]
[booster]
kind = "hist-gbdt"
denoise = false
[table]
drop = ["id"]
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = "".join(f"00{i},{i},{i % 2}\n" for i in range(40))
    (tmp_path / "in.csv").write_text("id,age,y\n" + lines)
    (tmp_path / "b.toml").write_text(TOML)
    return tmp_path


def train(*more, table="in.csv", out="m"):
    return run("train", table, "--label", "y", "-c", "b.toml", "-o", out, *more)


def test_one_class_is_nothing_to_learn(folder):
    lines = "".join(f"{i},{i},1\n" for i in range(40))
    (folder / "one.csv").write_text("id,age,y\n" + lines)
    for task in ("auto", "classify", "regress"):
        status, _, message = train("--task", task, table="one.csv")
        assert status == 5
        assert "Column 'y' is the label and holds only one value" in message
    assert not (folder / "m").exists()


def test_models_are_replaced_on_purpose_and_folders_must_exist(folder):
    assert train()[0] == 0
    before = (folder / "m").read_bytes()
    status, _, message = train()
    assert (status, message) == (
        5,
        "m exists already. Give another name, or --force to replace it.",
    )
    assert (folder / "m").read_bytes() == before
    assert train("--force")[0] == 0
    status, _, message = train(out="nodir/m")
    assert (status, message) == (5, "The folder nodir does not exist. Make it first.")


def test_a_missing_model_is_called_missing(folder):
    status, _, message = run("predict", "nothing.opboost", "in.csv")
    assert (status, message) == (
        5,
        "The model nothing.opboost does not exist. Give the path of a file that `save` or "
        "`opboost train` wrote.",
    )


def test_ids_are_kept_as_they_are_written(folder):
    assert train()[0] == 0
    status, out, message = run("predict", "m", "in.csv", "--keep", "id", "--keep", "age")
    assert status == 0, message
    lines = out.splitlines()
    assert lines[0] == '"id","age","prediction","probability=0","probability=1"'
    assert lines[8].startswith('"007",7')
    status, _, message = run("predict", "m", "in.csv", "--keep", "nothing")
    assert status == 5
    assert "'nothing' should be kept but is not in the table" in message


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["describe", "nothing.csv"], 5),
        (["plan", "-c", "nothing.toml"], 2),
        (["predict", "nothing", "in.csv"], 5),
    ],
)
def test_errors_are_json_where_json_was_asked_for(folder, arguments, status):
    for way in (["--format", "json"], ["--format=json"]):
        done = ended(["opboost", *arguments, *way], folder)
        assert done.returncode == status
        assert done.stdout == ""
        told = json.loads(done.stderr)
        assert told["status"] == status
        assert "nothing" in told["error"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("describe in.csv --nothing --format json", "No such option: --nothing"),
        ("describe --format=json", "Missing argument"),
        ("plan --format json", "Missing option"),
        ("nothing --format json", "No such command"),
        ("demo --draws many --format json", "Invalid value for '--draws'"),
        ("ledger show --format=json -c", "requires an argument"),
    ],
)
def test_usage_errors_are_json_where_json_was_asked_for(folder, line, words):
    done = ended(["opboost", *line.split()], folder)
    assert (done.returncode, done.stdout) == (2, "")
    told = json.loads(done.stderr)
    assert set(told) == {"error", "status"}
    assert told["status"] == 2
    assert words in told["error"]
    assert told["error"].endswith(" --help")


@pytest.mark.parametrize(
    ("line", "status"),
    [("describe --help", 0), ("describe in.csv", 0), ("doctor -c nothing.toml", 2)],
)
def test_asking_for_json_changes_no_exit_status(folder, line, status):
    assert ended(["opboost", *line.split(), "--format", "json"], folder).returncode == status
