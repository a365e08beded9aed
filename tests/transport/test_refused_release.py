"""A feature party refuses a release, corrects its file, and continues the same job."""

from __future__ import annotations

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY
from opboost.explorer.job_view import RunView
from robustness.command_line import run
from robustness.party_processes import NAMES, ROWS, columns, federation, joined, serving
from tests.support.parties import ended


def refused(made, address, status):
    """Return the message with which ``opboost join`` refuses."""
    command = [*made.command("shop"), "--connect", address]
    found = ended(command)
    assert found.returncode == status, found.stderr
    return " ".join(found.stderr.split())


def shown_by_label_party(made):
    """Return what ``opboost serve --status`` and the job page show about the shop."""
    status, out, _ = run("serve", "-c", made.config(LABEL_PARTY), "--status", "--format", "json")
    assert status == 0
    shop = json.loads(out)["parties"]["shop"]
    (page,) = RunView.of(made.folder / LABEL_PARTY / "state").look().parties
    assert (page.phase, page.refusal) == (shop["phase"], shop["refusal"])
    text = run("serve", "-c", made.config(LABEL_PARTY), "--status")[1]
    assert f"refused: {shop['refusal']}" in text or not shop["refusal"]
    return shop["phase"], shop["refusal"]


def changed(made, pattern, by):
    file = made.config("shop")
    text, count = re.subn(pattern, by, file.read_text())
    assert count
    file.write_text(text)


def entries(made, *kinds):
    plain = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    return [e for e in plain if e["kind"] in kinds]


def finish(made, process, address):
    (done,) = joined(made, address)
    assert done["phase"] == "done"
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 0, said
    op.load(made.folder / LABEL_PARTY / "model.opboost")
    return said


def test_one_serve_outlives_a_cap_that_refuses_and_is_lowered_to(tmp_path):
    made = federation(tmp_path, ("shop",), ledger={"cap_person": 8.0}, epsilon=0.64)
    with serving(made) as (process, address):
        words = refused(made, address, 3)
        assert "one release would spend 11.52 on a person" in words
        assert shown_by_label_party(made) == ("refused", "cap")
        assert not entries(made, "align", "reserve")  # before any alignment
        changed(made, r"epsilon = 0.64", "epsilon = 0.4")
        said = finish(made, process, address)
    assert said.count("shop refuses to release (a cap on what is spent on a person)") == 1
    assert "11.52" not in said
    assert len(entries(made, "align")) == 1
    assert shown_by_label_party(made) == ("answered", "")
    for file in (tmp_path / LABEL_PARTY / "state").rglob("*.jsonl"):
        assert "11.52" not in file.read_text()


def test_a_plan_changes_after_the_alignment_while_nothing_is_released(tmp_path):
    """Some people were charged before, and only the common rows show that the cap refuses them."""
    made = federation(tmp_path, ("shop",), ledger={"cap_attribute": 20.0})
    some = columns(NAMES[3:5]).slice(0, 300)
    pa.parquet.write_table(some, tmp_path / "some.parquet")
    to = ["-o", tmp_path / "out.parquet", "--to", "rival"]
    status, _, words = run("desensitize", tmp_path / "some.parquet", "-c", made.config("shop"), *to)
    assert status == 0, words
    changed(made, r"epsilon = 2.0", "epsilon = 1.5")
    with serving(made) as (process, address):
        assert "300 people would exceed it" in refused(made, address, 3)
        assert shown_by_label_party(made) == ("refused", "cap")
        state = tmp_path / LABEL_PARTY / "state"
        assert list(state.glob("*/parties/shop/aligned"))
        changed(made, r"epsilon = 1.5", "epsilon = 0.2")
        finish(made, process, address)
    assert len(entries(made, "align")) == 1
    assert run("ledger", "verify", "-c", made.config("shop"))[0] == 0


def test_rows_with_gaps_refuse_before_anybody_connects_until_they_are_declared(tmp_path):
    made = federation(tmp_path, ("shop",))
    table = columns(NAMES[3:5])
    values = table.column(0).to_numpy().copy()
    values[7] = np.nan
    pa.parquet.write_table(
        table.set_column(0, NAMES[3], pa.array(values)), tmp_path / "shop" / "table.parquet"
    )
    with serving(made) as (process, address):
        assert f"'{NAMES[3]}' has missing values" in refused(made, address, 5)
        assert shown_by_label_party(made) == ("refused", "rows")
        changed(made, rf'(\[columns."{NAMES[3]}"\])', r"\1" + "\nmissing = 500.0")
        finish(made, process, address)


