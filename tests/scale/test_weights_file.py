"""Releases of files with the weights of a pilot."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from opboost.cli import app
from opboost.config import load
from opboost.errors import ConfigError, ParameterError

TOML = """
[budget]
record = 4.0
columns_per_row = 1
pilot = 0.5

[align]
id = "id"

[columns.a]
bounds = [0, 1]
[columns.b]
bounds = [0, 1]
[columns.c]
bounds = [0, 1]
"""


@pytest.fixture
def place(tmp_path):
    (tmp_path / "b.toml").write_text(TOML)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((3_000, 3)), columns=list("abc"))
    table.insert(0, "id", range(3_000))
    table.to_parquet(tmp_path / "people.parquet")
    (tmp_path / "weights.json").write_text(json.dumps({"a": 0.125, "b": 1.0, "c": 0.125}))
    return tmp_path


def run(place, *more):
    whole = ["desensitize", place / "people.parquet", "-c", place / "b.toml", "-o"]
    return CliRunner().invoke(app, [str(word) for word in (*whole, *more)])


@pytest.mark.parametrize("engine", [(), ("--engine", "local", "--workers", "1")])
def test_people_choose_columns_by_the_weights_of_a_file(place, engine):
    out = place / ("released" if engine else "released.parquet")
    done = run(place, out, *engine, "--weights", place / "weights.json")
    assert done.exit_code == 0, done.output
    sent = pd.read_parquet(out)[list("abc")].notna()
    assert (sent.sum(axis=1) == 1).all()
    assert sent["b"].mean() == pytest.approx(0.8, abs=0.05)


@pytest.mark.parametrize("engine", [(), ("--engine", "local", "--workers", "1")])
def test_a_pilot_without_weights_is_refused(place, engine):
    done = run(place, place / ("released" if engine else "released.csv"), *engine)
    assert isinstance(done.exception, ParameterError)
    assert "needs labels" in str(done.exception)
    assert not list(place.glob("released*"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, "b": 1}', "no weight for column 'c'"),
        ('{"a": 1, "b": 1, "c": 1, "d": 1}', "'d', which is not a private column"),
        ('{"a": 1, "b": 1, "c": 0.1}', "too far apart"),
        ('{"a": "much"}', "a number per column"),
        ("[1, 2]", "a number per column"),
        ("{", "a number per column"),
    ],
)
def test_bad_weights_get_one_sentence(place, text, words):
    (place / "weights.json").write_text(text)
    done = run(place, place / "released.parquet", "--weights", place / "weights.json")
    assert words in str(done.exception)
    assert "\n" not in str(done.exception)
    assert not (place / "released.parquet").exists()


def test_weights_go_with_a_record_total(place):
    plain = TOML.replace("record = 4.0\ncolumns_per_row = 1\npilot = 0.5", 'split = "even"')
    (place / "b.toml").write_text('[mechanism]\nkind = "clamp-map"\nepsilon = 1.0\n' + plain)
    with pytest.raises(ConfigError, match="states no record total"):
        load(place / "b.toml").weighted({"a": 1}, "weights.json")
