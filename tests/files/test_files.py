"""Verbs on files, as a user calls them from the command line."""

from __future__ import annotations

import csv
import gzip
import json
import os
import signal
import subprocess
import sys
import time
import tomllib

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import opboost as op
from opboost.config import parse
from opboost.files.desensitize_table import desensitize
from opboost.files.read_tables import pieces
from robustness.command_line import run
from tests.support.checks import assert_samples_follow, counts_of

CONFIG = """
[mechanism]
kind = "clamp-map"
epsilon = 0.64

[columns.age]
bounds = [17, 90]

[columns.size]
categories = ["S", "M", "L"]
ordered = true

[columns.city]
categories = ["north", "south"]

[table]
public = ["note"]
drop = ["id"]
"""
NAMES = ["id", "age", "size", "city", "note"]


def rows(n):
    for i in range(n):
        yield [i, 17 + i % 74, "SML"[i % 3], ("north", "south")[i % 2], f'say "{i}", twice']


def write_csv(path, n=1000, rows=rows):
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(NAMES)
        writer.writerows(rows(n))
    return path


def write_parquet(path, n=1000):
    columns = list(zip(*rows(n), strict=True))
    pq.write_table(pa.table(dict(zip(NAMES, map(list, columns), strict=True))), path)
    return path


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "b.toml").write_text(CONFIG)
    return tmp_path


OUT = ["age", "size", "city=north", "city=south", "note"]


@pytest.mark.parametrize("source", ["in.csv", "in.csv.gz", "in.parquet"])
@pytest.mark.parametrize("target", ["out.csv", "out.csv.gz", "out.parquet"])
def test_every_kind_in_and_out(folder, source, target):
    (write_parquet if "parquet" in source else write_csv)(folder / source)
    status, out, err = run("desensitize", source, "-c", "b.toml", "-o", target)
    assert status == 0, err
    assert out.splitlines()[-1] == "One person's record: at most 7.68."
    if target.endswith(".parquet"):
        table = pq.read_table(target)
        assert table.schema.field("age").type == pa.uint8()
        got = table.to_pydict()
    else:
        opener = gzip.open if target.endswith(".gz") else open
        with opener(target, "rt") as file:
            lines = list(csv.DictReader(file))
        got = {name: [line[name] for line in lines] for name in lines[0]}
    assert list(got) == OUT
    assert len(got["age"]) == 1000
    assert {int(v) for v in got["age"]} <= set(range(1, 11))
    assert {int(v) for v in got["city=north"]} == {0, 1}
    assert got["note"][7] == 'say "7", twice'
    assert sorted(p.name for p in folder.iterdir()) == sorted(["b.toml", source, target])


def test_a_folder_in_a_folder_out(folder):
    (folder / "in").mkdir()
    write_csv(folder / "in" / "a.csv", 100)
    write_parquet(folder / "in" / "b.parquet", 50)
    status, out, err = run("desensitize", "in", "-c", "b.toml", "-o", "out", "--format", "json")
    assert status == 0, err
    assert json.loads(out)["rows"] == 150
    assert sorted(p.name for p in (folder / "out").iterdir()) == ["a.csv", "b.parquet"]


def test_what_comes_out_follows_the_distribution_in_every_piece(folder):
    """The rows of each piece get their own noise."""

    def many(n):
        for i in range(n):
            yield [i, 40, "M", "north", "x" * 60]

    write_csv(folder / "in.csv", 150_000, many)
    status, _, err = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.parquet")
    assert status == 0, err
    ages = pq.read_table("out.parquet")["age"].to_numpy()
    cell = int(op.NumericMapping(op.Domain(1, 10), (17, 90)).to_grid([40])[0])
    assert_samples_follow(
        counts_of(ages, op.Domain(1, 10)), op.ClampMap(op.Domain(1, 10), 0.64).pmf(cell)
    )
    half = len(ages) // 2
    assert (ages[:half] != ages[half : 2 * half]).mean() > 0.5


def test_a_seed_repeats_and_says_so(folder):
    write_csv(folder / "in.csv")
    for name in ("one.csv", "two.csv"):
        status, out, _ = run("desensitize", "in.csv", "-c", "b.toml", "-o", name, "--seed", "7")
        assert status == 0
        assert out.splitlines() == [
            "none: seeded",
            "One person's record: nothing is promised.",
        ]
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()
    run("desensitize", "in.csv", "-c", "b.toml", "-o", "three.csv")
    assert (folder / "one.csv").read_bytes() != (folder / "three.csv").read_bytes()


