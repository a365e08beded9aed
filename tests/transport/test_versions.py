"""Jobs, messages and bundles of version 1 are refused, naming both versions; receipts are read."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.flight as flight
import pytest

import opboost as op
from opboost.config.job_file import load_label
from opboost.demo.local_federation import LABEL_PARTY
from opboost.ledger.receipts import read_receipts
from opboost.protocol.messages import Receipt, decode
from opboost.transport.feature.label_connection import Connection, as_sentences
from opboost.transport.label.job_folder import newest_receipt
from opboost.transport.label.label_job import new_job, read_data
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import federation, identity_of, serving
from tests.support.version_1 import ALIGNED_1, HELLO_1, RECEIPT_1

BOTH = "holds messages of version 1, and this release of OpBoost speaks version 3"
NEXT = "begin a new run (--again)"


def begun(made):
    """Make a job of the label party with a message that OpBoost 0.1.0 left behind."""
    config = load_label(made.config(LABEL_PARTY))
    folder = new_job(config, read_data(config), receipts=True, way="network")
    box = folder / "parties" / "shop"
    box.mkdir(parents=True)
    (box / "schema").write_bytes(ALIGNED_1)
    return config, folder


def told(status, words, *, damaged=False):
    assert status == 5, words
    assert BOTH in words
    assert NEXT in words
    assert ("damaged" in words) == damaged


def test_a_label_party_does_not_go_on_with_a_job_of_version_1(tmp_path):
    made = federation(tmp_path, ("shop",), align="given")
    config, folder = begun(made)
    status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    told(status, words)
    assert folder.name in words
    status, out, _ = run("serve", "-c", made.config(LABEL_PARTY), "--status", "--format", "json")
    assert (status, json.loads(out)["job"]) == (0, folder.name)

    # A finished job stays finished, but a lost model cannot be rewritten from it.
    about = {"job": folder.name, "finished": "2026", "seconds": 1.0, "guarantee": "x: 1-LDP"}
    (folder / "manifest.json").write_text(json.dumps({**about, "parties": {}}))
    (folder / "ended").touch()
    told(*run("serve", "-c", made.config(LABEL_PARTY))[::2])
    config.model.touch()
    status, out, _ = run("serve", "-c", made.config(LABEL_PARTY))
    assert (status, out) == (0, "x: 1-LDP\n")


def test_a_feature_party_does_not_go_on_with_a_job_of_version_1(tmp_path):
    made = federation(tmp_path, ("shop",), align="given")
    with serving(made) as (_, address):
        (job,) = (tmp_path / LABEL_PARTY / "state").glob("2*")
        own = tmp_path / "shop" / "state" / job.name
        own.mkdir(parents=True)
        (own / "schema").write_bytes(ALIGNED_1)
        told(*run("join", "-c", made.config("shop"), "--connect", address)[::2])


def test_bundles_and_jobs_by_bundles_of_version_1_are_refused_by_both_sides(tmp_path):
    office = Office(federation(tmp_path, ("shop",), align="given"))
    first = Path(office.begun()["shop"])
    old = tmp_path / "old.bundle"
    old.write_bytes(first.read_bytes().replace(b"BUNDLE 3", b"BUNDLE 1", 1))
    done = office.tried("shop", "export", old)
    assert done.returncode == 4
    assert "old.bundle is a bundle of version '1'; this release reads version '3'" in done.stderr
    assert NEXT in done.stderr

    (job,) = (tmp_path / LABEL_PARTY / "state").glob("2*")
    own = tmp_path / "shop" / "state" / job.name
    own.mkdir(parents=True)
    (own / "schema").write_bytes(ALIGNED_1)
    done = office.tried("shop", "export", first)
    told(done.returncode, done.stderr)

    (kept,) = (job / "bundles").glob("*.bundle")
    kept.write_bytes(old.read_bytes())
    for verb in ("align", "split-query"):
        given = [first] if verb == "split-query" else []
        done = office.tried(LABEL_PARTY, verb, *given)
        told(done.returncode, done.stderr)


def test_receipts_of_version_1_still_show_that_a_ledger_was_rolled_back(tmp_path):
    box = tmp_path / "20260101T000000Z-00000000" / "parties" / "shop"
    box.mkdir(parents=True)
    (box / "receipt").write_bytes(RECEIPT_1)
    known = decode(newest_receipt(tmp_path, "shop"), Receipt)
    assert (known.entry, known.certificate, known.signature) == (3, b"pem", b"sig")
    assert read_receipts(tmp_path, "shop") == [known]


def test_a_party_of_version_1_is_reported_of_both_versions_before_it_logs_in(tmp_path):
    made = federation(tmp_path, ("shop",), align="given")
    with serving(made) as (_, address):
        connection = Connection(address, "shop", LABEL_PARTY, identity_of(made, "shop"))
        for step in ("hello", "rows"):
            with (
                pytest.raises(op.PeerError, match="version '1'; this release speaks version 3"),
                as_sentences(),
            ):
                list(connection._client.do_action(flight.Action(step, HELLO_1)))
        connection.close()
