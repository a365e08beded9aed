"""What earlier versions wrote is opened, or refused with one clear sentence."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import opboost as op
from opboost.config import load
from opboost.experiments.scene import LABEL_PARTY, Scene, run_scene
from opboost.files.stored_release import StoredRelease
from opboost.ledger.declared import declared_ledger
from tests.bundles import Office
from tests.cli import run

GOLDEN = Path(__file__).parent / "golden" / "0.1.0"


@pytest.fixture
def golden(tmp_path):
    """A copy of an artefact, with the modes that a checkout does not keep."""

    def copied(name):
        home = tmp_path / name
        shutil.copytree(GOLDEN / name, home)
        for key in [*home.rglob("*.key"), *home.rglob("key.pem")]:
            key.chmod(0o600)
        return home

    return copied


def test_the_ledger_verifies_and_tells_what_it_told(golden):
    home = golden("ledger")
    status, out, _ = run("ledger", "verify", "-c", home / "shop.toml")
    assert (status, out.split(":")[0]) == (0, "whole")
    _, out, _ = run("ledger", "show", "-c", home / "shop.toml", "--format", "json")
    assert json.loads(out) == json.loads((home / "spent.json").read_text())


def test_the_stored_release_is_known_to_its_ledger(golden):
    home = golden("ledger")
    plan = load(home / "shop.toml")
    with declared_ledger(home / "shop.toml") as ledger:
        release = StoredRelease.of(home / "stored", plan.private, ledger, gaps=True)
        release.check_parts()
    assert release.manifest.rows == len(pd.read_csv(home / "people.csv"))


@pytest.mark.parametrize(("booster", "releases"), [("xgboost", 1), ("lightgbm", 2), ("gbdt", 3)])
def test_a_saved_estimator_predicts_and_promises_as_it_did(golden, booster, releases):
    home = golden("estimators")
    model = op.load(home / f"{booster}.opboost")
    found = model.predict_proba(pd.read_csv(home / "rows.csv"))[:, 1]
    np.testing.assert_array_equal(found, json.loads((home / f"{booster}.json").read_text()))
    assert model.releases_ == releases  # the same rows, one booster after the other
    assert model.guarantee_.total == pytest.approx(releases * 9 * 1.28)


@pytest.mark.parametrize("stopped", ["job-aligning", "job-sent"])
def test_a_stopped_job_is_finished(golden, stopped):
    made = Scene(golden(stopped), ("shop", "telco"))
    run_scene(made)
    assert len(list((made.folder / LABEL_PARTY / "state").glob("*/manifest.json"))) == 1


def test_a_job_by_bundles_goes_on(golden):
    office = Office(Scene(golden("bundles"), ("shop", "telco")))
    export = next(office.out("shop").glob("*.4-export.*"))
    begun = next(office.out(LABEL_PARTY).glob("*.3-align.bank-to-telco.*"))
    exported = office.written("telco", "export", begun)[LABEL_PARTY]
    queries = office.written(LABEL_PARTY, "split-query", export, exported)
    assert set(queries) == {"shop", "telco"}