def test_unsampled_cells_are_empty_in_files(folder):
    config = CONFIG + '[budget]\nsplit = "sampled"\ncolumns_per_row = 1\n'
    (folder / "b.toml").write_text(config)
    write_csv(folder / "in.csv")
    assert run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.parquet")[0] == 0
    table = pq.read_table("out.parquet")
    given = [table[name].is_valid().to_numpy() for name in ("age", "size", "city=north")]
    assert (np.sum(given, axis=0) == 1).all()
    assert table.schema.field("age").type == pa.uint8()


def bad_csv(text):
    def write(folder):
        (folder / "in.csv").write_text(text)
        return "in.csv"

    return write


HEAD = "id,age,size,city,note\n"
BAD = [
    (
        bad_csv(HEAD + "1,old,S,north,x\n"),
        5,
        "'age' of in.csv must hold numbers (row 0 holds 'old')",
    ),
    (bad_csv(HEAD + "1,20,S,north,x\n2,inf,S,north,x\n"), 5, "'age' holds infinite values"),
    (bad_csv(HEAD + "1,,S,north,x\n"), 5, "'age' has missing values"),
    (bad_csv(HEAD + "1,20,XL,north,x\n"), 5, "first: 'XL' in row 0"),
    (bad_csv(HEAD + "1,20,S,west,x\n"), 5, "'city' does not fit"),
    (bad_csv(HEAD), 5, "in.csv has no rows"),
    (bad_csv(""), 5, "in.csv is empty"),
    (bad_csv("id,age,age,city,note\n1,2,3,north,x\n"), 5, "'age' occurs twice in in.csv"),
    (bad_csv("id,age,size,city\n1,20,S,north\n"), 5, "'note' of b.toml is not in the table"),
    (bad_csv("id,age,size,city,note,pay\n1,20,S,north,x,5\n"), 5, "Add [columns.pay] bounds"),
    (bad_csv(HEAD + "1,20,S\n"), 5, "Line 2 of in.csv has 3 fields, but its header has 5"),
    (lambda folder: "none.csv", 5, "none.csv does not exist"),
    (lambda folder: "b.toml", 5, "neither CSV nor Parquet"),
]


@pytest.mark.parametrize(("write", "status", "words"), BAD, ids=[w[:40] for _, _, w in BAD])
def test_bad_tables_leave_a_sentence_and_nothing_else(folder, write, status, words):
    source = write(folder)
    before = sorted(p.name for p in folder.iterdir())
    got, _, message = run("desensitize", source, "-c", "b.toml", "-o", "out.csv")
    assert got == status
    assert words in message
    assert sorted(p.name for p in folder.iterdir()) == before


def test_a_damaged_parquet_file_is_refused(folder):
    path = write_parquet(folder / "in.parquet", 20_000)
    path.write_bytes(path.read_bytes()[:-200])
    status, _, message = run("desensitize", "in.parquet", "-c", "b.toml", "-o", "out.csv")
    assert status == 5
    assert "not a readable Parquet file" in message


def test_an_output_is_never_overwritten(folder):
    write_csv(folder / "in.csv")
    (folder / "out.csv").write_text("precious")
    status, _, message = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")
    assert status == 5
    assert "exists already" in message
    assert (folder / "out.csv").read_text() == "precious"
    status, _, message = run("desensitize", "in.csv", "-c", "b.toml", "-o", "no/out.csv")
    assert (status, "does not exist" in message) == (5, True)


def test_a_late_bad_row_leaves_nothing_half_written(folder):
    def late(n):
        yield from rows(n - 1)
        yield [n, "old", "S", "north", "x"]

    write_csv(folder / "in.csv", 300_000, late)
    status, _, message = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")
    assert status == 5
    assert "'age' of in.csv must hold numbers" in message
    assert sorted(p.name for p in folder.iterdir()) == ["b.toml", "in.csv"]


def test_a_killed_run_leaves_no_output_and_the_next_one_works(folder):
    write_csv(folder / "in.csv", 600_000)
    arguments = [sys.executable, "-m", "opboost", "desensitize", "in.csv", "-c", "b.toml"]
    process = subprocess.Popen([*arguments, "-o", "out.csv"], cwd=folder, stderr=subprocess.PIPE)
    partial = folder / ".out.csv.part"
    deadline = time.time() + 60
    while not (partial.exists() and partial.stat().st_size) and time.time() < deadline:
        time.sleep(0.005)
        assert process.poll() is None, "it finished before it could be killed"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stderr.close()
    assert not (folder / "out.csv").exists()
    assert partial.exists()
    assert run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")[0] == 0
    assert not partial.exists()


