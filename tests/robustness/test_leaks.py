"""No raw value or ID is where it must not be, and the search finds those that are planted."""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import subprocess
import sys
import zipfile
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from opboost.cli import words_of
from opboost.errors import ColumnError
from robustness.leaks.leak_markers import (
    ODD_TEXT,
    Search,
    forms_of_number,
    forms_of_text,
    http2_bodies,
    short_forms_of_number,
    unpacked,
)
from robustness.leaks.leak_search import run_one
from tests.support.parties import ended

ID, VALUE = "734915206683127", 43.718392650917265
FORMS = [*forms_of_text(ID), *forms_of_number(VALUE)]
SEARCH = Search(("planted", form, pattern) for form, pattern in FORMS)


def zipped(data):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside", data)
    return out.getvalue()


def zstd(data):
    return b"before" + pa.compress(data, "zstd", asbytes=True)


def arrow(data):
    out = io.BytesIO()
    table = pa.table({"data": pa.array([b"x" * 50, data])})
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(out, table.schema, options=options) as stream:
        stream.write_table(table)
    return out.getvalue()


def parquet(data):
    out = io.BytesIO()
    pa.parquet.write_table(pa.table({"data": [data] * 3}), out, compression="zstd")
    return out.getvalue()


def sqlite(data):
    with sqlite3.connect(":memory:") as base:
        base.execute("create table kept (number int, data blob)")
        base.execute("insert into kept values (1, ?)", (data,))
        base.commit()
        return base.serialize()


CONTAINERS = {
    "alone": lambda data: data,
    "in a log": lambda data: b'{"event": "x"}\n' * 9 + b"abc" + data + b"def\n",
    "gzip": gzip.compress,
    "gzip in zip": lambda data: zipped(gzip.compress(data)),
    "npz": lambda data: _npz(data),
    "zstd": zstd,
    "arrow": arrow,
    "parquet": parquet,
    "sqlite": sqlite,
    "zlib in a message": lambda data: arrow(b"columns" + zlib.compress(data, 9) + b"rest"),
}


def _npz(data):
    out = io.BytesIO()
    np.savez_compressed(out, a=np.frombuffer(data, np.uint8))
    return out.getvalue()


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_search_finds_every_form_in_every_container(container):
    assert len(FORMS) > 150
    for form, pattern in FORMS:
        made = CONTAINERS[container](pattern)
        found = {f.form for name, data in unpacked("x", made) for f in SEARCH.found(name, data)}
        assert form in found, form


def test_the_search_finds_a_value_that_http_frames_cut_apart():
    text = ID.encode()
    frames = b"".join(
        len(part).to_bytes(3, "big") + b"\0\0" + stream.to_bytes(4, "big") + part
        for stream, part in ((1, text[:7]), (3, b"other"), (1, text[7:]))
    )
    assert not list(SEARCH.found("wire", frames))
    assert "utf-8" in {f.form for f in SEARCH.found("bodies", http2_bodies(frames))}


def test_the_search_finds_short_forms_and_nothing_in_noise():
    short = Search((("planted", form, p) for form, p in short_forms_of_number(VALUE)), 4)
    assert {f.form for f in short.found("x", b"abc" + np.float32(VALUE).tobytes())} == {"float32"}
    assert not list(SEARCH.found("noise", np.random.default_rng(0).bytes(1_000_000)))


def test_a_planted_leak_is_found_on_the_wire_and_at_the_label_party_and_nothing_else():
    one = run_one("planted", 1)
    assert one.as_meant
    assert {"wire of shop, bodies", "bank"} <= {re.split("[/!]", f.where)[0] for f in one.found}
    assert {f.what for f in one.found} == {"odd value"}


@pytest.mark.parametrize(
    ("name", "plain"),
    [("whole", False), ("text among numbers in a CSV file", True)],
)
def test_nothing_leaks(name, plain):
    one = run_one(name, 2, plain=plain)
    assert one.as_meant
    assert one.searched > 80_000
    assert one.found == ()


def test_a_value_is_shown_at_a_terminal_and_only_its_row_elsewhere():
    error = ColumnError("age", "holds infinite values", detail="first: inf in row 7", row=7)
    assert "inf in row 7" in words_of(error, at_terminal=True)
    assert (
        words_of(error, at_terminal=False) == "Column 'age' holds infinite values (first in row 7)."
    )


def test_a_message_that_goes_to_a_file_names_the_row_and_not_the_value(tmp_path):
    (tmp_path / "in.csv").write_text(f"age\n20\n{ODD_TEXT}\n")
    (tmp_path / "b.toml").write_text("[columns.age]\nbounds = [0, 9]\n[mechanism]\nepsilon = 1.0\n")
    done = ended(["opboost", "desensitize", "in.csv", "-c", "b.toml", "-o", "out.csv"], tmp_path)
    assert done.returncode == 5
    assert "first in row 1" in done.stderr
    assert ODD_TEXT not in done.stdout + done.stderr


def test_a_defect_does_not_print_the_value_that_caused_it():
    script = (
        "import opboost.cli as cli\n"
        f"def broken(): raise ValueError({json.dumps(ODD_TEXT)} + '!')\n"
        "cli.app = broken\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True)
    assert done.returncode == 1
    assert "ValueError, a defect of OpBoost" in done.stderr
    assert ODD_TEXT not in done.stderr


def test_a_defect_is_json_if_json_is_requested():
    script = (
        "import sys\n"
        "import opboost.cli as cli\n"
        f"def broken(**settings): raise ValueError({json.dumps(ODD_TEXT)} + '!')\n"
        "cli.app = broken\n"
        "sys.argv = ['opboost', 'describe', '--format', 'json']\n"
        "cli.main()\n"
    )
    done = subprocess.run([sys.executable, "-"], input=script, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    told = json.loads(done.stderr)
    assert told["error"].startswith("ValueError, a defect of OpBoost")
    assert told["status"] == 1
    assert any("in broken" in frame for frame in told["trace"])
    assert ODD_TEXT not in done.stderr
