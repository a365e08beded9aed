"""CSV files with other separators, encodings and decimal marks, and damaged CSV files."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import opboost as op
from opboost.config import parse
from opboost.config.csv_format import CsvFormat
from opboost.files.read_tables import pieces
from opboost.files.whole_table import read_table
from robustness.command_line import run

HEADER = ["größe", "stadt", "pay", "y"]


def rows(count=60):
    return [[f"{i + 0.5}", ("köln", "bonn")[i % 2], f"{i}", f"{i % 2}"] for i in range(count)]


def text(separator, decimal):
    lines = [HEADER, *([r[0].replace(".", decimal), *r[1:]] for r in rows())]
    return "".join(separator.join(line) + "\n" for line in lines)


TOML = """
[budget]
record = 8.0
[columns."größe"]
bounds = [0, 100]
[columns.stadt]
categories = ["köln", "bonn"]
[columns.pay]
bounds = [0, 100]
[booster]
kind = "hist-gbdt"
denoise = false
"""
WAYS = [
    (";", "cp1252", ","),
    ("\t", "utf-8", "."),
    ("|", "utf-16", ","),
    (";", "utf-16-le", "."),
    (",", "latin-1", "."),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def in_toml(separator, encoding, decimal):
    return f"""
[data]
separator = {json.dumps(separator)}
encoding = "{encoding}"
decimal = "{decimal}"
"""


@pytest.mark.parametrize("way", WAYS, ids=repr)
def test_a_file_in_another_format_goes_through_every_verb(folder, way):
    separator, encoding, decimal = way
    (folder / "in.csv").write_bytes(text(separator, decimal).encode(encoding))
    flags = ["--separator", separator, "--encoding", encoding, "--decimal", decimal]
    status, out, message = run("describe", "in.csv", *flags, "--format", "json")
    assert status == 0, message
    kinds = {c["name"]: c["kind"] for c in json.loads(out)}
    assert kinds == {"größe": "number", "stadt": "text", "pay": "whole number", "y": "whole number"}
    assert run("init", "in.csv", "--role", "feature", *flags, "-o", "made.toml")[0] == 0
    filled = (
        (folder / "made.toml").read_text().replace('categories = "TODO"', "categories = [1, 2]")
    )
    assert parse(filled.replace('"TODO"', "[0, 1]"), "made.toml").data == CsvFormat(*way)
    (folder / "b.toml").write_text(TOML + in_toml(*way))
    plain = read_table(folder / "in.csv", [], form=CsvFormat(*way))
    assert plain["größe"].to_pylist() == [i + 0.5 for i in range(60)]
    status, _, message = run("train", "in.csv", "--label", "y", "-c", "b.toml", "-o", "m")
    assert status == 0, message
    status, out, message = run("predict", "m", "in.csv", *flags, "--format", "json")
    assert status == 0, message
    assert len(json.loads(out)) == 60
    (folder / "c.toml").write_text(TOML + in_toml(*way) + '\n[table]\ndrop = ["y"]')
    status, _, message = run("desensitize", "in.csv", "-c", "c.toml", "-o", "out.csv")
    assert status == 0, message
    assert len((folder / "out.csv").read_text().splitlines()) == 61


def test_every_row_of_a_transcoded_file_is_read_in_its_place(folder):
    """The file has several blocks, and multi-byte characters at their ends."""
    count = 120_000
    body = "".join(f"ä{i};{i},25\n" for i in range(count))
    (folder / "in.csv").write_bytes(("name;wert\n" + body).encode("utf-16"))
    form = CsvFormat(";", "utf-16", ",")
    found = pa.concat_tables(pieces(folder / "in.csv", {"wert": pa.float64()}, form=form))
    assert (found["wert"].to_numpy() == np.arange(count) + 0.25).all()
    assert found["name"][count - 1].as_py() == f"ä{count - 1}"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"a;b\n1,5;2\n", "looks as if it is separated by ';'. Set separator = ';'"),
        (b"a\tb\n1\t2\n", "looks as if it is separated by 'tab'. Set separator = 'tab'"),
        (b"a|b\n1|2\n", "looks as if it is separated by '|'. Set separator = '|'"),
        ("a,b\n1,2\n".encode("utf-16"), 'looks like UTF-16 text. Set encoding = "utf-16"'),
        ("a,b\n1,2\n".encode("utf-16-le"), 'Set encoding = "utf-16-le"'),
        ("a,b\n1,2\n".encode("utf-16-be"), 'Set encoding = "utf-16-be"'),
        ("größe,b\n1,2\n".encode("latin-1"), "not UTF-8 text. Set encoding ="),
        (b"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00", "is a binary file, not CSV text"),
        (b"\x00" * 50, "is a binary file, not CSV text"),
        (b"PK\x03\x04rest of a sheet", "is an Excel or ZIP file"),
        (b"PAR1rest", "is a Parquet file. Name it .parquet"),
        (b"\x1f\x8b\x08\x00", "is compressed by gzip. Name it .csv.gz"),
        (b"", "is empty"),
        (b"\n\n", "has no header line"),
        (b'id,b\n1,2\n"x\ny",4\n\n5,6,7\n8,9\n', "Line 6 of in.csv has 3 fields, but its header"),
        (b"id,b\n1,2\n3\n", "Line 3 of in.csv has 1 fields, but its header has 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_guessed(folder, content, words):
    (folder / "in.csv").write_bytes(content)
    for verb in (["describe", "in.csv"], ["init", "in.csv", "--role", "feature", "--force"]):
        status, _, message = run(*verb)
        assert status == 5
        assert words in message


def test_a_ragged_line_far_down_is_found(folder):
    body = "".join(f"{i},{i}\n" for i in range(300_000))
    (folder / "in.csv").write_text("a,b\n" + body + "secret,1,2\n")
    status, _, message = run("describe", "in.csv")
    assert status == 5
    assert "Line 300002 of in.csv has 3 fields" in message
    assert "secret" not in message


def test_a_single_column_may_have_a_separator_in_its_name(folder):
    (folder / "in.csv").write_text("a;b\n1\n2\n")
    assert run("describe", "in.csv")[0] == 5
    assert run("describe", "in.csv", "--separator", ",")[0] == 0


def test_decimal_commas_are_guessed_and_points_among_them_refused(folder):
    (folder / "in.csv").write_text('size,b\n"1,5",x\n')
    toml = "[budget]\nrecord = 1.0\n[columns.size]\nbounds = [0, 9]\n[table]\ndrop = ['b']\n"
    (folder / "b.toml").write_text(toml)
    status, _, message = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")
    assert status == 5
    assert "looks like a decimal comma: set decimal = ','" in message
    (folder / "b.toml").write_text(toml + "[data]\ndecimal = ','\n")
    assert run("desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv")[0] == 0
    (folder / "in.csv").write_text('size,b\n"1.500",x\n')
    status, _, message = run("desensitize", "in.csv", "-c", "b.toml", "-o", "out2.csv")
    assert status == 5
    assert "no number has a point" in message


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("separator = ';;'", "one character"),
        ("separator = ''", "one character"),
        ("encoding = 'klingon'", "unknown"),
        ("encoding = 'base64'", "unknown"),
        ("decimal = '·'", "'.' or ','"),
        ("seperator = ';'", "Did you mean 'separator'"),
    ],
)
def test_a_wrong_format_is_refused(line, words):
    with pytest.raises(op.ConfigError, match=words):
        parse(f"{TOML}\n[data]\n{line}\n", "b.toml")


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_without_rows_is_refused(folder, kind):
    (folder / "in.csv").write_bytes(text(",", ".").encode())
    (folder / "b.toml").write_text(TOML)
    assert run("train", "in.csv", "--label", "y", "-c", "b.toml", "-o", "m")[0] == 0
    (folder / "none.csv").write_text(",".join(HEADER) + "\n")
    empty = pa.table({"größe": [0.1], "stadt": ["köln"], "pay": [1], "y": [1]})[:0]
    pq.write_table(empty, "none.parquet")
    (folder / "c.toml").write_text(TOML + '[table]\ndrop = ["y"]\n')
    for verb in (
        ["train", f"none.{kind}", "--label", "y", "-c", "b.toml", "-o", "n"],
        ["predict", "m", f"none.{kind}"],
        ["predict", "m", f"none.{kind}", "--format", "json"],
        ["desensitize", f"none.{kind}", "-c", "c.toml", "-o", "out.csv"],
    ):
        status, out, message = run(*verb)
        assert (status, out) == (5, ""), verb
        assert f"none.{kind} has no rows" in message
    status, out, _ = run("describe", f"none.{kind}", "--format", "json")
    assert [c["name"] for c in json.loads(out)] == HEADER