def test_describe_names_what_is_missing_and_shows_no_extremes(folder):
    def some(n):
        for i, row in enumerate(rows(n)):
            yield [row[0] + 4242, *row[1:]] if i % 10 else [row[0] + 4242, "", *row[2:]]

    write_csv(folder / "in.csv", 100, some)
    status, out, _ = run("describe", "in.csv", "--format", "json")
    assert status == 0
    looks = {c["name"]: c for c in json.loads(out)}
    assert looks["age"] == {
        "name": "age",
        "kind": "whole number",
        "rows": 100,
        "missing": 10,
        "distinct": None,
        "declared": "",
        "tells_apart": False,
        "next_step": 'missing = "symbol" under a record budget, bounds = [lower, upper]',
    }
    assert looks["city"]["next_step"] == "categories = [...]"
    assert looks["note"]["kind"] == "text"
    status, text, words = run("describe", "in.csv", "-c", "b.toml")
    assert (status, "Column 'age' has missing values" in words) == (5, True)
    assert "0.64 per cell" in text
    assert text.splitlines()[-1] == "One person's record: at most 7.68."
    assert "4242" not in text + out
    write_parquet(folder / "in.parquet")
    assert run("describe", "in.parquet")[0] == 0


def test_describe_begins_with_one_total_and_shows_what_a_plan_gives_each_column(folder):
    lines = (f"{i % 9},{i},{'yes' if i % 2 else 'no'}" for i in range(100))
    (folder / "in.csv").write_text("visits,pay,card\n" + "\n".join(lines) + "\n")
    status, out, _ = run("describe", "in.csv", "--format", "json")
    assert status == 0
    steps = {c["name"]: c["next_step"] for c in json.loads(out)}
    assert steps["visits"] == "bounds = [lower, upper], integers = true"
    assert steps["pay"] == "bounds = [lower, upper]"
    status, text, _ = run("describe", "in.csv")
    assert tomllib.loads(text[text.index("[budget]") :])["budget"] == {"record": 4.0}
    (folder / "b.toml").write_text(
        "[budget]\nrecord = 4.0\n[columns.visits]\nbounds = [0, 9]\nintegers = true\n"
        '[columns.pay]\nbounds = [0, 99]\n[columns.card]\ncategories = ["yes", "no"]\n'
    )
    status, out, _ = run("describe", "in.csv", "-c", "b.toml", "--format", "json")
    declared = {c["name"]: c["declared"] for c in json.loads(out)}
    assert declared["visits"] == "Window-map, 10 cells, 2 if sent, for 66.7 % of people"
    status, text, _ = run("describe", "in.csv", "-c", "b.toml")
    assert text.splitlines()[-1] == "One person's record: at most 4."


def test_describe_shows_long_names_whole_and_toml_to_copy(folder):
    long = "how_often_a_customer_came_back_within_thirty_days_of_the_first_visit_to_any_shop"
    (folder / "in.csv").write_text(f"age,{long},gap\n1,2,\n3,4,5\n")
    (folder / "b.toml").write_text("[budget]\nrecord = 4.0\n[columns.age]\nbounds = [0, 9]\n")
    for more in ([], ["-c", "b.toml"]):
        status, out, _ = run("describe", "in.csv", *more)
        assert status == (5 if more else 0)  # columns that the user has to declare
        assert "…" not in out
        assert f"[columns.{long}]" in out
    copied = out[out.index("[columns") : out.index("For each person")]
    assert tomllib.loads(copied)["columns"]["gap"] == {
        "bounds": "TODO",
        "integers": True,
        "missing": "symbol",
    }


def test_certify_prints_and_draws(folder):
    status, out, _ = run("certify", "-c", "b.toml", "--png", "c.png", "--format", "json")
    assert status == 0
    report = json.loads(out)
    assert report["covered"] is True
    assert report["total"] == pytest.approx(9 * 0.64 + 2 * 0.64 + 0.64)
    age = report["columns"][0]
    assert age["pairs"] == 45
    assert age["lines"][0]["loss"] == pytest.approx(0.64)
    assert age["lines"][0]["gamma"] == pytest.approx(0.5067, abs=1e-4)
    assert (folder / "c.png").read_bytes().startswith(b"\x89PNG")
    status, text, _ = run("certify", "-c", "b.toml")
    assert text.splitlines()[-1] == "One person's record: at most 7.68."


