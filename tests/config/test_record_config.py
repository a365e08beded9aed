"""Record budgets in TOML, and ``opboost plan``."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

import opboost as op
from opboost.cli import app
from opboost.config import parse

TEXT = """
[budget]
record = 4.0
rows = 20000

[columns.age]
bounds = [17, 90]
radius = 10

[columns.hours]
bounds = [0, 23]
integers = true

[columns.city]
categories = ["north", "south"]
"""


def test_a_file_with_a_record_total_needs_no_mechanism():
    plan = parse(TEXT, "b.toml")
    assert plan.record is not None
    assert plan.guarantee().total <= 4
    assert plan.budget.columns_per_row == plan.record.columns_per_row
    assert [line.cells for line in plan.record.lines][1:] == [24, 2]


def test_an_explicit_grid_wins():
    assert parse("[grid]\nupper = 12\n" + TEXT, "b.toml").record.lines[0].cells == 12
    own = TEXT.replace("radius = 10", "cells = 20")
    assert parse(own, "b.toml").record.lines[0].cells == 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TEXT + "[mechanism]\nepsilon = 1.0\n", "[mechanism] and [budget] record are both given"),
        (
            TEXT + "[columns.age.mechanism]\nepsilon = 1.0\n",
            "[columns.age.mechanism] and [budget] record are both given",
        ),
        (TEXT.replace("4.0", "-1"), "got -1.0. Totals of 1 to 8 are usual: write record = 4"),
        (TEXT.replace("4.0", "inf"), "positive, finite number; got inf"),
        (TEXT.replace("rows = 20000", 'split = "even"'), "leave split out"),
        (TEXT.replace("record = 4.0\n", ""), "rows goes with record"),
        (TEXT.replace("radius = 10", "radius = 100"), "'age' needs a radius"),
        (TEXT.replace("radius = 10", 'missing = "flag"'), 'missing = "symbol"'),
        (TEXT.replace("rows = 20000", "columns_per_row = 4"), "columns_per_row is 4, but"),
        (
            TEXT.replace("[budget]\nrecord = 4.0\nrows = 20000", ""),
            "radius goes with a record budget",
        ),
    ],
)
def test_bad_files_get_one_sentence(text, words):
    with pytest.raises(op.ConfigError) as caught:
        parse(text, "b.toml")
    assert words in str(caught.value)
    assert str(caught.value).startswith("b.toml")


def test_opboost_plan_shows_a_table_and_the_total_last(tmp_path):
    file = tmp_path / "b.toml"
    file.write_text(TEXT)
    shown = CliRunner().invoke(app, ["plan", "-c", str(file)], env={"COLUMNS": "80"})
    assert shown.exit_code == 0
    assert "66.7 % of people" in shown.output
    *_, total, scope = shown.output.strip().splitlines()  # a line each, in any terminal
    assert total.startswith("One person's record: at most 4.")
    assert "any other changes the probability" in total
    assert "one row per person and one period" in scope
    plain = CliRunner().invoke(app, ["plan", "-c", str(file), "--format", "json"])
    assert json.loads(plain.output)["total"] == 4.0
    assert json.loads(plain.output)["scope"] == scope


def test_opboost_plan_says_what_is_missing(tmp_path):
    file = tmp_path / "b.toml"
    file.write_text("[columns.age]\nbounds = [17, 90]\n[mechanism]\nepsilon = 0.64\n")
    shown = CliRunner().invoke(app, ["plan", "-c", str(file)])
    assert isinstance(shown.exception, op.ConfigError)
    assert "states no record total. Add [budget] record = 4.0" in str(shown.exception)
