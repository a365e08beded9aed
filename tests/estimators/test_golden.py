"""Files of earlier versions are read, or refused with one clear sentence."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xgboost

import opboost as op
from claims import FILES
from claims.covered_sources import stale
from opboost.config import load
from opboost.config.job_file import load_feature
from opboost.demo.local_federation import LABEL_PARTY, LocalFederation
from opboost.errors import DataError, PrivacyError
from opboost.files.stored_release import StoredRelease
from opboost.ledger.lookup import spent
from opboost.ledger.open_ledger import declared_ledger
from opboost.protocol.messages import Welcome, decode_receipt, encode
from opboost.transport.feature.feature_job import check_rollback
from opboost.transport.shared.job_integrity import check_version
from opboost.transport.shared.tls import read_identity
from robustness.bundle_office import Office
from robustness.command_line import run
from tests.support.parties import ran, refused

GOLDEN = Path(__file__).parents[1] / "golden" / "0.1.0"


@pytest.fixture
def golden(tmp_path):
    """Copy an artefact, and set the file modes that a checkout does not keep."""

    def copied(name, called=None):
        home = tmp_path / (called or name)
        shutil.copytree(GOLDEN / name, home)
        for key in [*home.rglob("*.key"), *home.rglob("key.pem")]:
            key.chmod(0o600)
        return home

    return copied


def migrated(config, *tables, more=()):
    """Migrate the ledger of a party's file to the current format."""
    options = [word for table in tables for word in ("--table", table)]
    status, _, said = run("ledger", "migrate", "-c", config, *options, *more)
    assert status == 0, said


def everybody(home):
    """Write tables with all people of the ledger, including those of unfinished releases."""
    people = pd.read_csv(home / "people.csv")
    people.assign(id="new " + people["id"]).to_csv(home / "new.csv", index=False)
    return home / "people.csv", home / "new.csv"


def charged(config, ids):
    """Return what was spent on each person, in billionths, by attribute."""
    with declared_ledger(config) as ledger:
        files = [ledger.run_file(run) for run in ledger.runs()]
        handles = ledger.handles(ledger.people([i.encode() for i in ids]))
        return np.array([spent(files, handles, a) for a in ("age", "pay", "city", None)])


def test_the_ledger_is_migrated_and_tells_what_it_told(golden):
    home = golden("ledger")
    config, then = home / "shop.toml", json.loads((home / "spent.json").read_text())
    status, _, said = run("ledger", "show", "-c", config)
    assert (status, "opboost ledger migrate" in said) == (2, True)
    config.write_text(config.read_text() + 'ids = "exact"\n')
    migrated(config, *everybody(home))
    status, out, _ = run("ledger", "verify", "-c", config)
    assert (status, out.split(":")[0]) == (0, "intact")
    now = json.loads(run("ledger", "show", "-c", config, "--format", "json")[1])
    for was, line in zip(then["spent"], now["spent"], strict=True):
        assert was.items() <= line.items()
    for was, line in zip(then["releases"], now["releases"], strict=True):
        assert [was[k] for k in ("job", "recipient")] == [line[k] for k in ("job", "recipient")]
        assert was.get("new_cells") == line["new_cells"]
    assert "counts as spent" in now["releases"][-1]["what"]


def test_two_spellings_become_one_person_and_their_charges_add_up(golden):
    home, other = golden("ledger"), golden("ledger", "exact")
    (other / "shop.toml").write_text((home / "shop.toml").read_text() + 'ids = "exact"\n')
    for folder in (home, other):
        migrated(folder / "shop.toml", *everybody(folder))
    ids = pd.concat(pd.read_csv(table)["id"] for table in everybody(home))
    apart = pd.DataFrame(charged(other / "shop.toml", ids), columns=ids)
    assert apart.columns.is_unique
    added = apart.T.groupby(ids.str.lower().to_numpy()).sum().T
    assert added.shape[1] == apart.shape[1] - 2
    np.testing.assert_array_equal(charged(home / "shop.toml", added.columns), added)


