"""The advice of ``opboost describe`` about IDs and gaps, and of the refusal of a gap."""

from __future__ import annotations

import json
import tomllib

import pandas as pd
import pytest

import opboost as op
from opboost.errors import ColumnError
from robustness.command_line import run

RECORD = "[budget]\nrecord = 4.0\n"
CELL = '[mechanism]\nkind = "clamp-map"\nepsilon = 0.64\n'
AGE = "[columns.age]\nbounds = [0, 100]\n"


@pytest.fixture
def table(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"P{i},{1000 + i},{i},{'' if i % 5 else i},{i % 2}" for i in range(60)]
    (tmp_path / "people.csv").write_text("\n".join(["who,user_id,age,pay,town", *rows]) + "\n")
    return tmp_path


def left(table, text):
    """Return the TOML that describe prints for the user to declare."""
    (table / "b.toml").write_text(text)
    _, out, _ = run("describe", "people.csv", "-c", "b.toml")
    printed = out.split("Left to declare in b.toml:")[1].split("\n")
    lines = [li for li in printed if li.startswith(("[", "#")) or " = " in li]
    return tomllib.loads("\n".join(lines))


def test_a_column_that_looks_like_an_id_is_for_align(table):
    _, out, _ = run("describe", "people.csv", "--format", "json")
    steps = {c["name"]: c["next_step"] for c in json.loads(out)}
    assert steps["who"] == '[align] id = "who"'
    assert steps["user_id"] == '[align] id = "user_id"'
    assert steps["age"] == "bounds = [lower, upper]"  # also different in every row, but not an ID
    assert steps["pay"].startswith('missing = "symbol" under a record budget, bounds = ')
    _, out, _ = run("describe", "people.csv")
    assert '[align]\nid = "user_id" ' in out
    assert left(table, RECORD + AGE)["align"] == {"id": "user_id"}


def test_a_file_that_has_an_id_gets_no_second_one(table):
    found = left(table, RECORD + AGE + '[align]\nid = "user_id"\n')
    assert "align" not in found
    assert found["table"] == {"drop": ["who"]}
    assert set(found["columns"]) == {"pay", "town"}


def test_gaps_are_a_symbol_under_a_record_budget_alone(table):
    assert left(table, RECORD + AGE)["columns"]["pay"]["missing"] == "symbol"
    assert "missing" not in left(table, CELL + AGE)["columns"]["pay"]


@pytest.mark.parametrize(
    ("declared", "rows"),
    [
        ({"bounds": {"pay": (0, 60)}}, [1.0, None, 3.0]),
        ({"categories": {"pay": ["a", "b"]}}, ["a", None, "b"]),
        ({"categories": {"pay": list("abcdefgh")}}, ["a", None, "b"]),
        ({"categories": {"pay": op.Ordered(["a", "b"])}}, ["a", None, "b"]),
    ],
)
def test_a_refused_gap_names_the_symbol_in_both_languages(declared, rows):
    rows = rows * 20
    shop = op.Desensitizer(budget=op.Budget.record(4), **declared)
    with pytest.raises(ColumnError) as refused:
        shop.fit_transform(pd.DataFrame({"pay": rows}))
    assert 'Write missing = "symbol" in TOML, missing="symbol" in Python' in str(refused.value)
    given = op.Desensitizer(budget=op.Budget.record(4), missing="symbol", **declared)
    assert len(given.fit_transform(pd.DataFrame({"pay": rows}))) == 60


def test_a_gap_by_level_per_cell_is_flagged_or_filled():
    grid = op.Domain(1, 10)
    by_cell = op.Desensitizer(op.ClampMap(grid, 0.64), bounds={"pay": (0, 60)})
    with pytest.raises(ColumnError, match=r"missing=op\.Flag") as refused:
        by_cell.fit_transform(pd.DataFrame({"pay": [1.0, None, 3.0]}))
    assert "symbol" not in str(refused.value)
