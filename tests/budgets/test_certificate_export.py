"""Exported certificates: an independent checker accepts each of them and rejects every mutant."""

from __future__ import annotations

import ast
import copy
import json
import math
import subprocess
import sys
from fractions import Fraction
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

import opboost as op
from opboost.budgets.certificate_export import exported_certificate
from opboost.cli import app
from opboost.columns.private_column import Flag, PrivateColumn
from opboost.errors import ColumnError
from opboost.grid import NumericMapping
from opboost.mechanisms import NominalMechanism
from opboost.mechanisms.registry import ENTRIES
from tests.support.strategies import mechanisms

CHECKER = Path(__file__).parents[2] / "docs" / "files" / "check_certificate.py"
_spec = spec_from_file_location("check_certificate", CHECKER)
checker = module_from_spec(_spec)
_spec.loader.exec_module(checker)

GRID, WIDE = op.Domain(1, 10), op.Domain(1, 1000)
FLAG = Flag(1.0, 0.3)
KINDS = {
    "Clamp-map": (op.ClampMap(GRID, 0.64), "raise"),
    "Clamp-map, least level": (op.ClampMap(GRID, 1e-9), FLAG),
    "Clamp-map, closed form": (op.ClampMap(op.Domain(1, 2**40), 1e-6), FLAG),
    "Global-map": (op.GlobalMap(GRID, 0.64), "raise"),
    "Global-map, closed form": (op.GlobalMap(WIDE, 0.1), "raise"),
    "Adj-map": (op.AdjMap(GRID, 0.64, theta=3), FLAG),
    "Adj-map, closed form": (op.AdjMap(WIDE, 0.1, theta=10), "raise"),
    "Adj-map, borders, closed form": (
        op.AdjMap(WIDE, eps_prt=0.5, eps_ner=0.02, theta=(40, 90)),
        FLAG,
    ),
    "Local-map": (op.LocalMap(GRID, epsilon=0.64, theta=5), FLAG),
    "Local-map, closed form": (op.LocalMap(WIDE, epsilon=0.1, theta=20), "raise"),
    "randomised response": (op.RandomizedResponse(GRID, 1.1), FLAG),
    "randomised response, closed form": (op.RandomizedResponse(WIDE, 4.0), "raise"),
    "Piecewise": (op.Piecewise(GRID, 1.0), "raise"),
    "Piecewise, closed form": (op.Piecewise(WIDE, 1.0), "raise"),
    "Window-map": (op.WindowMap(GRID, 2.0, near=0.5), "symbol"),
    "Window-map, unclipped": (op.WindowMap(GRID, 1.0, clipped=False), "symbol"),
    "Window-map, closed form": (op.WindowMap(WIDE, 2.0, near=0.05), "symbol"),
    "Window-map of one cell, closed form": (op.WindowMap(WIDE, 7.0, width=0), "symbol"),
    "unary encoding": (op.UnaryEncoding(["a", "b", "c"], 1.0), "raise"),
    "unary encoding, symmetric": (op.UnaryEncoding(range(20), 2.0, "sue"), "raise"),
    "subset selection": (op.SubsetSelection(range(10), 1.0), "raise"),
}
"""Mechanisms with policies for gaps."""

NOT_TIGHT = ("Global-map", "Adj-map", "Local-map", "Piecewise")
"""Mechanisms whose tables lose visibly less than they promise."""


def column(name, kind):
    mechanism, missing = KINDS[kind]
    nominal = isinstance(mechanism, NominalMechanism)
    mapping = None if nominal else NumericMapping(mechanism.domain, (0, 1))
    return PrivateColumn(name, mapping, mechanism, missing=missing)


def certificate(*kinds, sent=None, total=None):
    columns = [column(f"column {i}", kind) for i, kind in enumerate(kinds)]
    record = op.Joint({c.name: c.guarantee() for c in columns}, sent)
    return exported_certificate(columns, record, total)