@pytest.mark.parametrize(
    "mechanism",
    [
        'kind = "local-map"\nepsilon = 0.5\ntheta = 3',
        'kind = "adj-map"\nepsilon = 0.5\ntheta = 3',
        'kind = "global-map"\nepsilon = 0.5\n[grid]\nlower = 0\nupper = 1099511627775',
    ],
)
def test_certify_serves_every_kind(folder, mechanism):
    text = f"[mechanism]\n{mechanism}\n[columns.age]\nbounds = [0, 1]\nmissing = 'flag'\n"
    (folder / "b.toml").write_text(text + "eps_missing = 1.0\nmissing_constant = 0.5\n")
    status, out, err = run("certify", "-c", "b.toml", "--png", "c.png")
    assert status == 0, err
    assert "yes" in out or "inside runs" in out
    assert "NO" not in out


def test_certify_exits_with_3_if_the_promise_does_not_cover(folder, monkeypatch):
    """The mechanism is broken: it promises half of what it spends."""
    monkeypatch.setattr(op.ClampMap, "guarantee", lambda m: op.DLDP(m.epsilon / 2, m.domain))
    status, out, err = run("certify", "-c", "b.toml")
    assert status == 3
    assert "NO" in out
    assert "does not cover: age, size" in err


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peaks are read from /proc")
def test_memory_stays_bounded(folder):
    """A run on 40 MB needs hardly more memory at its peak than a run on 1 MB."""

    def peak(name):
        script = (
            "import re, pathlib\n"
            "from opboost.cli import app\n"
            "try: app()\n"
            "except SystemExit: pass\n"
            "status = pathlib.Path('/proc/self/status').read_text()\n"
            "print(int(re.search(r'VmHWM:\\s+(\\d+)', status)[1]) // 1024)"
        )
        arguments = ["desensitize", f"{name}.csv", "-c", "b.toml", "-o", f"{name}-out.csv"]
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True,
            text=True,
            cwd=folder,
            check=True,
            timeout=300,
        )
        return int(done.stdout.split()[-1])

    write_csv(folder / "small.csv", 20_000)
    write_csv(folder / "large.csv", 1_000_000)
    small, large = peak("small"), peak("large")
    assert large < 500
    assert large - small < 200


def test_desensitize_from_python(folder):
    write_csv(folder / "in.csv")
    told = []
    summary = desensitize(
        folder / "in.csv", parse(CONFIG, "b.toml"), folder / "out.csv", progress=told.append
    )
    assert summary.rows == 1000
    assert told[-1] == (folder / "in.csv").stat().st_size


def test_bench_refuses_what_it_does_not_know():
    status, _, message = run("bench", "everything")
    assert status == 2
    assert "There are: sampling, train" in message


def test_words_that_mean_nothing_are_gaps_in_numbers_and_words_elsewhere(folder):
    (folder / "b.toml").write_text(
        "[mechanism]\nepsilon = 1.0\n[columns.age]\nbounds = [0, 99]\nmissing = 50\n"
        "[columns.region]\ncategories = ['NA', 'EU']\n[table]\npublic = ['note']\n"
    )
    (folder / "in.csv").write_text("age,region,note\n20,NA,null\nNA,EU,NA\nnull,EU,x\n")
    status, _, err = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")
    assert status == 0, err
    with open("out.csv") as file:
        assert [line["note"] for line in csv.DictReader(file)] == ["null", "NA", "x"]


def test_rows_are_counted_from_the_start_of_the_file(folder):
    def gap(n):
        for i, row in enumerate(rows(n)):
            yield [row[0], "" if i == 90_000 else row[1], *row[2:]]

    write_csv(folder / "in.csv", 100_000, gap)
    _, _, message = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")
    assert "first: row 90000" in message


def test_line_breaks_inside_quotes_are_text(folder):
    def broken(n):
        for row in rows(n):
            yield [*row[:4], "two\nlines " * 20]

    write_csv(folder / "in.csv", 15_000, broken)
    status, _, err = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.parquet")
    assert status == 0, err
    assert pq.read_table("out.parquet")["note"][14_999].as_py() == "two\nlines " * 20


