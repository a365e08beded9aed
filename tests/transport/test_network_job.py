"""Real processes over real TLS on loopback: the whole job, restarts, and refusals."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import opboost as op
from opboost.config.job_file import load_feature
from opboost.demo.local_federation import (
    LABEL_PARTY,
    run_federation,
)
from opboost.ledger.open_ledger import open_ledger
from opboost.protocol.messages import Ack, Poll, SplitQuery, SplitValues, Values, encode
from opboost.transport.feature import join_job as joining
from opboost.transport.shared.development_certificates import new_kit
from robustness.command_line import run
from robustness.party_processes import (
    DATA,
    IDS,
    NAMES,
    ROWS,
    Party,
    columns,
    federation,
    identity_of,
    joined,
    serving,
    shaken_hands,
    stop,
    wait_for,
)
from tests.support.parties import ended
from tests.support.workers import in_time


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Run a successful job of three processes; return their output."""
    made = federation(tmp_path_factory.mktemp("finished"), ledger={"cap_attribute": 18.0})
    return made, run_federation(made, timeout=120)


@pytest.fixture
def copied(finished, tmp_path):
    """Copy the finished job to a folder that a test may change."""
    made, _ = finished
    shutil.copytree(made.folder, tmp_path / "job")
    return dataclasses.replace(made, folder=tmp_path / "job")


def model_of(made):
    return op.load(made.folder / LABEL_PARTY / "model.opboost")


def rows_of(model):
    return columns(NAMES[:7]).drop_columns(["id"]).select(list(model.feature_names_in_))


def test_three_processes_make_one_model(finished):
    made, outcome = finished
    manifest = outcome.manifests[LABEL_PARTY]
    assert manifest["rows"] == ROWS
    assert set(manifest["parties"]) == {"shop", "telco"}
    assert manifest["total"] == pytest.approx(4 * 18.0)
    for name in made.parties:
        theirs = outcome.manifests[name]
        assert theirs["phase"] == "done"
        assert theirs["total"] == pytest.approx(36.0)
        assert theirs["versions"]["opboost"] == op.__version__
    model = model_of(made)
    assert (model.predict(rows_of(model)) == DATA.target).mean() > 0.85
    no_secret_is_written(made.folder)


def test_a_second_run_sends_the_same_codes_and_charges_nothing(copied):
    model, codes = model_of(copied), sent_codes(copied.folder)
    (copied.folder / LABEL_PARTY / "model.opboost").unlink()
    serving = Party([*copied.command(LABEL_PARTY), "--again"])
    joined(copied, serving.address())
    assert serving.wait(60) == 0
    serving.communicate()
    assert sent_codes(copied.folder) == codes
    table = rows_of(model)
    assert np.array_equal(model_of(copied).predict_proba(table), model.predict_proba(table))
    for name in copied.parties:
        assert run("ledger", "verify", "-c", copied.config(name))[0] == 0
        status, out, _ = run("ledger", "show", "-c", copied.config(name), "--format", "json")
        assert status == 0
        shown = json.loads(out)
        new = [r.get("new_cells") for r in shown["releases"]]
        assert new == [None, 2 * ROWS, None, None, 0, None]
        aligned = "alignment of 569 rows with 569: 569 in common"
        assert [r["what"] for r in shown["releases"]][::3] == [aligned] * 2
        assert shown["spent"][0]["most"] == 18.0
        # The label party's folder also holds the other party's receipts, which must not count.
        receipts = copied.folder / LABEL_PARTY / "state"
        checked = run("ledger", "verify", "-c", copied.config(name), "--receipts", receipts)
        assert checked[:2] == (0, "intact: 11 entries, 2 receipts\n")


def test_a_finished_job_says_so_and_writes_a_lost_model_again(copied):
    model = model_of(copied)
    (copied.folder / LABEL_PARTY / "model.opboost").unlink()
    assert run("serve", "-c", copied.config(LABEL_PARTY))[0] == 0
    table = rows_of(model)
    assert np.array_equal(model_of(copied).predict_proba(table), model.predict_proba(table))
    status, out, _ = run("serve", "-c", copied.config(LABEL_PARTY), "--status", "--format", "json")
    assert status == 0
    assert json.loads(out)["phase"] == "done"


def test_a_ledger_that_is_rolled_back_is_refused_before_a_byte_leaves(copied):
    shutil.rmtree(copied.folder / "shop" / "ledger")
    for file in (copied.folder / "keys").glob("shop.key*"):
        file.unlink()
    serving = Party([*copied.command(LABEL_PARTY), "--again"])
    address = serving.address()
    refused = ended([*copied.command("shop"), "--connect", address])
    assert refused.returncode == 3, refused.stderr
    assert "rolled back" in refused.stderr
    stop(serving)
    assert not list((copied.folder / LABEL_PARTY / "state").glob("*/parties/shop/.*"))
    label_folder = copied.folder / LABEL_PARTY
    status, _, words = run(
        "ledger", "verify", "-c", copied.config("shop"), "--receipts", label_folder
    )
    assert status == 3, words


