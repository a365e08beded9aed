"""The usefulness of each column after a pilot and after the job, and the model's card."""

from __future__ import annotations

import json
import math
import shutil

import pytest

from opboost.demo.local_federation import LABEL_PARTY
from robustness.bundle_office import Office
from robustness.command_line import run
from tests.transport.test_pilot_by_bundles import piloted
from tests.transport.test_pilot_over_network import ROWS, federation, told


@pytest.fixture(scope="module")
def job(tmp_path_factory):
    """Finish a job by bundles; return it and the output of ``plan`` at three points."""
    office = Office(federation(tmp_path_factory.mktemp("pilot")))
    bank = office.made.config(LABEL_PARTY)
    bank.write_text(bank.read_text() + '\n[card]\npurpose = "Find who is ill."\n')
    said = [run("plan", "-c", bank, "--format", "json")]
    answer = piloted(office)[2]
    said.append(run("plan", "-c", bank, "--format", "json"))
    export = office.written("shop", "export", answer)[LABEL_PARTY]
    query = office.written(LABEL_PARTY, "split-query", export)["shop"]
    office.run(LABEL_PARTY, "finish", office.written("shop", "answer", query)[LABEL_PARTY])
    said.append(run("plan", "-c", bank, "--format", "json"))
    return office.made, said


def card(made, party, *more):
    model = made.folder / LABEL_PARTY / "model.opboost"
    status, out, said = run("card", model, "-c", made.config(party), "--format", "json", *more)
    return json.loads(out) if status == 0 else (status, said)


def test_before_any_release_plan_says_what_to_do(job):
    status, out, said = job[1][0]
    assert (status, out) == (2, "")
    assert "No party has released rows" in said
    assert "opboost serve -c bank.toml" in said


def test_after_the_pilot_plan_tells_useful_columns_with_error_bars(job):
    made, said = job
    status, out, _ = said[1]
    (party,) = json.loads(out)["parties"]
    lines = {line["name"]: line for line in party["columns"]}
    assert (status, party["party"], party["rows"]) == (0, "shop", "pilot")
    best = party["columns"][0]
    assert best["name"] == "c2"
    assert best["explained"] > 5 * best["error"] > 0
    assert all(abs(v["explained"]) < 4 * v["error"] for n, v in lines.items() if n != "c2")
    halved = [round(-math.log2(lines[f"c{k}"]["weight"])) for k in range(len(lines))]
    assert tuple(halved) == told(made)  # what the party was told
    assert sum(line["rows"] for line in lines.values()) < ROWS / 2
    text = run("plan", "-c", made.config(LABEL_PARTY))[1]
    assert "usefulness of each column" in text


def test_after_the_release_everybody_counts_and_bars_are_shorter(job):
    pilot, release = (json.loads(out)["parties"][0] for _, out, _ in job[1][1:])
    assert release["rows"] == "release"
    assert sum(line["rows"] for line in release["columns"]) == ROWS
    assert release["columns"][0]["error"] < pilot["columns"][0]["error"]


def test_the_card_of_the_label_party_names_parties_and_job(job):
    made, _ = job
    found = card(made, LABEL_PARTY)
    assert (found["total"], found["recipient"]) == (4.0, "bank, the label party")
    assert [(p["name"], p["total"]) for p in found["parties"]] == [("bank", 0), ("shop", 4.0)]
    assert (found["job"]["rows"], found["purpose"]) == (ROWS, "Find who is ill.")
    assert found["ledger"] is None


def test_the_card_of_a_feature_party_holds_the_head_of_its_ledger(job):
    made, _ = job
    found = card(made, "shop")
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    ledger = found["ledger"]
    assert (ledger["entry"], ledger["hash"]) == (entries[-1]["entry"], entries[-1]["hash"])
    assert (ledger["most"], ledger["people"]) == (4.0, ROWS)
    assert entries[-1]["hash"] in [d["sha256"] for d in found["digests"]]
    assert found["job"] is None


def test_another_model_or_another_jobs_file_is_refused(job, tmp_path):
    made, _ = job
    folder = tmp_path / "copy"
    shutil.copytree(made.folder, folder)
    model = folder / LABEL_PARTY / "model.opboost"
    with model.open("ab") as file:
        file.write(b"\0")  # a zip file may have a tail
    status, _, said = run("card", model, "-c", folder / LABEL_PARTY / "bank.toml")
    assert (status, "No finished job of bank.toml made model.opboost" in said) == (2, True), said
    for file in folder.rglob("*.toml"):
        file.write_text(file.read_text().replace('"shop"', '"shed"'))
    shop = folder / "shop" / "shop.toml"
    status, _, said = run("card", made.folder / LABEL_PARTY / "model.opboost", "-c", shop)
    assert (status, "holds columns of shop, and the job of shop.toml has" in said) == (2, True), (
        said
    )
