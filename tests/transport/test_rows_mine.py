"""``rows = "mine"`` between real processes and by bundles, and predictions without a party."""

from __future__ import annotations

import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY, run_federation, write_federation
from robustness.bundle_office import Office
from robustness.command_line import run

PEOPLE = np.arange(400)
KNOWN = {"shop": PEOPLE[::2], "telco": PEOPLE[100:300]}
BOOSTER = {"n_estimators": 4, "max_depth": 2, "nthread": 1}


def table(people, shift):
    values = (people * 7 + shift) % 100
    return pa.table({f"x{shift}": values, "id": [f"person-{i:04d}" for i in people]})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A federation that has trained a model over the network."""
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


def test_a_label_party_that_cannot_train_on_its_rows_is_told_before_anybody_connects(made):
    config = made.config(LABEL_PARTY)
    text = config.read_text()
    try:
        config.write_text(text.replace('kind = "xgboost"', 'kind = "xgboost"\nmemory = "external"'))
        refused = Office(made).tried(LABEL_PARTY, "align", "--again")
        assert refused.returncode == 2
        assert "rows='mine' trains in memory" in refused.stderr
    finally:
        config.write_text(text)