def sent_codes(folder):
    newest = sorted((folder / LABEL_PARTY / "state").glob("*/job.json"))[-1].parent
    return {
        str(f.relative_to(newest)): f.read_bytes() for f in sorted(newest.glob("parties/*/*.arrow"))
    }


def no_secret_is_written(folder):
    """Check that no raw value or ID is in logs, in the label party's files or in a ledger."""
    theirs = [f for f in folder.rglob("*") if f.is_file() and f.name != "table.parquet"]
    values = {repr(float(v)) for n in NAMES[3:7] for v in DATA.data[:50, NAMES.index(n)]}
    longer = "|".join(re.escape(v) for v in sorted(values) if len(v) > 4)
    raw = re.compile(rf"(?<![0-9.])({longer})(?![0-9])".encode())  # whole numbers, not parts
    for file in theirs:
        content = file.read_bytes()
        assert b"person-0" not in content, file
        if ("shop" in file.parts and "state" in file.parts) or LABEL_PARTY in file.parts:
            assert not raw.findall(content), file


def test_a_party_may_leave_and_come_back_and_the_label_party_may_die(tmp_path):
    made = federation(tmp_path, ("shop",))
    label = made.command(LABEL_PARTY)
    process = Party(label)
    (left,) = joined(made, process.address(), "--leave")
    assert left["phase"] == "released"
    os.kill(process.pid, signal.SIGKILL)  # before, while or after it trains
    process.communicate()
    label_server_is_gone(tmp_path)
    with serving(made) as (process, _):
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/query")))
        os.kill(process.pid, signal.SIGKILL)  # while it waits for the answer
        process.communicate()
    query = next((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/query")).read_bytes()
    with serving(made) as (process, address):
        (done,) = joined(made, address)
        assert done["phase"] == "done"
        process.wait(30)
        assert process.returncode == 0
    again = next((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/query")).read_bytes()
    assert again == query
    op.load(tmp_path / LABEL_PARTY / "model.opboost")
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    aligned = ["open", "align", "aligned"]
    assert [e["kind"] for e in entries] == [*aligned, "reserve", "commit", "answer"]


def test_an_answer_that_cannot_be_true_is_refused_at_the_gate(tmp_path):
    made = federation(tmp_path, ("shop",))
    with serving(made) as (process, address):
        joined(made, address, "--leave")
        query_file = "*/parties/shop/query"
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob(query_file)))
        connection, welcome = shaken_hands(made, address, identity_of(made, "shop"))
        query = connection.call("poll", Poll(welcome.job), SplitQuery)
        digest = hashlib.sha256(encode(query)).digest()
        lies = tuple(Values(c.column, "grid", (99.0,) * len(c.codes)) for c in query.columns)
        for lie, words in (
            (SplitValues(welcome.job, digest, lies), "do not ascend on its grid"),
            (SplitValues(welcome.job, bytes(32), lies), "another split query"),
            (SplitValues(welcome.job, digest, ()), "leaves out columns"),
        ):
            with pytest.raises(op.PeerError, match=words):
                connection.call("answer", lie, Ack)
        connection.close()
        (done,) = joined(made, address)
        assert done["phase"] == "done"
        assert process.wait(30) == 0


def test_a_party_that_is_revoked_in_mid_job_is_turned_away_after_a_restart(tmp_path):
    made = federation(tmp_path)
    with serving(made) as (_, address):
        shaken_hands(made, address, identity_of(made, "shop"))[0].close()
    config = made.config(LABEL_PARTY)
    config.write_text(config.read_text() + "\n[peers.shop]\nrevoked = true\n")
    words = r"Party 'shop' is revoked"
    with serving(made) as (_, address), pytest.raises(op.PeerError, match=words):
        shaken_hands(made, address, identity_of(made, "shop"))
    config.write_text(config.read_text() + "\n[peers.telco]\nrevoked = true\n")
    status, _, said = run("serve", "-c", config)
    assert (status, "Every feature party of job 'scene' is revoked" in said) == (2, True), said


def label_server_is_gone(folder):
    wait_for(lambda: not any(str(folder) in line for line in label_servers()))


def label_servers():
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().decode(errors="replace")
            if "opboost.transport.label.label_server" in words:
                found += [os.readlink(f) for f in (entry.parent / "fd").iterdir() if f.exists()]
    return found


def test_a_feature_party_that_is_killed_starts_again_and_is_charged_once(tmp_path):
    made = federation(tmp_path)
    with serving(made) as (process, address):
        for delay in (0.9, 1.3, 1.7):
            victim = Party([*made.command("shop"), "--connect", address])
            time.sleep(delay)
            victim.kill()
            victim.communicate()
        done = joined(made, address)
        assert [d["phase"] for d in done] == ["done", "done"]
        assert process.wait(30) == 0
    shown = json.loads(run("ledger", "show", "-c", made.config("shop"), "--format", "json")[1])
    assert sum(r.get("new_cells") or 0 for r in shown["releases"]) <= 2 * ROWS
    spent = shown["spent"][0]
    assert (spent["people"], spent["most"], spent["cap"]) == (ROWS, 18.0, None)


def test_a_release_over_the_cap_ends_with_3_before_a_byte_leaves(tmp_path):
    made = federation(tmp_path, ("shop",), ledger={"cap_attribute": 17.9}, align="given")
    with serving(made) as (_, address):
        refused = ended([*made.command("shop"), "--connect", address])
        assert refused.returncode == 3, refused.stderr
        assert "no more than 17.9 may be spent" in refused.stderr
        state = tmp_path / LABEL_PARTY / "state"
        assert {f.name for f in state.glob("*/parties/shop/*")} <= {"declined", "visited"}


def test_another_job_file_is_refused_with_both_hashes(tmp_path):
    made = federation(tmp_path, ("shop",))
    with serving(made) as (_, address):
        job = made.folder / "shop" / "job.toml"
        job.write_text(job.read_text() + "# a word more\n")
        refused = ended([*made.command("shop"), "--connect", address])
    assert refused.returncode == 4
    assert "The job files differ" in refused.stderr


def test_rows_in_another_order_are_refused_before_anything_is_drawn(tmp_path):
    made = federation(tmp_path, ("shop",), align="given")
    table = columns(NAMES[3:5], IDS[::-1])
    pa.parquet.write_table(table, tmp_path / "shop" / "table.parquet")
    with serving(made) as (_, address):
        refused = ended([*made.command("shop"), "--connect", address])
    assert refused.returncode == 4
    assert "not the label party's in the same order" in refused.stderr
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open"]


def test_plaintext_has_a_loud_name_and_stays_on_loopback(tmp_path):
    made = federation(tmp_path, ("shop",))
    loud = "--insecure-plaintext-on-loopback"
    with serving(made, loud) as (process, address):
        with pytest.raises(op.PeerError):
            shaken_hands(made, address, identity_of(made, "shop"))
        (done,) = joined(made, address, loud)
        assert done["phase"] == "done"
        process.wait(30)
    config = made.config(LABEL_PARTY)
    config.write_text(config.read_text().replace("127.0.0.1:0", "0.0.0.0:0"))
    status, _, words = run("serve", "-c", config, loud)
    assert status == 2
    assert "Plaintext is only for trials" in words
    status, _, words = run("join", "-c", made.config("shop"), loud, "--connect", "10.0.0.1:1")
    assert status == 2
    assert "Plaintext is only for trials" in words


def test_metrics_are_served_on_request(tmp_path):
    from urllib.error import HTTPError
    from urllib.request import urlopen

    from opboost.transport.label.job_metrics import serving_metrics

    made = federation(tmp_path, ("shop",))
    state = tmp_path / LABEL_PARTY / "state"
    with serving_metrics("127.0.0.1:0", state) as port:
        page = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert "# TYPE opboost_jobs gauge\nopboost_jobs 0" in page
        with pytest.raises(HTTPError, match="404") as refused:
            urlopen(f"http://127.0.0.1:{port}/")
        refused.value.close()
        with serving(made):
            page = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert 'opboost_phase{party="shop",phase="expected"} 1' in page
    assert f"opboost_rows {ROWS}" in page
    assert set(re.findall(r"^# TYPE (\S+) gauge$", page, re.M)) == {
        *("opboost_jobs", "opboost_rows", "opboost_done", "opboost_phase"),
        *("opboost_received_bytes", "opboost_received_columns", "opboost_aligned_share"),
    }


def test_the_verb_makes_kits_and_refuses_to_overwrite(tmp_path):
    status, out, words = run("certs", "new", "shop", "--dir", tmp_path)
    assert (status, out.strip()) == (0, str(tmp_path / "shop"))
    assert "keep" in words
    assert (tmp_path / "shop" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca" / "ca.key").stat().st_mode & 0o777 == 0o600
    assert run("certs", "new", "shop", "--dir", tmp_path)[0] == 2
    assert run("certs", "new", "Not A Name", "--dir", tmp_path)[0] == 2


def test_certificates_are_checked_before_a_peer_would(tmp_path):
    made = federation(tmp_path, ("shop",))
    config = made.config("shop")
    text = config.read_text()
    for change, status, words in (
        (('kit = "../certs/shop"', 'kit = "../certs/bank"'), 2, "is for bank"),
        (('kit = "../certs/shop"', 'kit = "../certs/none"'), 2, "cannot be read"),
        (("[tls]\nkit = \"../certs/shop\"\n", ""), 2, "There is no [tls]"),
        (('name = "shop"', 'name = "stop"'), 2, "not a feature party of job"),
        (('id = "id"', ""), 2, "has no row ID"),
        (('job = "job.toml"', 'job = "none.toml"'), 2, "cannot be read"),
        (('connect = "127.0.0.1:1"', 'connect = "nowhere"'), 2, "host:port"),
    ):  # fmt: skip
        config.write_text(text.replace(*change))
        code, _, said = run("join", "-c", config)
        assert code == status, said
        assert words in said
    key = tmp_path / "certs" / "shop" / "key.pem"
    config.write_text(text)
    key.chmod(0o644)
    assert "chmod 600" in run("join", "-c", config)[2]
    key.chmod(0o600)
    key.write_bytes((tmp_path / "certs" / "bank" / "key.pem").read_bytes())
    assert "does not belong to" in run("join", "-c", config)[2]
    for section in ('[label]\ncolumn = "y"', "[peers.shop]", '[booster]\nkind = "gbdt"'):
        config.write_text(text + f"\n{section}\n")
        status, _, said = run("join", "-c", config)
        assert status == 2
        assert "has no meaning for a feature party" in said


def test_a_wrong_authority_ends_at_once_with_a_sentence(tmp_path):
    made = federation(tmp_path, ("shop",))
    new_kit("bank", tmp_path / "other")
    with serving(made) as (_, address):
        ca = tmp_path / "certs" / "shop" / "ca.pem"
        ca.write_bytes((tmp_path / "other" / "bank" / "ca.pem").read_bytes())
        started = time.monotonic()
        refused = ended([*made.command("shop"), "--connect", address])
    assert refused.returncode == 4
    assert "TLS with the label party failed" in refused.stderr
    assert time.monotonic() - started < 30


def test_a_label_party_that_is_not_there_is_reported_with_status_4(tmp_path):
    made = federation(tmp_path, ("shop",))
    config = made.config("shop")
    config.write_text(config.read_text() + "\n[limits]\nconnect_seconds = 0.3\n")
    status, _, words = run("join", "-c", config, "--connect", "127.0.0.1:9")
    assert status == 4
    assert "cannot be reached" in words


def test_a_party_that_is_done_does_not_wait_long_for_one_that_is_gone(tmp_path, monkeypatch):
    monkeypatch.setattr(joining, "CONFIRM_SECONDS", 0.3)
    made, said = federation(tmp_path, ("shop",)), []
    file = made.config("shop")
    file.write_text(file.read_text() + "\n[limits]\nconnect_seconds = 100000\n")
    config = load_feature(file)
    with open_ledger(config.ledger) as ledger:
        visit = joining._Visit(
            config, "127.0.0.1:9", identity_of(made, "shop"), ledger, said.append
        )
        in_time(lambda: visit._confirm("20260102T030405Z-01020304"))
    assert said == ["Waiting for bank at 127.0.0.1:9, at most 0.3 s ..."]


def test_a_party_does_not_join_twice_at_once(tmp_path):
    made = federation(tmp_path, ("shop", "telco"), align="given")
    with serving(made) as (_, address):
        waiting = Party([*made.command("shop"), "--connect", address])
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/sent")))
        second = ended([*made.command("shop"), "--connect", address])
        stop(waiting)
    assert second.returncode == 2
    assert "Another process is already working" in second.stderr


def test_a_label_that_cannot_be_learned_is_refused_before_parties_are_let_in(tmp_path):
    made = federation(tmp_path, ("shop",))
    table = columns(NAMES[:2]).append_column("ill", pa.array(np.ones(ROWS, dtype=int)))
    pa.parquet.write_table(table, tmp_path / LABEL_PARTY / "table.parquet")
    status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    assert status == 5
    assert "'ill' is the label and holds only one value" in words
    assert not list((tmp_path / LABEL_PARTY / "state").glob("*/job.json"))


def test_two_label_parties_do_not_share_a_state(tmp_path):
    made = federation(tmp_path, ("shop",))
    with serving(made):
        status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    assert status == 2
    assert "Another process is already working" in words
