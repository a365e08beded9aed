"""Columns of dates and times: bounds, grids, every kind of table, and values that are not dates."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.columns.column_specs import column_from_dict, column_to_dict
from opboost.config import parse
from opboost.grid.dates import date_words, day_number, to_days, to_units
from robustness.command_line import run

FIRST, LAST = date(2020, 1, 1), date(2023, 12, 31)
EAST = timezone(timedelta(hours=9))


def column_of(unit="days", cells=8, bounds=(FIRST, LAST), **more):
    mapping = op.NumericMapping(op.Domain(1, cells), op.Dates(*bounds, unit))
    return op.PrivateColumn("day", mapping, op.ClampMap(op.Domain(1, cells), 1.0), **more)


@given(
    st.sampled_from(["hours", "days", "months"]),
    st.dates(date(1800, 1, 1), date(2200, 1, 1)),
    st.integers(1, 2000),
    st.integers(2, 500),
    st.data(),
)
def test_every_cell_holds_the_dates_of_its_interval(unit, first, length, cells, data):
    last = first + timedelta(days=length)
    steps = np.diff(to_units(np.array([day_number(first), day_number(last)]), unit))[0] + 1
    if steps < cells:
        with pytest.raises(op.ParameterError, match=r"cells|lower < upper"):
            op.NumericMapping(op.Domain(1, cells), op.Dates(first, last, unit))
        return
    mapping = op.NumericMapping(op.Domain(1, cells), op.Dates(first, last, unit))
    some = data.draw(st.lists(st.floats(-30, length + 60), min_size=1, max_size=20))
    raw = day_number(first) + np.array(some)
    for value, cell in zip(raw, mapping.to_grid(raw), strict=True):
        low, high = mapping.interval(int(cell))
        begins = to_days(to_units(np.array([value]), unit), unit)[0]
        if not mapping.outside([value])[0]:
            assert low <= begins < high
        else:
            assert cell == (1 if begins < mapping.bounds[0] else cells)
    edges = [mapping.interval(c)[0] for c in range(1, cells + 1)]
    assert (np.diff(edges) > 0).all()
    # Every edge is the start of an hour, a day or a month.
    assert np.allclose(to_days(to_units(np.array(edges), unit), unit), edges, rtol=0, atol=1e-9)
    counts = np.diff(to_units(np.array([*edges, mapping.interval(cells)[1]]), unit))
    assert counts.max() - counts.min() <= 1, "all cells but one hold the same number of steps"


def test_the_whole_last_day_lies_within_the_bounds():
    mapping = op.NumericMapping(op.Domain(1, 4), (FIRST, LAST))
    evening = day_number(datetime(2023, 12, 31, 23, 59))
    assert not mapping.outside([evening])[0]
    assert mapping.outside([evening + 1])[0]
    assert mapping.scan(np.array([evening, evening + 1 / 1000]))[3] == 1
    assert mapping.to_grid([evening]).tolist() == [4]


SAME = [datetime(2021, 3, 4, 5, 30), None, datetime(2023, 12, 31, 20, 0)]
TEXT = ["2021-03-04T05:30", None, "2023-12-31 20:00:00"]
ZONED = ["2021-03-04T14:30+09:00", "", "2023-12-31T20:00:00Z"]
AWARE = [None if t is None else t.replace(tzinfo=UTC).astimezone(EAST) for t in SAME]
TABLES = {
    "arrow text": pa.table({"day": TEXT}),
    "arrow text with zones": pa.table({"day": ZONED}),
    "arrow times": pa.table({"day": pa.array(SAME, pa.timestamp("ms"))}),
    "arrow times with a zone": pa.table({"day": pa.array(AWARE, pa.timestamp("ns", "Asia/Tokyo"))}),
    "arrow dictionary": pa.table({"day": pa.array(TEXT).dictionary_encode()}),
    "pandas times": pd.DataFrame({"day": pd.to_datetime(SAME)}),
    "pandas times with a zone": pd.DataFrame(
        {"day": pd.to_datetime(SAME).tz_localize("UTC").tz_convert("Asia/Tokyo")}
    ),
    "pandas objects": pd.DataFrame({"day": pd.Series(SAME, dtype=object)}),
    "pandas objects of several kinds": pd.DataFrame(
        {"day": pd.Series([TEXT[0], np.nan, pd.Timestamp(SAME[2])], dtype=object)}
    ),
    "pandas text": pd.DataFrame({"day": TEXT}),
    "pandas categories": pd.DataFrame({"day": pd.Categorical(TEXT)}),
    "polars times": pl.DataFrame({"day": SAME}),
    "polars times with a zone": pl.DataFrame({"day": SAME}).with_columns(
        pl.col("day").dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo")
    ),
    "polars text": pl.DataFrame({"day": TEXT}),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_kind_of_table_gives_the_same_days(kind):
    prepared = column_of(missing=FIRST).prepare(TABLES[kind])
    assert prepared.missing.tolist() == [False, True, False]
    assert prepared.raw.tolist() == [day_number(SAME[0]), day_number(FIRST), day_number(SAME[2])]
    assert prepared.outside == 0
    assert prepared.cells.tolist() == [3, 1, 8]


def test_dates_without_times_and_numpys_are_days_too():
    want = [day_number(FIRST), day_number(LAST)]
    for days in (
        pa.array([FIRST, LAST], pa.date32()),
        pa.array([FIRST, LAST], pa.date64()),
        pa.array(["2020-01-01", "2023-12-31"]),
    ):
        assert column_of().prepare(pa.table({"day": days})).raw.tolist() == want
    assert column_of().prepare(pl.DataFrame({"day": [FIRST, LAST]})).raw.tolist() == want
    numbers = np.array([[FIRST, LAST]], dtype="datetime64[D]").T
    c = op.PrivateColumn(0, column_of().mapping, column_of().mechanism)
    assert c.prepare(numbers).raw.tolist() == want
    assert c.prepare(numbers.astype(object)).raw.tolist() == want
    for pair in [
        (np.datetime64("2020-01-01"), np.datetime64("2023-12-31")),
        (pd.Timestamp(FIRST), pd.Timestamp(LAST)),
        (
            datetime(2020, 1, 1, 9, tzinfo=EAST),
            datetime(2024, 1, 1, 8, tzinfo=EAST).replace(hour=0),
        ),
    ]:
        mapping = op.NumericMapping(op.Domain(1, 8), pair)
        assert mapping.unit == ("days" if mapping.bounds[1] % 1 == 0 else "hours")
        assert mapping.bounds[0] == want[0]


@pytest.mark.parametrize("bad", ["31.12.2023", "2023-02-30", "x", "2023", "12:30", "2023-01-01T99"])
@pytest.mark.parametrize("kind", ["arrow", "pandas", "polars", "object"])
def test_a_text_that_is_no_date_is_refused_by_its_row(bad, kind):
    texts = ["2021-01-01", None, "2021-01-01", bad]
    frame = {
        "arrow": lambda: pa.table({"day": texts}),
        "pandas": lambda: pd.DataFrame({"day": texts}),
        "polars": lambda: pl.DataFrame({"day": texts}),
        "object": lambda: pd.DataFrame({"day": pd.Series([FIRST, *texts[1:]], dtype=object)}),
    }[kind]()
    with pytest.raises(op.ColumnError, match=r"Column 'day' .*must hold dates.*row 13 ") as caught:
        column_of(missing=FIRST).prepare(frame, 10)
    assert bad not in str(caught.value).replace("2024-05-31T18:00+02:00", "").split("(")[1]
    assert caught.value.row == 13


def test_numbers_are_no_dates():
    for values in ([1, 2], [1.5, 2.5], [True, False]):
        for frame in (pa.table({"day": values}), pd.DataFrame({"day": values})):
            with pytest.raises(op.ColumnError, match="must hold dates"):
                column_of().prepare(frame)


def test_a_bound_that_is_no_date_is_refused():
    for pair in [(FIRST, 3), (FIRST, "2023-12-31"), (FIRST,), (FIRST, LAST, LAST)]:
        with pytest.raises(op.ParameterError, match="two dates or two numbers"):
            op.NumericMapping(op.Domain(1, 4), pair)
    with pytest.raises(op.ParameterError, match="NaT is not a date"):
        op.NumericMapping(op.Domain(1, 4), (FIRST, np.datetime64("NaT")))
    with pytest.raises(op.ParameterError, match=r"lower < upper"):
        op.NumericMapping(op.Domain(1, 4), (LAST, FIRST))
    with pytest.raises(op.ParameterError, match=r"span 5 days.*8 cells.*at most 5"):
        op.NumericMapping(op.Domain(1, 8), (date(2020, 1, 1), date(2020, 1, 5)))
    with pytest.raises(op.ParameterError, match="unit must be"):
        op.NumericMapping(op.Domain(1, 8), op.Dates(FIRST, LAST, "weeks"))
    for wrong in ({"scale": "log"}, {"mapping": "paper"}):
        with pytest.raises(op.ParameterError, match="no meaning for dates"):
            op.NumericMapping(op.Domain(1, 8), (FIRST, LAST), **wrong)


def test_breakpoints_may_be_dates():
    cuts = (date(2021, 1, 1), date(2022, 7, 1))
    mapping = op.NumericMapping(op.Domain(1, 3), (FIRST, LAST), cuts)
    days = [day_number(d) for d in (date(2020, 12, 31), cuts[0], cuts[1])]
    assert mapping.to_grid(days).tolist() == [1, 2, 3]


@pytest.mark.parametrize("unit", ["hours", "days", "months"])
def test_a_description_comes_back_as_the_same_column(unit):
    column = column_of(unit, missing=op.Flag(1.0, date(2021, 5, 5)))
    again = column_from_dict(json.loads(json.dumps(column_to_dict(column))))
    assert again == column
    assert again.mapping.unit == unit


def test_numbers_have_the_description_they_always_had():
    mapping = op.NumericMapping(op.Domain(1, 4), (0, 1))
    column = op.PrivateColumn("a", mapping, op.ClampMap(op.Domain(1, 4), 1.0))
    assert "unit" not in column_to_dict(column)["mapping"]


TOML = """
[budget]
record = 4.0
[columns.day]
bounds = [2020-01-01, 2023-12-31]
"""


def test_toml_has_dates_of_its_own():
    (column,) = parse(TOML, "b.toml").private
    assert (column.mapping.unit, column.mapping.domain.size) == ("days", 32)
    assert column.mapping.bounds == (day_number(FIRST), day_number(LAST))
    (column,) = parse(TOML + 'unit = "months"\n', "b.toml").private
    assert column.mapping.domain.size == 32
    short = TOML.replace("2023-12-31", "2020-12-31") + 'unit = "months"\n'
    (column,) = parse(short, "b.toml").private
    assert column.mapping.domain.size == 12, "a cell for each month"
    assert [column.mapping.words(column.mapping.interval(c)[0]) for c in (1, 12)] == [
        "2020-01",
        "2020-12",
    ]
    times = TOML.replace("2020-01-01,", "2020-01-01T06:00:00,")
    assert parse(times, "b.toml").private[0].mapping.unit == "hours"
    by_mechanism = TOML.replace("[budget]\nrecord = 4.0", "[mechanism]\nepsilon = 1.0")
    (column,) = parse(by_mechanism + "missing = 2021-01-01\n", "b.toml").private
    assert column.mapping.domain.size == 10
    assert column.missing == day_number(date(2021, 1, 1))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("2023-12-31]", "12]", "two numbers or two dates, without quotes"),
        ("2023-12-31]", '"2023-12-31"]', "two numbers or two dates, without quotes"),
        ("[2020-01-01, 2023-12-31]", '["2020-01-01", "2023-12-31"]', "without quotes"),
        ("2023-12-31]", "2023-12-31]\nunit = 'weeks'", "'hours', 'days' or 'months'"),
        ("2023-12-31]", "2023-12-31]\nintegers = true", "Leave integers out"),
        ("2023-12-31]", "2019-12-31]", "lower < upper"),
        ("[2020-01-01, 2023-12-31]", "[0, 9]\nunit = 'days'", "unit goes with dates"),
    ],
)
def test_what_is_wrong_with_dates_in_toml_gets_a_sentence(old, new, words):
    with pytest.raises(op.ConfigError, match=words) as caught:
        parse(TOML.replace(old, new), "b.toml")
    assert "day" in str(caught.value)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01") + rng.integers(0, 1460, 400)
    table = pa.table(
        {
            "joined": pa.array(days),
            "seen": pa.array(days.astype("datetime64[us]")),
            "y": (days > np.datetime64("2022-01-01")).astype(int),
        }
    )
    pq.write_table(table, "in.parquet")
    table.to_pandas().to_csv("in.csv", index=False)
    (tmp_path / "b.toml").write_text(
        "[budget]\nrecord = 8.0\n[columns.joined]\nbounds = [2020-01-01, 2023-12-31]\n"
        "[booster]\nseed = 0\ndenoise = false\nparams = { num_boost_round = 10, max_depth = 2 }\n"
    )
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_files_of_dates_go_through_every_verb(folder, kind):
    status, out, _ = run("describe", f"in.{kind}", "--format", "json")
    assert {c["name"]: c["kind"] for c in json.loads(out)}["joined"] == "date"
    status, _, message = run("train", f"in.{kind}", "--label", "y", "-c", "b.toml", "-o", "m")
    assert status == 0, message
    # The label party's own dates are in days as well, so they separate the classes exactly.
    status, out, _ = run("predict", "m", f"in.{kind}", "--format", "json")
    assert status == 0
    assert len(json.loads(out)) == 400
    text = (folder / "b.toml").read_text() + '[table]\ndrop = ["seen", "y"]\n'
    (folder / "c.toml").write_text(text)
    status, _, message = run("desensitize", f"in.{kind}", "-c", "c.toml", "-o", "out.csv")
    assert status == 0, message
    cells = pd.read_csv(folder / "out.csv")["joined"]
    assert cells.between(1, 32).all()


def test_own_dates_are_numbers_of_days(folder):
    frame = pd.read_parquet("in.parquet")
    clf = op.OpBoostClassifier(
        bounds={"joined": (FIRST, LAST)},
        budget=op.Budget.record(8),
        booster="hist-gbdt",
        denoise=False,
    )
    clf.fit(frame[["joined", "seen"]], frame["y"])
    assert clf.score(frame[["joined", "seen"]], frame["y"]) > 0.99
    clf.save("m.opboost")
    again = op.load("m.opboost")
    assert (
        again.predict(frame[["joined", "seen"]]) == clf.predict(frame[["joined", "seen"]])
    ).all()


def test_a_date_in_words():
    assert date_words(day_number(LAST), "days") == "2023-12-31"
    assert op.NumericMapping(op.Domain(1, 4), (0, 1)).words(0.25) == "0.25"


def test_a_party_releases_dates_and_the_model_cuts_days():
    rng = np.random.default_rng(0)
    days = (np.datetime64("2020-01-01") + rng.integers(0, 1461, 600)).astype("datetime64[us]")
    table = pd.DataFrame({"id": range(600), "day": days})
    shop = op.FeatureParty(table, [column_of()], ids="id")
    label = table["day"] > pd.Timestamp("2022-01-01")
    bank = op.LabelParty(None, label, ids=table["id"].tolist(), booster="hist-gbdt", denoise=False)
    model = bank.train([op.MemoryChannel(shop)])
    assert np.mean(model.predict(table[["day"]]) == label) > 0.8
