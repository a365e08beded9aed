"""A party's file on the explorer's pages: nothing in it is lost, and its ledger is shown."""

from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opboost.config.columns_file import load_declared, parse
from opboost.explorer import pages
from opboost.explorer.changed_file import with_mechanism, with_record
from opboost.explorer.choice import Form, chosen
from opboost.explorer.record_form import RecordForm, planned_record
from opboost.explorer.server import Site
from tests.support.ledger import opened, release, table

PARTY = """\
# The shop's file; Lena keeps it.
[party]
name = "shop"            # as in the certificate
job = "job.toml"
table = "shop.csv"

[align]
id = "customer"

[ledger]
folder = "ledger"
key = "keys/ledger.key"
cap_person = 8.0         # agreed with the works council

{budget}
[columns.basket]
bounds = [0, 500]        # public
{more}
[columns.city]
categories = ["north", "south"]  # no order

[columns.card]
categories = ["none", "gold"]
ordered = true

[table]
drop = ["name"]          # never leaves
"""
BUDGETS = {
    "record": "[budget]\nrecord = 4.0  # signed\nrows = 20_000\n",
    "inline": "budget.record = 4  # signed\n",
    "mechanism": "[mechanism]  # the old way\nkind = 'clamp-map'\nepsilon = 0.5\n",
    "sampled": "[mechanism]\nepsilon = 1\n[budget]\nsplit = 'sampled'\ncolumns_per_row = 1\n",
    "none": "# no level yet\n",
}


def declared(folder, budget, more=""):
    text = PARTY.format(budget=BUDGETS[budget], more=more)
    if budget == "inline":  # top-level keys come before the first table
        text = BUDGETS[budget] + PARTY.format(budget="", more=more)
    path = folder / "shop.toml"
    path.write_text(text)
    return load_declared(path)


def comments(text):
    return re.findall(r"#[^#\n]*", text)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(BUDGETS)),
    st.sampled_from(["", "scale = 'linear'", "radius = 20", "integers = true # whole"]),
    st.sampled_from(["0.5", "2", "4", "7.5"]),
    st.sampled_from(["", "0.1"]),
    st.sampled_from(["", "classify"]),
)
def test_a_record_total_is_written_back_and_nothing_is_dropped(
    tmp_path_factory, budget, more, total, radius, task
):
    folder = tmp_path_factory.mktemp("file")
    if budget in ("mechanism", "sampled") and ("radius" in more or "integers" in more):
        more = ""  # these are valid only with a record total
    file = declared(folder, budget, more)
    fields = {"record": total, "radius": radius, "task": task}
    planned, problems = planned_record(RecordForm.of(fields, file))
    assert not problems
    done = with_record(file, planned)
    assert done.problem == ""
    assert done.plan.record.table() == planned.plan.table()
    before, after = tomllib.loads(file.text), tomllib.loads(done.text)
    for name in ("party", "align", "ledger", "columns", "table"):
        assert after[name] == before[name]
    assert "mechanism" not in after
    for comment in comments(file.text):
        assert comment in done.text
    if budget == "record":
        assert after["budget"]["rows"] == 20_000


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(BUDGETS)),
    st.sampled_from(["clamp-map", "global-map", "adj-map", "randomized-response"]),
    st.sampled_from(["0.25", "1"]),
    st.sampled_from(["500", "750"]),
)
def test_a_mechanism_is_written_back_and_nothing_is_dropped(
    tmp_path_factory, budget, kind, epsilon, upper
):
    file = declared(tmp_path_factory.mktemp("file"), budget)
    fields = {"kind": kind, "epsilon": epsilon, "cells": "8"}
    choice, problems = chosen(Form.of(fields, [("basket", "0", upper)]))
    assert not problems
    done = with_mechanism(file, choice)
    before, after = tomllib.loads(file.text), tomllib.loads(done.text)
    for name in ("party", "align", "ledger", "table"):
        assert after[name] == before[name]
    assert list(after["columns"]) == ["basket", "city", "card"]
    assert after["columns"]["basket"]["bounds"] == [0, float(upper)]
    assert after["mechanism"]["kind"] == kind
    for comment in comments(file.text):
        assert comment in done.text
    if done.plan is not None:  # otherwise the file's cap or its columns do not allow it
        assert done.plan.private[0].mechanism == choice.mechanism or budget == "sampled"
        assert [str(c.name) for c in done.plan.private] == ["basket", "city", "card"]
    else:
        assert done.problem


def test_columns_that_are_not_drawn_count_in_the_total_of_the_page(tmp_path):
    file = declared(tmp_path, "mechanism")
    form = Form.of({"epsilon": "0.5"}, [("basket", "0", "500")])
    part = pages.mechanism_part(form, declared=file)
    total = parse(with_mechanism(file, chosen(form)[0]).text, "shop.toml").guarantee().total
    assert total == pytest.approx(0.5 * 9 + 0.5 + 0.5)
    assert part.summary.startswith(f"One person's record: at most {total:g}.")
    assert "city" in part.html
    assert "card" in part.html
    assert f'id="person-total">{total:g}<' in part.html


def test_a_file_that_would_be_refused_says_so(tmp_path):
    file = declared(tmp_path, "mechanism")
    part = pages.mechanism_part(Form.of({"epsilon": "5"}, [("basket", "0", "500")]), declared=file)
    assert part.summary.startswith("One person's record: not known, because the file would be")
    assert "would refuse this file: shop.toml" in part.html


def test_a_column_that_was_taken_away_is_commented_out(tmp_path):
    file = declared(tmp_path, "mechanism")
    done = with_mechanism(file, chosen(Form.of({}, [("age", "0", "9")]))[0])
    assert "# [columns.basket]\n# bounds = [0, 500]        # public\n" in done.text
    assert list(tomllib.loads(done.text)["columns"]) == ["city", "card", "age"]


def test_a_party_file_opens_with_its_ledger(tmp_path):
    declared(tmp_path, "record")
    site = Site.of(None, None, None, tmp_path / "shop.toml")
    assert not (tmp_path / "ledger").exists()
    page = pages.record_part(site.record_form(""), site.ledger).html
    assert "What is left under the caps" in page
    assert site.ledger.summary()["spent"][-1]["cap"] == 8.0
    assert not (tmp_path / "ledger").exists()  # read, but never created
    with opened(tmp_path, person=8.0) as ledger:
        release(ledger, table())
    site = Site.of(None, None, None, tmp_path / "shop.toml")
    assert site.ledger.summary()["spent"][-1]["most"] > 0