def accepts(file):
    try:
        checker.check(json.dumps(file))
    except checker.BAD:
        return False
    return True


def changed(file, *path, by):
    """Return a copy of the file with one value replaced."""
    mutant = copy.deepcopy(file)
    place = mutant
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = by(place[path[-1]])
    return mutant


def plus(step):
    return lambda text: hex(int(text, 16) + step)


def times(factor):
    def scaled(text):
        digits = str(int(Fraction(text) * Fraction(factor) * 10**60)).rjust(61, "0")
        return f"{digits[:-60]}.{digits[-60:]}"

    return scaled


def test_the_cases_cover_every_mechanism_that_a_configuration_names():
    tried = {type(mechanism) for mechanism, _ in KINDS.values()}
    assert tried == {entry.built_by for entry in ENTRIES}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_mechanism_exports_and_checks(kind):
    file = certificate(kind)
    total, _ = checker.check(json.dumps(file))
    promised = column("x", kind).guarantee().total
    assert math.isinf(promised) if total is None else math.isclose(float(total), promised)


@given(mechanisms())
@settings(max_examples=40)
def test_every_mechanism_exports_and_checks(mechanism):
    one = PrivateColumn("x", NumericMapping(mechanism.domain, (0, 1)), mechanism)
    assert accepts(exported_certificate([one], one.guarantee().on("x")))


@pytest.mark.parametrize("kind", KINDS)
def test_a_lowered_promise_is_rejected(kind):
    file = certificate(kind)
    promise = file["mechanisms"][0]["promise"]
    tight = not kind.startswith(NOT_TIGHT)
    factor = 1 - Fraction(1, 2**39) if tight else Fraction(2, 5)
    for key in set(promise) - {"form", "runs"}:
        file = changed(file, "mechanisms", 0, "promise", key, by=times(factor))
    assert not accepts(file)


@pytest.mark.parametrize("kind", [k for k, (_, gaps) in KINDS.items() if gaps != "raise"])
def test_gaps_that_reveal_more_are_rejected(kind):
    file = certificate(kind)
    gaps = file["mechanisms"][0]["gaps"]
    if gaps["kind"] == "flag":
        assert not accepts(changed(file, "mechanisms", 0, "gaps", "eps_missing", by=times(0.99)))
        less = plus(-(int(gaps["lie"], 16) >> 30))
        assert not accepts(changed(file, "mechanisms", 0, "gaps", "lie", by=less))
        outside = changed(file, "mechanisms", 0, "gaps", "constant", by=lambda _: 2**50)
        assert not accepts(outside)
    else:
        for name, sign in (("gap", 1), ("cell", -1)):
            step = plus(sign * (int(gaps[name], 16) >> 30))
            assert not accepts(changed(file, "mechanisms", 0, "gaps", name, by=step))
        if "row" in gaps:
            steeper = changed(file, "mechanisms", 0, "gaps", "row", 3, by=lambda n: 1000 * n)
            assert not accepts(steeper)


@given(st.data())
def test_a_table_with_one_integer_changed_by_one_is_rejected(data):
    kinds = [k for k in KINDS if certificate(k)["mechanisms"][0]["channel"]["kind"] == "table"]
    file = certificate(data.draw(st.sampled_from(kinds)))
    rows = file["mechanisms"][0]["channel"]["rows"]
    x = data.draw(st.integers(0, len(rows) - 1))
    y = data.draw(st.integers(0, len(rows[0]) - 1))
    step = 1 if rows[x][y] == "0x0" else data.draw(st.sampled_from((-1, 1)))
    assert not accepts(changed(file, "mechanisms", 0, "channel", "rows", x, y, by=plus(step)))