@pytest.mark.parametrize("table", ["people.csv", "changed.csv"])
def test_a_migrated_ledger_repeats_the_first_release_whatever_the_values(golden, table):
    home = golden("ledger")
    migrated(home / "shop.toml", home / "people.csv", more=["--leave-out-unknown"])
    once = pd.read_csv(home / table)
    once = once[once["id"].str.lower() != "ann000"]
    once.to_csv(home / "once.csv", index=False)
    status, _, said = run(
        *("desensitize", home / "once.csv", "-c", home / "shop.toml", "-o", home / "again.csv"),
    )
    assert status == 0, said
    assert "0 cells drawn and charged" in said
    first, again = (pd.read_csv(home / name).set_index("id") for name in ("first.csv", "again.csv"))
    pd.testing.assert_frame_equal(again, first.loc[again.index])


def test_the_stored_release_is_known_to_its_ledger(golden):
    home = golden("ledger")
    migrated(home / "shop.toml", home / "people.csv", more=["--leave-out-unknown"])
    plan = load(home / "shop.toml")
    with declared_ledger(home / "shop.toml") as ledger:
        release = StoredRelease.of(home / "stored", plan.private, ledger, gaps=True)
        release.check_parts()
    assert release.manifest.rows == len(pd.read_csv(home / "people.csv"))


def test_receipts_of_a_migrated_ledger_are_honoured(golden):
    home = golden("job-sent")
    config = home / "shop" / "shop.toml"
    migrated(config)
    held = next((home / "bank" / "state").glob("*/parties/shop/receipt"))
    status, out, said = run("ledger", "verify", "-c", config, "--receipts", held)
    assert (status, out) == (0, "intact: 5 entries, 1 receipts\n"), said
    identity = read_identity(load_feature(config).tls, "shop")
    receipt = decode_receipt(held.read_bytes())
    forged = identity.sign(receipt.job, receipt.entry, bytes(32))
    with declared_ledger(config) as ledger:
        for shown, refused in ((receipt, False), (forged, True)):
            welcome = Welcome(receipt.job, bytes(32), encode(shown))
            with pytest.raises(PrivacyError, match="rolled back") if refused else nullcontext():
                check_rollback(welcome, ledger, identity)


@pytest.mark.parametrize(("booster", "releases"), [("xgboost", 1), ("lightgbm", 2), ("gbdt", 3)])
def test_a_saved_estimator_predicts_and_promises_as_it_did(golden, booster, releases):
    home = golden("estimators")
    model = op.load(home / f"{booster}.opboost")
    found = model.predict_proba(pd.read_csv(home / "rows.csv"))[:, 1]
    np.testing.assert_array_equal(found, json.loads((home / f"{booster}.json").read_text()))
    assert model.releases_ == releases  # the same rows, with one booster after another
    assert model.guarantee_.total == pytest.approx(releases * 9 * 1.28)


BOTH = "holds messages of version 1, and this release of OpBoost speaks version 3"


@pytest.mark.parametrize("stopped", ["job-aligning", "job-sent"])
def test_a_stopped_job_is_refused_and_a_new_run_is_not(golden, stopped):
    """Messages have changed, so no job continues across versions, but a ledger does."""
    made = LocalFederation(golden(stopped), ("shop", "telco"))
    migrated(made.config("shop"))
    status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    assert status == 5
    assert BOTH in words
    assert "--again" in words
    state = made.folder / LABEL_PARTY / "state"
    (job,) = (file.parent for file in state.glob("*/job.json"))
    job.rename(made.folder / "job of 0.1.0")
    ran(made)
    assert len(list(state.glob("*/manifest.json"))) == 1