def test_a_party_that_released_is_held_to_its_plan(tmp_path):
    made = federation(tmp_path, ("shop",))
    with serving(made) as (process, address):
        joined(made, address, "--leave")
        changed(made, r"epsilon = 2.0", "epsilon = 1.0")
        words = refused(made, address, 3)
        assert "and released columns" in words
        assert "opboost serve --again" in words
        changed(made, r"epsilon = 1.0", "epsilon = 2.0")
        finish(made, process, address)


# Before anybody connects


HARMS = {
    "cap of the plan": (
        lambda made: changed(made, r'(key = "\.\./keys.*)', r"\1\ncap_person = 8.0"), 3,
        "no more than 8 may be spent"),
    "undeclared column": (
        lambda made: changed(made, rf'\[columns."{NAMES[4]}"\]\nbounds = .*\n', ""), 5,
        f"Column '{NAMES[4]}' has no bounds"),
    "no ID column": (lambda made: changed(made, r'id = "id"', 'id = "customer"'), 5, "'customer'"),
    "an ID twice": (lambda made: write(made, columns(NAMES[3:5], pa.array(["a"] * ROWS))), 5,
        "more than once"),
    "a gap": (lambda made: write(made, with_gap()), 5, "missing values"),
    "a key that others read": (
        lambda made: (made.folder / "certs/shop/key.pem").chmod(0o644), 2, "chmod 600"),
}  # fmt: skip


def write(made, table):
    pa.parquet.write_table(table, made.folder / "shop" / "table.parquet")


def with_gap():
    table = columns(NAMES[3:5])
    values = table.column(1).to_pylist()
    return table.set_column(1, NAMES[4], pa.array([*values[:-1], None], pa.float64()))


@pytest.mark.parametrize("harm", HARMS)
def test_every_verb_before_a_job_fails_as_the_job_would(tmp_path, harm):
    made = federation(tmp_path, ("shop",))
    do, status, words = HARMS[harm]
    file, table = made.config("shop"), tmp_path / "shop" / "table.parquet"
    verbs = (["certify", "-c", file], ["describe", table, "-c", file])
    for verb in (*verbs, ["doctor", "-c", file]):
        assert run(*verb)[0] == 0
    do(made)
    for verb in verbs:
        found = run(*verb)
        assert (found[0], words in found[2]) == (status, True), (verb, found)
    ended, out, _ = run("doctor", "-c", file, "--format", "json")
    assert ended == status
    assert any(words in f["next_step"] for f in json.loads(out)["findings"])
    ended, _, said = run("join", "-c", file, "--connect", "127.0.0.1:9")
    assert (ended, words in said) == (status, True), said
    assert not list((tmp_path / "shop").glob("state/*/"))


def test_a_plan_of_a_record_total_is_checked_with_the_table(tmp_path):
    made = federation(tmp_path, ("shop",))
    changed(made, r"\[grid\][^[]*\[mechanism\][^[]*", "[budget]\nrecord = 4.0\n\n")
    assert run("plan", "-c", made.config("shop"))[0] == 0
    write(made, with_gap())
    status, out, words = run("plan", "-c", made.config("shop"))
    assert (status, "missing values" in words, "sends about one person" in out) == (5, True, True)
    (tmp_path / "shop" / "table.parquet").unlink()
    status, _, words = run("plan", "-c", made.config("shop"))
    assert (status, "it is not there: table" in " ".join(words.split())) == (0, True)


def test_a_ledger_that_refuses_everybody_refuses_before_anybody_connects(tmp_path):
    made = federation(tmp_path, ("shop",), ledger={"cap_attribute": 20.0})
    table = tmp_path / "shop" / "table.parquet"
    file = made.config("shop")
    to = ["-o", tmp_path / "out.parquet", "--to", "rival"]
    assert run("desensitize", table, "-c", file, *to)[0] == 0
    changed(made, r"epsilon = 2.0", "epsilon = 1.0")
    before = len(entries(made, "open", "reserve", "commit", "abort"))
    for verb in (["certify", "-c", file], ["doctor", "-c", file], ["describe", table, "-c", file],
                 ["join", "-c", file, "--connect", "127.0.0.1:9"]):  # fmt: skip
        status, out, words = run(*verb)
        assert status == 3, (verb, words)
        said = " ".join((out + words).split())
        assert verb[0] == "doctor" or "no more than 20 may be spent" in said
    assert len(entries(made, "open", "reserve", "commit", "abort")) == before
