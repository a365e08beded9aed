from __future__ import annotations

import json
import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from opboost.doctor import Finding, State, machine_checks, party_checks
from opboost.transport.shared.development_certificates import new_kit
from robustness.command_line import run

JOB = """\
[job]
name = "credit"
label_party = "bank"
feature_parties = ["shop"]
"""

SHOP = """\
[party]
name = "shop"
job = "job.toml"
table = "shop.csv"
connect = "127.0.0.1:8815"
[tls]
kit = "certs/shop"
[align]
id = "customer"
[ledger]
folder = "ledger"
key = "keys/ledger.key"
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.basket]
bounds = [0, 500]
"""


@pytest.fixture
def shop(tmp_path):
    for name in ("bank", "shop"):
        new_kit(name, tmp_path / "certs")
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "shop.csv").write_text("customer,basket\n1,20\n")
    (tmp_path / "shop.toml").write_text(SHOP)
    return tmp_path / "shop.toml"


def states(path):
    return {f.what: f.state for f in party_checks.examine_party(path)}


def finding(path, what):
    return next(f for f in party_checks.examine_party(path) if f.what == what)


def test_a_party_that_is_ready_is_well_in_every_line(shop):
    found = states(shop)
    assert set(found.values()) == {State.ok}
    assert {"configuration", "table", "certificate", "authority's certificate"} < set(found)
    assert {"encryption key", "public key of bank", "disk, ledger", "ledger's key"} < set(found)


def test_a_file_that_declares_columns_alone_names_no_party(tmp_path):
    (tmp_path / "b.toml").write_text(SHOP[SHOP.index("[mechanism]") :])
    assert states(tmp_path / "b.toml") == {"configuration": State.ok}


@pytest.mark.parametrize(
    ("harm", "what", "step"),
    [
        (lambda d: (d / "shop.csv").unlink(), "table", "Put it there"),
        (lambda d: (d / "certs/shop/key.pem").chmod(0o644), "certificate", "chmod 600"),
        (lambda d: shutil.rmtree(d / "certs/shop"), "certificate", "opboost certs new"),
        (lambda d: shutil.copy(d / "certs/shop.public", d / "certs/bank.public"),
         "public key of bank", "not of 'bank'"),
        (lambda d: (d / "certs/shop/encryption.key").write_text("x"), "encryption key", "X25519"),
        (lambda d: (d / "shop.toml").write_text(SHOP + "bunds = 1\n"), "configuration", "bunds"),
    ],
    ids=["table", "key readable", "no kit", "other's key", "no key", "configuration"],
)  # fmt: skip
def test_what_is_wrong_is_named_with_what_to_do(shop, harm, what, step):
    harm(shop.parent)
    found = finding(shop, what)
    assert found.state is State.wrong
    assert step in found.next_step


def test_a_ledger_without_its_key_is_wrong_and_a_new_one_is_not(shop):
    assert "created at first use" in finding(shop, "ledger's key").found
    (shop.parent / "ledger").mkdir()
    (shop.parent / "ledger" / "ledger.sqlite").touch()
    assert finding(shop, "ledger's key").state is State.wrong
    (shop.parent / "keys").mkdir()
    (shop.parent / "keys/ledger.key").touch(0o600)
    assert finding(shop, "ledger's key").state is State.ok


@pytest.mark.parametrize(
    ("days", "state"), [(-2, State.wrong), (0, State.ok), (368, State.warning), (398, State.wrong)]
)
def test_a_certificate_is_judged_by_its_dates(shop, days, state):
    pem = (shop.parent / "certs/shop/cert.pem").read_bytes()
    found = party_checks.dates(
        "certificate", pem, "Renew.", datetime.now(UTC) + timedelta(days=days)
    )
    assert found.state is state
    assert found.well or found.next_step.startswith("Renew.")


def test_an_expired_certificate_is_wrong(shop):
    shutil.rmtree(shop.parent / "certs/shop")
    new_kit("shop", shop.parent / "certs", days=-1)
    assert "expired on" in finding(shop, "certificate").next_step


def test_packages_are_compared_with_what_the_release_asks_for():
    found = {f.what: f for f in machine_checks.packages()}
    assert {"numpy", "pyarrow", "packaging", "lightgbm"} <= set(found)
    assert all(f.well for f in found.values())
    old = machine_checks.package(Requirement("numpy<1"), State.wrong, "pip install it")
    assert (old.state, old.next_step) == (State.wrong, "Run: pip install it")
    none = machine_checks.package(Requirement("no-such-package"), State.warning, "pip install it")
    assert (none.state, none.found) == (State.warning, "not installed")


def test_aes_is_read_from_the_systems_list(tmp_path):
    listed = tmp_path / "cpuinfo"
    listed.write_text("processor : 0\nflags\t\t: fpu aes avx\n")
    assert machine_checks.aes_listed(listed) is True
    listed.write_text("Features : fp asimd vaes\n")
    assert machine_checks.aes_listed(listed) is False
    assert machine_checks.aes_listed(tmp_path / "none") is None


def test_a_processor_without_aes_is_a_warning(monkeypatch):
    monkeypatch.setattr(machine_checks, "aes_listed", lambda: False)
    assert machine_checks.random_bits().state is State.warning


@pytest.mark.parametrize(
    ("said", "state"), [("1", State.ok), ("100000", State.warning), ("two", State.wrong)]
)
def test_threads_are_compared_with_cores(monkeypatch, said, state):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert machine_checks.threads().state is state


def test_a_containers_quota_counts_as_cores(tmp_path):
    quota = tmp_path / "cpu.max"
    quota.write_text("50000 100000\n")
    assert machine_checks.usable_cores(quota) == 0.5
    quota.write_text("max 100000\n")
    assert machine_checks.usable_cores(quota) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("free", "state"), [(2**40, State.ok), (2**29, State.warning), (2**20, State.wrong)]
)
def test_disk_is_looked_at_where_a_folder_would_be_made(monkeypatch, tmp_path, free, state):
    seen = []
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda p: seen.append(p) or usage._replace(free=free))
    assert machine_checks.disk("disk", tmp_path / "not" / "yet").state is state
    assert seen == [tmp_path]


def test_a_finding_has_a_next_step_iff_it_is_not_well():
    for state, step in ((State.ok, "Do."), (State.wrong, "")):
        with pytest.raises(ValueError, match="next step"):
            Finding("x", state, "y", step)


def test_the_verb_ends_with_one_if_something_is_wrong(shop):
    status, out, _ = run("doctor", "-c", shop, "--format", "json")
    found = json.loads(out)
    assert (status, found["well"]) == (0, True)
    assert {"opboost", "random bits", "compiled loops", "threads", "disk, here"} <= {
        f["what"] for f in found["findings"]
    }
    (shop.parent / "shop.csv").unlink()
    before = sorted(p for p in shop.parent.rglob("*"))
    status, out, err = run("doctor", "-c", shop)
    assert status == 1
    assert "Put it there" in " ".join(out.replace("│", " ").split())
    assert "1 thing is wrong" in err
    assert sorted(p for p in shop.parent.rglob("*")) == before


def test_without_a_file_the_machine_alone_is_looked_at(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    status, out, err = run("doctor")
    assert status == 0
    assert "certificate" not in out
    assert "opboost doctor -c FILE" in err
    assert not list(Path(tmp_path).iterdir())