def test_a_finished_job_is_shown_and_its_model_predicts_as_it_did(golden):
    made = LocalFederation(golden("job-finished"), ("shop", "telco"))
    label, model = made.config(LABEL_PARTY), made.folder / LABEL_PARTY / "model.opboost"
    shown = [run("serve", "-c", label, "--format", "json", *more) for more in ([], ["--status"])]
    (manifest,) = (made.folder / LABEL_PARTY / "state").glob("*/manifest.json")
    assert [status for status, _, _ in shown] == [0, 0]
    assert json.loads(shown[0][1]) == json.loads(manifest.read_text())
    assert json.loads(shown[1][1])["phase"] == "done"
    rows, then = pd.read_csv(made.folder / "rows.csv"), made.folder / "expected.json"
    estimator = op.load(model)
    found = estimator.predict_proba(rows)[:, 1]
    np.testing.assert_array_equal(found, json.loads(then.read_text()))
    estimator.save_model(made.folder / "now.json", units="grid")
    then, now = (xgboost.Booster(model_file=made.folder / f) for f in ("model.json", "now.json"))
    then.feature_names = ["basket (grid)", "calls (grid)", "own"]  # 0.1.0 wrote no names
    assert then.get_dump() == now.get_dump()


def test_the_card_of_a_model_that_names_no_party_is_refused_with_a_sentence(golden):
    """Version 0.1.0 did not store the party of each column of a model."""
    home = golden("job-finished") / LABEL_PARTY
    status, out, said = run("card", home / "model.opboost", "-c", home / "bank.toml")
    assert (status, out) == (2, "")
    assert "model.opboost names no feature party (no job made it, or version 0.1 did)" in said
    assert run("card", home / "model.opboost", "--format", "json")[0] == 0


def test_a_feature_party_is_reported_that_a_job_of_before_is_over(golden):
    """After migration, the ledger knows what the finished job released."""
    home = golden("job-finished") / "shop"
    status, _, said = run("join", "-c", home / "shop.toml")
    assert (status, "opboost ledger migrate" in said) == (2, True)
    migrated(home / "shop.toml")
    shown = json.loads(run("ledger", "show", "-c", home / "shop.toml", "--format", "json")[1])
    (manifest,) = (home / "state").glob("*/manifest.json")
    assert {line["job"] for line in shown["releases"]} >= {manifest.parent.name}


def test_claims_of_before_are_stale(golden):
    """Version 0.1.0 did not record sources with a figure."""
    then = json.loads((GOLDEN / "claims.json").read_text())
    known = {file: len(lines) for file, lines in then.items() if file in FILES}
    assert len(known) > 20
    assert known.items() <= stale(then).items()


def test_a_feature_party_does_not_continue_a_job_of_another_version(golden):
    made = LocalFederation(golden("job-sent"), ("shop", "telco"))
    migrated(made.config("shop"))
    (folder,) = (made.folder / "shop" / "state").glob("*/schema")
    with pytest.raises(DataError, match=BOTH):
        check_version(folder.parent)


@pytest.mark.parametrize(
    ("party", "verb", "steps"),
    [
        ("telco", "export", ["3-align.bank-to-telco"]),
        (LABEL_PARTY, "split-query", ["4-export.shop-to-bank"]),
    ],
)
def test_a_bundle_of_another_version_is_refused(golden, party, verb, steps):
    office = Office(LocalFederation(golden("bundles"), ("shop", "telco")))
    for feature in ("shop", "telco"):
        migrated(office.made.config(feature))
    given = [next(office.made.folder.glob(f"out/*/*.{step}.*")) for step in steps]
    status, words = refused(office, party, verb, *given)
    assert status == 4
    assert "is a bundle of version '1'; this release reads version '3'" in words


def test_a_new_run_by_bundles_uses_the_keys_and_configurations_of_before(golden):
    """The run uses the old TLS certificates, keys, public key files, job files and TOML files."""
    office = Office(LocalFederation(golden("bundles"), ("shop", "telco")))
    for feature in ("shop", "telco"):
        migrated(office.made.config(feature))
    assert (office.model("--again")).exists()
