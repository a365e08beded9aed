"""``opboost init``: a TOML file for its owner to complete, without any value of the table."""

from __future__ import annotations

import re
import tomllib

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from opboost.config import load
from opboost.config.job_file import load_feature, load_label
from robustness.command_line import run

ROWS = 90


def people():
    """Write a table whose values would be recognised anywhere."""
    rng = np.random.default_rng(7)
    return pa.table(
        {
            "customer": [f"CUST-{9000 + i}" for i in range(ROWS)],
            "age": rng.integers(7301, 7377, ROWS),
            "pay rate": rng.uniform(81_000, 82_000, ROWS),
            "city": [("zanzibar", "timbuktu", None)[i % 3] for i in range(ROWS)],
            "note": [f"remark {i // 2 + 88_000}" for i in range(ROWS)],
            "vip": [bool(i % 2) for i in range(ROWS)],
            "label": [i % 2 for i in range(ROWS)],
        }
    )


@pytest.fixture(params=["people.csv", "people.csv.gz", "people.parquet", "folder"])
def table(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = people()
    if request.param == "folder":
        (tmp_path / "people").mkdir()
        pq.write_table(found, tmp_path / "people" / "a.parquet")
        return "people"
    if "csv" in request.param:
        with pa.output_stream(request.param, compression="detect") as out:
            pyarrow.csv.write_csv(found, out)
    else:
        pq.write_table(found, request.param)
    return request.param


def filled(text):
    """Return the file as its owner would complete it."""
    text = text.replace('categories = "TODO"', 'categories = ["zanzibar", "timbuktu"]')
    return text.replace('bounds = "TODO"', "bounds = [0, 90_000]")


def test_the_file_is_refused_column_by_column_and_then_plans(table, tmp_path):
    status, out, _ = run("init", table, "--role", "feature", "--label", "label", "-o", "shop.toml")
    assert status == 0
    text = (tmp_path / "shop.toml").read_text()
    assert next(line for line in text.splitlines() if line.startswith("[")) == "[budget]"
    plain = tomllib.loads(text)
    assert plain["budget"] == {"record": 4.0}
    assert plain["align"] == {"id": "customer"}
    assert plain["table"] == {"drop": ["note"]}
    assert plain["columns"]["city"] == {"categories": "TODO", "missing": "symbol"}
    assert "label" not in plain["columns"]
    open_columns = [name for name, s in plain["columns"].items() if "TODO" in s.values()]
    assert f"Left to fill in: {', '.join(open_columns)}." in out
    for name in open_columns:
        for verb in (["plan"], ["describe", table], ["certify"], ["audit"]):
            status, _, message = run(*verb, "-c", "shop.toml")
            assert status == 2
            assert f"shop.toml: column {name!r} is still a TODO" in message, verb
            assert message.count(". ") == 0, "one sentence"
        key = name if name.isalnum() else f'"{name}"'
        head, rest = text.split(f"[columns.{key}]")
        section, *others = re.split(r"(?=\n\[)", rest, maxsplit=1)
        text = head + f"[columns.{key}]" + filled(section) + "".join(others)
        (tmp_path / "shop.toml").write_text(text)
    status, out, words = run("plan", "-c", "shop.toml")
    assert status == 0, words
    status, out, words = run("describe", table, "-c", "shop.toml")
    assert status == 5  # a feature party would not send the label
    assert "Column 'label' has no bounds" in words
    assert "One person's record: at most 4." in out


def test_no_value_of_the_table_is_in_the_file(table, tmp_path):
    for role in ("feature", "label"):
        assert run("init", table, "--role", role, "-o", f"{role}.toml")[0] == 0
        text = (tmp_path / f"{role}.toml").read_text()
        for column in people().columns:
            for value in column.to_pylist():
                if not isinstance(value, bool | None) and value not in (0, 1):
                    assert str(value) not in text
        for mark in ("73", "81", "82", "880", "CUST", "zan", "tim", "remark"):
            assert mark not in text.replace("8815", ""), mark


def test_the_same_columns_with_other_values_give_the_same_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    texts = []
    for shift in (0, 5000):
        found = people()
        moved = pa.array([v + shift for v in found["age"].to_pylist()])
        table = found.set_column(1, "age", moved)
        pq.write_table(table, "people.parquet")
        assert run("init", "people.parquet", "--role", "feature", "--force", "-o", "s.toml")[0] == 0
        texts.append((tmp_path / "s.toml").read_text())
    assert texts[0] == texts[1]


def test_the_lines_for_a_job_work_when_their_marks_are_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(people(), "people.parquet")
    assert run("init", "people.parquet", "--role", "feature", "-o", "shop.toml")[0] == 0
    assert run("init", "people.parquet", "--role", "label", "--label", "label", "-o", "bank.toml")
    _, job = (tmp_path / "bank.toml").read_text().split("# job.toml, the same for all parties")
    lines = [line.removeprefix("#   ") for line in job.splitlines()[1:]]
    (tmp_path / "job.toml").write_text("\n".join(lines))
    assert "each feature party then learns\n" in job  # its overlap with the label party
    text = filled((tmp_path / "shop.toml").read_text())
    head, job = text.split("# For a job with")
    job = "\n".join(line.removeprefix("# ") for line in job.splitlines()[1:])
    (tmp_path / "shop.toml").write_text(head + job)
    found = load_feature(tmp_path / "shop.toml")
    assert found.table == tmp_path / "people.parquet"
    assert found.plan.record.total == 4.0
    assert (found.job.label_party, found.job.rows) == ("bank", "common")
    bank = load_label(tmp_path / "bank.toml")
    assert (bank.label.column, bank.align.ids()) == ("label", ["customer"])
    assert bank.drop == ("note",)


def test_a_label_partys_file_is_described_and_its_plan_needs_the_job(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(people(), "people.parquet")
    assert run("init", "people.parquet", "--role", "label", "-o", "bank.toml")[0] == 0
    status, _, message = run("describe", "people.parquet", "-c", "bank.toml")
    assert (status, message) == (2, "bank.toml: [label] column is still a TODO: fill it in.")
    assert run("init", "people.parquet", "--role", "label", "--label", "nothing", "--force")[0] == 5
    run(
        "init",
        "people.parquet",
        "--role",
        "label",
        "--label",
        "label",
        "--force",
        "-o",
        "bank.toml",
    )
    status, out, _ = run("describe", "people.parquet", "-c", "bank.toml")
    assert status == 0
    assert "ID, stays here" in out
    assert "TODO" not in out
    status, _, message = run("plan", "-c", "bank.toml")
    assert status == 2
    assert "job.toml cannot be read" in message


def test_an_existing_file_is_replaced_on_purpose_only(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(people(), "people.parquet")
    (tmp_path / "people.toml").write_text("mine")
    status, _, message = run("init", "people.parquet", "--role", "feature")
    assert status == 2
    assert message == "people.toml exists already. Give another name, or --force to replace it."
    assert (tmp_path / "people.toml").read_text() == "mine"
    assert run("init", "people.parquet", "--role", "feature", "--force")[0] == 0
    assert "[budget]" in (tmp_path / "people.toml").read_text()
    status, _, message = run("init", "people.parquet", "--role", "feature", "-o", "no/a.toml")
    assert (status, message) == (2, "The folder no does not exist. Make it first.")


def test_names_that_toml_must_quote_stay_whole(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = ['say "hi"', "tab\there", "größe\u202e", "a.b", "ünï \U0001f600", "x" * 200, "a\\b"]
    pq.write_table(pa.table({name: [1.5, 2.5] for name in names}), "odd.parquet")
    assert run("init", "odd.parquet", "--role", "feature")[0] == 0
    text = (tmp_path / "odd.toml").read_text()
    (tmp_path / "odd.toml").write_text(filled(text))
    assert [c.name for c in load(tmp_path / "odd.toml").private] == names
    assert "\u202e" not in text
    status, out, _ = run("describe", "odd.parquet")
    assert status == 0
    copied = out[out.index("[budget]") :]
    assert list(tomllib.loads(copied)["columns"]) == names


def test_a_category_called_todo_is_no_mark(tmp_path):
    file = tmp_path / "b.toml"
    file.write_text('[budget]\nrecord = 1.0\n[columns.state]\ncategories = ["TODO", "done"]\n')
    assert load(file).private[0].feature_names()[0] == "state=TODO"
