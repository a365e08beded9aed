"""``rows = "mine"`` between real processes and by bundles, and predictions without a party."""

from __future__ import annotations

import csv
import json
import re
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_federation
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import Party
from tests.support.parties import ran

PEOPLE = np.arange(400)
KNOWN = {"shop": PEOPLE[::2], "telco": PEOPLE[100:300]}
BOOSTER = {"n_estimators": 4, "max_depth": 2, "nthread": 1}


def table(people, shift):
    values = (people * 7 + shift) % 100
    return pa.table({f"x{shift}": values, "id": [f"person-{i:04d}" for i in people]})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Make a federation that has trained a model over the network."""
    folder = tmp_path_factory.mktemp("mine")
    label = pa.array((PEOPLE * 7 % 100 > 50).astype(int))
    found = write_federation(
        folder,
        table(PEOPLE, 1).append_column("y", label),
        "y",
        {name: table(people, k + 2) for k, (name, people) in enumerate(KNOWN.items())},
        {f"x{k}": (0, 100) for k in range(5)},
        epsilon=2.0,
        booster=BOOSTER,
    )
    for name in (LABEL_PARTY, *KNOWN):
        job = folder / name / "job.toml"
        job.write_text(f'{job.read_text()}\n[align]\nrows = "mine"\n')
    run_federation(found, timeout=240)
    return found


def parts_of(model):
    with zipfile.ZipFile(model) as parts:
        return {name: parts.read(name) for name in parts.namelist()}


def test_the_model_learns_from_all_rows_and_is_the_same_by_bundles(made):
    label = made.folder / LABEL_PARTY
    (manifest,) = (label / "state").glob("*/manifest.json")
    told = json.loads(manifest.read_text())
    assert told["rows"] == len(PEOPLE)
    assert told["align"]["known"] == {name: len(people) for name, people in KNOWN.items()}
    model = label / "model.opboost"
    assert op.load(model).trained_model_.own_rounds == 4
    by_network = parts_of(model)
    assert Office(made).model("--again") == model
    assert parts_of(model) == by_network
    for name, people in KNOWN.items():
        shown = json.loads(run("ledger", "show", "-c", made.config(name), "--format", "json")[1])
        drawn = [r["new_cells"] for r in shown["releases"] if r.get("new_cells") is not None]
        assert drawn == [len(people), 0]


def test_predict_without_parties(made, tmp_path):
    model, new = made.folder / LABEL_PARTY / "model.opboost", tmp_path / "new.parquet"
    pa.parquet.write_table(table(PEOPLE[:30], 1).drop_columns(["id"]), new)
    out = tmp_path / "out.csv"
    done = run("predict", model, new, "--without", "shop", "--without", "telco", "-o", out)
    assert done[0] == 0, done
    assert len(out.read_text().splitlines()) == 31
    status, _, said = run("predict", model, new, "--without", "shop")
    assert status == 5
    assert "Column 'x3' is needed by the model" in said
    status, _, said = run("predict", model, new, "--without", "bakery")
    assert status == 2
    assert "no columns of a party 'bakery'" in said
    assert "its parties: 'shop', 'telco'" in said
    both = table(PEOPLE[:30], 1).append_column("x3", table(PEOPLE[:30], 3).column("x3"))
    pa.parquet.write_table(both, new)
    assert run("predict", model, new, "--without", "shop", "--keep", "id")[0] == 0


def predicting(made, party, rows="mine"):
    """Write the files of a job in which one feature party and the label party predict."""
    found = {}
    for name in (LABEL_PARTY, party):
        home, text = made.folder / name, made.config(name).read_text()
        job = (home / "job.toml").read_text().replace("[job]\n", '[job]\npurpose = "predict"\n')
        job = re.sub(r"feature_parties = .*", f'feature_parties = ["{party}"]', job)
        (home / "predict.toml").write_text(job.replace('rows = "mine"', f'rows = "{rows}"'))
        found[name] = home / f"{name}-predict.toml"
        text = re.sub(r"\[label\]\ncolumn = .*\n", "", text.replace('"job.toml"', '"predict.toml"'))
        found[name].write_text(text)
    return found


def command(verb, *words):
    return [sys.executable, "-m", "opboost", verb, *map(str, words)]


def answers(path):
    return list(csv.DictReader(path.read_text().splitlines()))


def test_predict_with_peers_of_whom_one_is_left_out(made, tmp_path):
    label = made.folder / LABEL_PARTY
    model, new, files = label / "model.opboost", tmp_path / "new.parquet", predicting(made, "telco")
    pa.parquet.write_table(table(PEOPLE, 1), new)
    asked = [model, new, "--with-peers", "-c", files[LABEL_PARTY]]
    status, _, words = run("predict", *asked)
    assert (status, "'shop' holds columns of the model and takes no part" in words) == (2, True)
    status, _, words = run("predict", *asked, "--without", "telco")
    assert (status, "'telco' takes part in the job" in words) == (2, True), words
    before = (made.folder / "shop" / "ledger" / "ledger.sqlite").read_bytes()
    out = tmp_path / "out.csv"
    bank = Party(command("predict", *asked, "--without", "shop", "-o", out))
    telco = Party(command("join", "-c", files["telco"], "--connect", bank.address()))
    assert "rows are shared with the label party." in telco.communicate()[1]
    assert telco.returncode == 0
    said = bank.communicate()[1]
    assert bank.returncode == 0, said
    rows = answers(out)
    assert [r["id"] for r in rows] == table(PEOPLE, 1).column("id").to_pylist()
    pa.parquet.write_table(table(PEOPLE, 1).drop_columns(["id"]), new)
    alone = ["--without", "shop", "--without", "telco", "-o", tmp_path / "alone.csv"]
    assert run("predict", model, new, *alone)[0] == 0
    differ = [
        float(a["probability=1"]) != pytest.approx(float(b["probability=1"]), abs=1e-6)
        for a, b in zip(rows, answers(tmp_path / "alone.csv"), strict=True)
    ]
    unknown = ~np.isin(PEOPLE, KNOWN["telco"])
    assert not np.any(np.array(differ)[unknown])  # own columns alone predict them
    assert np.any(np.array(differ)[~unknown])
    assert (made.folder / "shop" / "ledger" / "ledger.sqlite").read_bytes() == before


def test_a_pilot_and_early_stopping_over_the_network(tmp_path):
    people, rng = np.arange(2_600), np.random.default_rng(0)
    ids = np.array([f"person-{i:04d}" for i in people])
    values = rng.random((len(people), 4))
    y = (values[:, 1] > 0.5).astype(int)
    known = people[people % 13 > 1]
    own = pa.table({"a": values[:, 0] + 0.3 * y, "y": y, "id": ids})
    theirs = {f"c{k}": values[known, k] for k in (1, 2, 3)}
    made = write_federation(
        tmp_path,
        own,
        "y",
        {"shop": pa.table({**theirs, "id": ids[known]})},
        {f"c{k}": (0, 1) for k in (1, 2, 3)},
        epsilon=2.0,
        booster={**BOOSTER, "n_estimators": 30},
    )
    for name in (LABEL_PARTY, "shop"):
        job = tmp_path / name / "job.toml"
        job.write_text(f'{job.read_text()}\n[align]\nrows = "mine"\n')
    text = made.config("shop").read_text()
    mechanism = text[text.index("[grid]") : text.index("[columns")]
    budget = "[budget]\nrecord = 8.0\ncolumns_per_row = 1\npilot = 0.5\n"
    made.config("shop").write_text(text.replace(mechanism, budget))
    bank = made.config(LABEL_PARTY)
    bank.write_text(f"{bank.read_text()}\n[train]\nearly_stopping = 3\n")
    (done,) = ran(made)
    assert (done["phase"], done["rows"]) == ("done", len(known))
    shown = json.loads(run("ledger", "show", "-c", made.config("shop"), "--format", "json")[1])
    first, rest = (r["new_cells"] for r in shown["releases"] if r.get("new_cells") is not None)
    assert first + rest == len(known)
    assert 1_000 < first < 1_200
    model = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert 0 < model.trained_model_.own_rounds < 30
    assert model.trained_.rounds < 60
    assert model.held_out_score_ is not None


def test_parties_with_other_job_files_do_not_meet(made):
    job = made.folder / "shop" / "job.toml"
    text = job.read_text()
    job.write_text(text.replace('"mine"', '"common"'))
    try:
        office = Office(made)
        first = office.written(LABEL_PARTY, "align", "--again")["shop"]
        refused = office.tried("shop", "align", first)
        assert refused.returncode != 0
        assert "job file" in refused.stderr
    finally:
        job.write_text(text)


def test_a_label_party_that_cannot_train_on_its_rows_is_refused_before_anybody_connects(made):
    config = made.config(LABEL_PARTY)
    text = config.read_text()
    try:
        config.write_text(text.replace('kind = "xgboost"', 'kind = "xgboost"\nmemory = "external"'))
        refused = Office(made).tried(LABEL_PARTY, "align", "--again")
        assert refused.returncode == 2
        assert "rows='mine' trains in memory" in refused.stderr
    finally:
        config.write_text(text)