@given(st.data())
def test_a_table_whose_rows_still_add_up_is_rejected(data):
    """Clamp-map is tight at every output, so moving a little mass from any other cell shows."""
    file = certificate("Clamp-map")
    cells = st.integers(0, 9)
    x, to = data.draw(cells), data.draw(cells)
    taken = data.draw(cells.filter(lambda y: y not in (x, to)))
    rows = ("mechanisms", 0, "channel", "rows", x)
    step = int(file["mechanisms"][0]["channel"]["rows"][x][taken], 16) >> 30
    mutant = changed(file, *rows, taken, by=plus(-step))
    assert not accepts(changed(mutant, *rows, to, by=plus(step)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_closed_form_that_falls_faster_is_rejected(kind):
    file = certificate(kind)
    channel = file["mechanisms"][0]["channel"]
    at = ("mechanisms", 0, "channel")
    for name in {"decay", "inner", "outer"} & set(channel):
        faster = plus(-(int(channel[name][0], 16) >> 10))
        assert not accepts(changed(file, *at, name, 0, by=faster))
        assert not accepts(changed(file, *at, name, by=lambda pair: pair[::-1]))
    if channel["kind"] == "shifts":
        for place in (("floor",), ("sum",), ("weights", 0)):
            assert not accepts(changed(file, *at, *place, by=plus(1)))
        lower = int(channel["floor"], 16) >> 30
        mutant = changed(file, *at, "floor", by=plus(-lower))
        kept = (channel["cells"] - 1) * lower
        assert not accepts(changed(mutant, *at, "sum", by=plus(-kept)))
    if channel["kind"] in ("unary", "subset"):
        more = plus(int(channel["on"], 16) >> 30)
        assert not accepts(changed(file, *at, "on", by=more))


def test_a_steeper_slope_within_the_cap_is_rejected():
    """If near values are protected better, neighbours are checked separately."""
    file = certificate("Window-map, closed form")
    at = ("mechanisms", 0, "channel")
    weights = file["mechanisms"][0]["channel"]["weights"]
    step = int(weights[0], 16) >> 20
    mutant = changed(file, *at, "weights", 0, by=plus(step))
    assert not accepts(changed(mutant, *at, "sum", by=plus(step)))


MUTANTS = {
    "a total too small": (("record", "total"), lambda _: "6.759999999"),
    "a column left out of the record": (("record", "columns"), lambda names: names[1:]),
    "a column left out of its mechanism": (("mechanisms", 0, "columns"), lambda names: names[1:]),
    "a mechanism left out": (("mechanisms",), lambda m: m[1:]),
    "a column that occurs twice": (("mechanisms", 0, "columns"), lambda names: names * 2),
    "more columns per row": (("record", "columns_per_row"), lambda n: n + 1),
    "no number of columns per row": (("record", "columns_per_row"), lambda n: None),
    "a row left out": (("mechanisms", 0, "channel", "rows"), lambda rows: rows[1:]),
    "an output left out": (("mechanisms", 0, "channel", "rows", 3), lambda row: row[1:]),
    "cells without rows": (("mechanisms", 0, "channel", "cells"), lambda n: n + 1),
    "another kind of noise": (("mechanisms", 0, "channel", "kind"), lambda _: "subset"),
    "a kind that nobody knows": (("mechanisms", 0, "channel", "kind"), lambda _: "magic"),
    "a form that nobody knows": (("mechanisms", 0, "promise", "form"), lambda _: "trust"),
    "plain LDP at the level per cell": (("mechanisms", 0, "promise", "form"), lambda _: "ldp"),
    "a promise by distance for categories": (
        ("mechanisms", 1, "promise"),
        lambda _: {"form": "capped", "near": "0.1", "cap": "1"},
    ),
    "scores that are not counted": (
        ("record", "stated"),
        lambda _: [{"what": "scores", "level": "0.5"}],
    ),
    "a level that is no number": (("mechanisms", 0, "promise", "epsilon"), lambda _: "-1"),
    "a level as a float": (("mechanisms", 0, "promise", "epsilon"), lambda _: 0.64),
    "another format": (("format",), lambda _: "opboost certificate 9"),
    "a part left out": (("record",), lambda _: {}),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_every_mutant_of_a_record_is_rejected(mutant):
    file = certificate("Clamp-map", "unary encoding", "subset selection", sent=2)
    assert checker.check(json.dumps(file)) == ("6.76", [])
    path, by = MUTANTS[mutant]
    assert not accepts(changed(file, *path, by=by))


def test_a_column_without_a_total_leaves_the_record_without_one():
    file = certificate("Local-map", "Clamp-map")
    assert file["record"]["total"] is None
    assert accepts(file)
    assert not accepts(changed(file, "record", "total", by=lambda _: "1000"))


def test_runs_that_are_not_those_of_the_noise_are_rejected():
    file = certificate("Local-map")
    assert not accepts(changed(file, "mechanisms", 0, "promise", "runs", by=lambda _: 10))


def test_a_mechanism_without_a_form_is_refused_by_the_columns_name():
    one = PrivateColumn("x", NumericMapping(GRID, (0, 1)), op.DiscreteLaplace(0.5))
    with pytest.raises(ColumnError, match="'x' has the mechanism DiscreteLaplace"):
        exported_certificate([one], one.guarantee().on("x"))


TOML = """
[budget]
record = 4.0
score = 1.0
[columns.age]
bounds = [18, 90]
missing = "symbol"
[columns.pay]
bounds = [0, 9000]
[columns.city]
categories = ["north", "south", "east", "west", "centre"]
"""


def test_the_checker_runs_alone_on_what_the_command_writes(tmp_path):
    config, out = tmp_path / "b.toml", tmp_path / "cert.json"
    config.write_text(TOML)
    ran = CliRunner().invoke(app, ["certify", "-c", str(config), "--export", str(out)])
    assert ran.exit_code == 0, ran.output
    # With -S, installed packages cannot be imported.
    command = [sys.executable, "-I", "-S", str(CHECKER), str(out), str(config)]
    alone = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (alone.returncode, alone.stderr) == (0, "")
    assert alone.stdout == "Every pair is covered. One person's record: 5\n"
    config.write_text(TOML + '[table]\npublic = ["id", "name"]\n')
    ran = CliRunner().invoke(app, ["certify", "-c", str(config), "--export", str(out)])
    assert ran.exit_code == 0, ran.output
    alone = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (alone.returncode, alone.stderr) == (0, "")
    covered, clear = alone.stdout.splitlines()
    assert covered == "Every pair is covered. One person's record: 5"
    assert clear == "Not covered: columns released without noise (id, name)"
    config.write_text(TOML.replace("columns.pay", "columns.wage"))
    with pytest.raises(ValueError, match="the TOML has other columns"):
        checker.check(out.read_text(), config.read_text())


def test_a_folder_that_is_not_there_is_refused_before_the_work(tmp_path):
    config = tmp_path / "b.toml"
    config.write_text(TOML)
    out = tmp_path / "nowhere" / "cert.json"
    ran = CliRunner().invoke(app, ["certify", "-c", str(config), "--export", str(out)])
    assert ran.exit_code != 0
    assert "does not exist" in str(ran.exception)


def test_the_checker_is_short_alone_and_without_floats():
    text = CHECKER.read_text()
    assert len(text.splitlines()) <= 200
    nodes = list(ast.walk(ast.parse(text)))
    modules = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    modules |= {a.name for n in nodes if isinstance(n, ast.Import) for a in n.names}
    assert modules <= sys.stdlib_module_names
    assert not modules & {"math", "cmath", "decimal", "random"}
    assert not [n for n in nodes if isinstance(n, ast.Div)]
    assert not [n for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, float)]
    assert "float" not in {n.id for n in nodes if isinstance(n, ast.Name)}


@given(st.fractions(0, 60, max_denominator=10**6))
def test_the_exponential_is_rounded_down_and_is_near(x):
    from opboost.randomness.exact import exp_bounds

    _, high = exp_bounds(x, checker.BITS)
    found = checker.exp_below(x)
    assert high * (1 - Fraction(1, 2**300)) <= found <= high