def test_many_categories_come_in_short_pieces(folder):
    from opboost.files.read_tables import pieces

    pq.write_table(pa.table({"c": ["x"] * 300_000}), folder / "in.parquet")
    assert max(p.num_rows for p in pieces(folder / "in.parquet", width=200)) <= 10_000


def test_dictionaries_with_unsigned_codes_are_read(folder):
    codes = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0], pa.uint8()), ["S", "M"])
    table = pa.table({"age": [20, 30, 40, 50], "size": codes})
    order = op.OrdinalMapping(op.Domain(1, 3), op.Ordered(["S", "M", "L"]))
    column = op.PrivateColumn("size", order, op.ClampMap(op.Domain(1, 3), 1.0), missing="L")
    assert column.prepare(table).cells.tolist() == [1, 2, 3, 1]
    frame = pl.DataFrame(table.to_pydict()).with_columns(pl.col("size").cast(pl.Categorical))
    assert column.prepare(frame).cells.tolist() == [1, 2, 3, 1]


def test_brackets_in_names_are_shown_as_they_stand(folder):
    (folder / "b.toml").write_text(
        '[mechanism]\nepsilon = 1.0\n[columns."[/a]"]\nbounds = [0, 9]\n'
    )
    (folder / "in.csv").write_text("[/a],[red]x\n1,2\n")
    status, out, _ = run("certify", "-c", "b.toml")
    assert status == 0
    assert "[/a]" in out
    status, out, _ = run("describe", "in.csv")
    assert "[red]x" in out
    assert '[columns."[/a]"]' in out


def test_the_largest_loss_across_a_border_is_found_on_large_grids(folder):
    m = op.AdjMap(op.Domain(1, 4096), eps_prt=0.5, eps_ner=0.05, theta=16)
    lines = {line.distance: line.loss for line in m.certificate().lines}
    assert lines[1] == m.exact_epsilon() == m.loss(16, 17)
    assert lines[8] >= max(m.loss(x, x + 8) for x in range(1, 200))


def test_a_run_that_is_asked_to_end_cleans_up(folder):
    write_csv(folder / "in.csv", 600_000)
    arguments = [sys.executable, "-m", "opboost", "desensitize", "in.csv", "-c", "b.toml"]
    process = subprocess.Popen([*arguments, "-o", "out.csv"], cwd=folder, stderr=subprocess.DEVNULL)
    partial = folder / ".out.csv.part"
    deadline = time.time() + 60
    while not (partial.exists() and partial.stat().st_size) and time.time() < deadline:
        time.sleep(0.005)
    process.terminate()
    assert process.wait(timeout=60) == 143
    assert sorted(p.name for p in folder.iterdir()) == ["b.toml", "in.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["desensitize", "in.csv", "-c", "b.toml", "-o", "o.csv", "--seed", "-1"],
            "0 or more; got -1",
        ),
        (["certify", "-c", "b.toml", "--png", "x.foo"], ".png, .svg or .pdf"),
        (["describe", "semicolon.csv"], "separated by ';'"),
        (["describe", "fake.csv.gz"], "fake.csv.gz is not a readable CSV table"),
        (["certify", "-c", "latin.toml"], "not UTF-8"),
        (["desensitize", "lists.parquet", "-c", "lists.toml", "-o", "o.csv"], "written as csv"),
    ],
)
def test_more_bad_input_gets_a_sentence(folder, arguments, words):
    write_csv(folder / "in.csv", 10)
    (folder / "semicolon.csv").write_text("age;x\n1;2\n")
    (folder / "fake.csv.gz").write_text("age,x\n1,2\n")
    (folder / "latin.toml").write_bytes(b"# \xe9\xff")
    pq.write_table(pa.table({"age": [20, 30], "l": [[1], [2]]}), folder / "lists.parquet")
    (folder / "lists.toml").write_text(
        "[mechanism]\nepsilon = 1.0\n[columns.age]\nbounds = [0, 99]\n[table]\npublic = ['l']\n"
    )
    status, _, message = run(*arguments)
    assert status in (2, 5)
    assert words in message


def test_the_version_is_shown():
    assert run("--version")[1].strip() == f"opboost {op.__version__}"


def test_a_ragged_row_is_named_by_its_line_and_shows_no_value(tmp_path):
    file = tmp_path / "in.csv"
    file.write_text("id,age\nperson-7,20,S\n")
    with pytest.raises(op.DataError, match=r"Line 2 of in\.csv has 3 fields.*header has 2"):
        list(pieces(file, {}))
