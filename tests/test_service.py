"""Real processes over real TLS on loopback: the whole job, restarts, and peers that mean harm."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest
from sklearn.datasets import load_breast_cancer

import opboost as op
from opboost.config.federation import load_job
from opboost.experiments.scene import (
    LABEL_PARTY,
    run_scene,
    started_process,
    wait_for_address,
    write_scene,
)
from opboost.service.certs import new_kit
from opboost.service.join import Connection
from opboost.service.tls import Identity, read_identity
from opboost.wire.columns import FIELDS
from opboost.wire.messages import (
    Ack,
    Hello,
    Poll,
    Receipt,
    SplitQuery,
    SplitValues,
    Values,
    Welcome,
    encode,
)
from tests.cli import run

DATA = load_breast_cancer()
NAMES = [str(n) for n in DATA.feature_names]
BOUNDS = {
    n: (float(DATA.data[:, j].min()) * 0.9, float(DATA.data[:, j].max()) * 1.1)
    for j, n in enumerate(NAMES)
}
ROWS = len(DATA.target)
IDS = pa.array([f"person-{i:04d}" for i in range(ROWS)])
BOOSTER = {"num_boost_round": 10, "max_depth": 3, "nthread": 1}


def columns(names, ids=IDS):
    found = {n: DATA.data[:, NAMES.index(n)] for n in names}
    return pa.table({**found, "id": ids})


def scene(folder, parties=("shop", "telco"), **settings):
    own = columns(NAMES[:2]).append_column("ill", pa.array(DATA.target))
    tables = {p: columns(NAMES[3 + 2 * i : 5 + 2 * i]) for i, p in enumerate(parties)}
    settings = {"epsilon": 2.0, "booster": BOOSTER, **settings}
    return write_scene(folder, own, "ill", tables, BOUNDS, **settings)


def test_three_processes_make_one_model_and_come_back_to_the_same(tmp_path):
    made = scene(tmp_path, ledger={"cap_attribute": 18.0})
    outcome = run_scene(made, timeout=120)
    manifest = outcome.manifests[LABEL_PARTY]
    assert manifest["rows"] == ROWS
    assert set(manifest["parties"]) == {"shop", "telco"}
    assert manifest["total"] == pytest.approx(4 * 18.0)
    for name in made.parties:
        theirs = outcome.manifests[name]
        assert theirs["phase"] == "done"
        assert theirs["total"] == pytest.approx(36.0)
        assert theirs["versions"]["opboost"] == op.__version__
    model = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    table = columns(NAMES[:7]).drop_columns(["id"]).select(list(model.feature_names_in_))
    assert (model.predict(table) == DATA.target).mean() > 0.85
    no_secret_is_written(tmp_path)

    # A second run of the job: byte-identical codes, nothing charged, the same model.
    first = model.predict_proba(table)
    codes = sent_codes(tmp_path)
    (tmp_path / LABEL_PARTY / "model.opboost").unlink()
    serving = started_process([*made.command(LABEL_PARTY), "--again"])
    joined(made, wait_for_address(serving))
    assert serving.wait(60) == 0
    serving.communicate()
    assert sent_codes(tmp_path) == codes
    again = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert np.array_equal(again.predict_proba(table), first)
    for name in made.parties:
        assert run("ledger", "verify", "-c", made.config(name))[0] == 0
        receipts = tmp_path / LABEL_PARTY / "state"
        status, out, _ = run("ledger", "show", "-c", made.config(name), "--format", "json")
        assert status == 0
        shown = json.loads(out)
        assert [r.get("new_cells") for r in shown["releases"]] == [2 * ROWS, None, 0, None]
        assert shown["spent"][0]["most"] == 18.0
        # The label party's folder holds the other's receipts too: they are not this one's.
        checked = run("ledger", "verify", "-c", made.config(name), "--receipts", receipts)
        assert checked[:2] == (0, "whole: 8 entries, 2 receipts\n")

    # A finished job says so, and status tells; a model that was lost is written again.
    (tmp_path / LABEL_PARTY / "model.opboost").unlink()
    assert run("serve", "-c", made.config(LABEL_PARTY))[0] == 0
    again = op.load(tmp_path / LABEL_PARTY / "model.opboost")
    assert np.array_equal(again.predict_proba(table), first)
    status, out, _ = run("serve", "-c", made.config(LABEL_PARTY), "--status", "--format", "json")
    assert json.loads(out)["phase"] == "done"

    # A ledger that is rolled back is refused by the next join, before a byte leaves.
    for file in (tmp_path / "shop" / "ledger").iterdir():
        file.unlink()
    (tmp_path / "keys" / "shop.key").unlink()
    serving = started_process([*made.command(LABEL_PARTY), "--again"])
    address = wait_for_address(serving)
    refused = subprocess.run(
        [*made.command("shop"), "--connect", address], capture_output=True, text=True
    )
    assert refused.returncode == 3, refused.stderr
    assert "rolled back" in refused.stderr
    stop(serving)
    assert not list((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/.*"))
    status, _, words = run(
        "ledger", "verify", "-c", made.config("shop"), "--receipts", tmp_path / LABEL_PARTY
    )
    assert status == 3, words


def joined(made, address, *more, parties=None):
    processes = [
        started_process([*made.command(name), "--connect", address, *more])
        for name in parties or made.parties
    ]
    said = [p.communicate(timeout=120) for p in processes]
    for process, (_, err) in zip(processes, said, strict=True):
        assert process.returncode == 0, err
    return [json.loads(out) for out, _ in said]


def sent_codes(folder):
    newest = sorted((folder / LABEL_PARTY / "state").glob("*/job.json"))[-1].parent
    return {
        str(f.relative_to(newest)): f.read_bytes() for f in sorted(newest.glob("parties/*/*.arrow"))
    }


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)


def no_secret_is_written(folder):
    """Neither raw values nor IDs in logs, in what the label party holds, or in a ledger."""
    theirs = [f for f in folder.rglob("*") if f.is_file() and f.name != "table.parquet"]
    raw = [repr(float(v)).encode() for n in NAMES[3:7] for v in DATA.data[:50, NAMES.index(n)]]
    for file in theirs:
        content = file.read_bytes()
        assert b"person-0" not in content, file
        if ("shop" in file.parts and "state" in file.parts) or LABEL_PARTY in file.parts:
            found = [v for v in raw if len(v) > 4 and v in content]
            assert not found, (file, found)


@contextlib.contextmanager
def serving(made, *more):
    process = started_process([*made.command(LABEL_PARTY), *more])
    try:
        yield process, wait_for_address(process)
    finally:
        if process.poll() is None:
            stop(process)
        else:
            process.communicate()


def test_a_party_may_leave_and_come_back_and_the_label_party_may_die(tmp_path):
    made = scene(tmp_path, ("shop",))
    label = made.command(LABEL_PARTY)
    process = started_process(label)
    (left,) = joined(made, wait_for_address(process), "--leave")
    assert left["phase"] == "released"
    os.kill(process.pid, signal.SIGKILL)  # before, while or after it trains
    process.communicate()
    gate_is_gone(tmp_path)
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
    assert [e["kind"] for e in entries] == ["open", "reserve", "draw", "commit", "answer"]


def test_an_answer_that_cannot_be_true_is_refused_at_the_gate(tmp_path):
    made = scene(tmp_path, ("shop",))
    with serving(made) as (process, address):
        joined(made, address, "--leave")
        query_file = "*/parties/shop/query"
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob(query_file)))
        connection, welcome = shaken_hands(made, address, identity_of(made, "shop"))
        query = connection.call("poll", Poll(welcome.job), SplitQuery)
        digest = hashlib.sha256(encode(query)).digest()
        lies = tuple(Values(c.column, "grid", (99.0,) * len(c.codes)) for c in query.columns)
        for lie, words in (
            (SplitValues(welcome.job, digest, lies), "do not rise on its grid"),
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
    made = scene(tmp_path, ("shop",))
    with serving(made) as (_, address):
        shaken_hands(made, address, identity_of(made, "shop"))[0].close()
    config = made.config(LABEL_PARTY)
    config.write_text(config.read_text() + "\n[peers.shop]\nrevoked = true\n")
    words = r"Party 'shop' is revoked"
    with serving(made) as (_, address), pytest.raises(op.PeerError, match=words):
        shaken_hands(made, address, identity_of(made, "shop"))


def gate_is_gone(folder):
    wait_for(lambda: not any(str(folder) in line for line in gates()))


def gates():
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().decode(errors="replace")
            if "opboost.service.gate" in words:
                found += [os.readlink(f) for f in (entry.parent / "fd").iterdir() if f.exists()]
    return found


def wait_for(there, seconds=60):
    end = time.monotonic() + seconds
    while not there():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_a_feature_party_that_is_killed_starts_again_and_is_charged_once(tmp_path):
    made = scene(tmp_path)
    with serving(made) as (process, address):
        for delay in (0.9, 1.3, 1.7):
            victim = started_process([*made.command("shop"), "--connect", address])
            time.sleep(delay)
            victim.kill()
            victim.communicate()
        done = joined(made, address)
        assert [d["phase"] for d in done] == ["done", "done"]
        assert process.wait(30) == 0
    shown = json.loads(run("ledger", "show", "-c", made.config("shop"), "--format", "json")[1])
    assert sum(r.get("new_cells") or 0 for r in shown["releases"]) <= 2 * ROWS
    assert shown["spent"][0] == {
        "attribute": shown["spent"][0]["attribute"],
        "people": ROWS,
        "most": 18.0,
        "cap": None,
    }


def test_a_release_over_the_cap_ends_with_3_before_a_byte_leaves(tmp_path):
    made = scene(tmp_path, ("shop",), ledger={"cap_attribute": 17.9})
    with serving(made) as (_, address):
        refused = subprocess.run(
            [*made.command("shop"), "--connect", address], capture_output=True, text=True
        )
        assert refused.returncode == 3, refused.stderr
        assert "no more than 17.9 may be spent" in refused.stderr
        state = tmp_path / LABEL_PARTY / "state"
        assert not list(state.glob("*/parties/shop/*"))


def test_another_job_file_is_refused_with_both_hashes(tmp_path):
    made = scene(tmp_path, ("shop",))
    with serving(made) as (_, address):
        job = made.folder / "shop" / "job.toml"
        job.write_text(job.read_text() + "# a word more\n")
        refused = subprocess.run(
            [*made.command("shop"), "--connect", address], capture_output=True, text=True
        )
    assert refused.returncode == 4
    assert "The job files differ" in refused.stderr


def test_rows_in_another_order_are_refused_before_anything_is_drawn(tmp_path):
    made = scene(tmp_path, ("shop",))
    table = columns(NAMES[3:5], IDS[::-1])
    pa.parquet.write_table(table, tmp_path / "shop" / "table.parquet")
    with serving(made) as (_, address):
        refused = subprocess.run(
            [*made.command("shop"), "--connect", address], capture_output=True, text=True
        )
    assert refused.returncode == 4
    assert "not the label party's in the same order" in refused.stderr
    entries = json.loads(run("ledger", "export", "-c", made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open"]


def test_plaintext_has_a_loud_name_and_stays_on_loopback(tmp_path):
    made = scene(tmp_path, ("shop",))
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
    assert "Plaintext is for trying things out" in words
    assert run("join", "-c", made.config("shop"), loud, "--connect", "10.0.0.1:1")[0] == 2


def test_metrics_are_served_on_request(tmp_path):
    from urllib.request import urlopen

    from opboost.service.metrics import serving_metrics

    made = scene(tmp_path, ("shop",))
    state = tmp_path / LABEL_PARTY / "state"
    with serving_metrics("127.0.0.1:0", state) as port:
        page = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        assert "opboost_jobs 0" in page
        with serving(made):
            page = urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
    assert 'opboost_phase{party="shop",phase="expected"} 1' in page
    assert f"opboost_rows {ROWS}" in page


# Peers that mean harm: one label party, all attacks, and when they end the honest parties finish.


@pytest.fixture(scope="module")
def besieged(tmp_path_factory):
    made = scene(tmp_path_factory.mktemp("siege"), ("shop", "telco", "former"))
    config = made.config(LABEL_PARTY)
    text = config.read_text() + "\n[peers.former]\nrevoked = true\n\n[limits]\nmemory_mb = 512\n"
    config.write_text(text)
    with serving(made) as (process, address):
        yield made, address
        # What the attackers left in their own mailbox goes; then the honest parties finish.
        shutil.rmtree(made.folder / LABEL_PARTY / "state" / job_of(made) / "parties" / "shop", True)
        done = joined(made, address, parties=["shop", "telco"])
        assert [d["phase"] for d in done] == ["done", "done"]
        assert process.wait(30) == 0
        assert all("person-" not in json.dumps(line) for line in log_lines(made))


def job_of(made):
    (file,) = (made.folder / LABEL_PARTY / "state").glob("*/job.json")
    return file.parent.name


def identity_of(made, party):
    from opboost.config.federation import Tls

    kit = made.folder / "certs" / party
    return read_identity(Tls(kit / "ca.pem", kit / "cert.pem", kit / "key.pem"), party)


def shaken_hands(made, address, identity, party=None, job=None):
    connection = Connection(address, party or identity.name, LABEL_PARTY, identity)
    job = job or load_job(made.folder / "shop" / "job.toml").hash
    hello = Hello(party or identity.name, job)
    return connection, connection.call("hello", hello, Welcome)


@pytest.fixture
def attacker(besieged):
    """The shop, which has a true certificate and means harm."""
    made, address = besieged
    connection, welcome = shaken_hands(made, address, identity_of(made, "shop"))
    yield connection, welcome
    connection.close()


def release_of(made, welcome, party="shop"):
    from opboost.config.federation import load_feature
    from opboost.party.feature import FeatureParty

    config = load_feature(made.config(party))
    feature = FeatureParty(
        config.table, config.plan, ids="id", name=party, state=made.folder / f"attack-{party}"
    )
    return feature.release(welcome)


def as_identity(kit, ca, name):
    return Identity(name, ca, (kit / "cert.pem").read_bytes(), (kit / "key.pem").read_bytes())


def test_who_has_no_certificate_is_not_let_in(besieged):
    made, address = besieged
    ca = (made.folder / "certs" / "ca" / "ca.pem").read_bytes()
    client = flight.FlightClient(
        f"grpc+tls://{address}", tls_root_certs=ca, override_hostname=LABEL_PARTY
    )
    with pytest.raises((flight.FlightUnavailableError, flight.FlightUnauthenticatedError)):
        list(client.do_action(flight.Action("hello", b"")))


@pytest.mark.parametrize("kind", ["wrong authority", "expired"])
def test_who_has_no_good_certificate_is_not_let_in(besieged, tmp_path, kind):
    made, address = besieged
    ca = (made.folder / "certs" / "ca" / "ca.pem").read_bytes()
    if kind == "expired":
        os.symlink(made.folder / "certs" / "ca", tmp_path / "ca")
    kit = new_kit("shop", tmp_path, days=-1.0 if kind == "expired" else 30.0)
    with pytest.raises(op.PeerError):
        shaken_hands(made, address, as_identity(kit, ca, "shop"))


def test_who_is_no_party_of_the_job_or_revoked_is_told_so(besieged):
    made, address = besieged
    new_kit("stranger", made.folder / "certs")
    with pytest.raises(op.PeerError, match=r"'stranger' is no party of this job"):
        shaken_hands(made, address, identity_of(made, "stranger"))
    with pytest.raises(op.PeerError, match=r"Party 'former' is revoked"):
        shaken_hands(made, address, identity_of(made, "former"))


def test_a_feature_party_does_not_talk_to_another_than_the_label_party(besieged, tmp_path):
    """The server's certificate must be the label party's: another party's is not enough."""
    made, address = besieged
    connection = Connection(address, "shop", "telco", identity_of(made, "shop"))
    with pytest.raises(op.PeerError):
        connection.call("hello", Hello("shop", bytes(32)), Welcome)


def test_a_party_acts_only_as_itself(besieged, attacker):
    made, address = besieged
    with pytest.raises(op.PeerError, match=r"certificate is for 'shop', the message from 'telco'"):
        shaken_hands(made, address, identity_of(made, "shop"), "telco")
    connection, welcome = attacker
    theirs, _ = release_of(made, welcome, "telco")
    with pytest.raises(op.PeerError, match=r"'shop' sent a release in the name of 'telco'"):
        connection.call("schema", theirs, Ack)


def test_nothing_of_another_party_can_be_fetched(attacker):
    connection, _ = attacker
    client = connection._client
    for attempt in (
        lambda: list(client.list_flights()),
        lambda: list(client.list_actions()),
        lambda: client.do_get(flight.Ticket(b"telco")).read_all(),
        lambda: client.get_flight_info(flight.FlightDescriptor.for_path("telco")),
        lambda: list(client.do_action(flight.Action("exec", b"ls"))),
    ):
        with pytest.raises((flight.FlightError, pa.ArrowException, NotImplementedError)):
            attempt()


def changed(schema, **change):
    import dataclasses

    return dataclasses.replace(schema, **change)


def test_a_schema_that_does_not_fit_is_refused(besieged, attacker):
    made, _ = besieged
    connection, welcome = attacker
    schema, _ = release_of(made, welcome)
    for change, words in (
        ({"rows": ROWS + 1}, "sent 570 rows; the label party has 569"),
        ({"ids": bytes(32)}, "not the label party's in the same order"),
        ({"job": "20200101T000000Z-00000000"}, "of job '20200101T000000Z-00000000'"),
    ):
        with pytest.raises(op.PeerError, match=words):
            connection.call("schema", changed(schema, **change), Ack)


def test_messages_of_another_job_or_kind_are_refused(attacker):
    connection, welcome = attacker
    for step, message, words in (
        ("poll", Poll("20200101T000000Z-00000000"), "another job"),
        ("answer", SplitValues(welcome.job, bytes(32), ()), "nobody asked for"),
        ("hello", Poll(welcome.job), "nobody asked for: 'poll'"),
        ("sent", Ack(welcome.job, "sent"), "0 of 0 columns|1 of 2|0 of 2"),
    ):
        with pytest.raises(op.PeerError, match=words):
            connection.call(step, message, Ack)
    with pytest.raises(op.PeerError, match=r"altered|no message of OpBoost"):
        raw_action(connection, "hello", b"\x00" * 100)


def raw_action(connection, step, body):
    from opboost.service.join import _spoken

    with _spoken():
        return list(connection._client.do_action(flight.Action(step, body)))


def raw_put(connection, job, number, schema, batches):
    from opboost.service.join import _spoken

    path = flight.FlightDescriptor.for_path(job, str(number))
    with _spoken():
        writer, _ = connection._client.do_put(path, schema)
        try:
            for b in batches:
                writer.write_batch(b)
            writer.done_writing()
        finally:
            writer.close()


def test_columns_that_lie_are_refused(besieged, attacker):
    made, _ = besieged
    connection, welcome = attacker
    schema, files = release_of(made, welcome)
    connection.call("schema", schema, Ack)
    connection.call("schema", schema, Ack)  # repeated: nothing happens
    with pytest.raises(op.PeerError, match=r"came before the receipt"):
        connection.put(welcome.job, 0, files[0])
    receipt = identity_of(made, "shop").sign(welcome.job, 3, bytes(32))
    connection.call("receipt", receipt, Ack)
    with pa.OSFile(str(files[0])) as file, pa.ipc.open_stream(file) as stream:
        honest, batches = stream.schema, list(stream)
    notes = dict(honest.metadata)

    def head(**change):
        plain = json.loads(notes[b"opboost"]) | change
        return FIELDS.with_metadata({**notes, b"opboost": json.dumps(plain).encode()})

    from opboost.wire.coding import pack_integers

    count = json.loads(notes[b"opboost"])["symbols"]
    off_grid = pack_integers(np.array([50, *([1] * (count - 1))]))
    junk = pa.record_batch([pa.array([os.urandom(4 * 200)], pa.binary())], schema=FIELDS)
    for fields, sent, words in (
        (head(rows=ROWS - 1), batches, "568 rows, the schema 569"),
        (head(digest="00" * 32), batches, "digest"),
        (head(version=7), batches, "version 7"),
        (head(column=1), batches, "where column 0 was due"),
        (FIELDS.with_metadata({**notes, b"values": off_grid}), batches, "outside its grid"),
        (honest, [], "ended after 0 of its 569 rows"),
        (honest, batches * 50, "goes on after its last row"),
        (honest, [junk], "damaged"),
        (pa.schema([("data", pa.int64())]), [], "other fields"),
    ):
        with pytest.raises(op.PeerError, match=words):
            raw_put(connection, welcome.job, 0, fields, sent)
    for job, number in ((welcome.job, "7"), ("20200101T000000Z-00000000", "0"), ("..", "0")):
        with pytest.raises(op.PeerError):
            raw_put(connection, job, number, honest, batches)
    assert not list((made.folder / LABEL_PARTY / "state").glob("*/parties/shop/*.arrow"))
    connection.put(welcome.job, 0, files[0])
    connection.put(welcome.job, 0, files[0])  # repeated: nothing happens
    with pytest.raises(op.PeerError, match=r"came again with other codes"):
        raw_put(connection, welcome.job, 0, head(digest="00" * 32), batches)
    with pytest.raises(op.PeerError, match=r"1 of 2 columns have come"):
        connection.call("sent", Ack(welcome.job, "sent"), Ack)


def test_a_receipt_of_someone_else_is_refused(besieged, attacker, tmp_path):
    made, _ = besieged
    connection, welcome = attacker
    other = identity_of(made, "telco").sign(welcome.job, 3, bytes(32))
    ca = (made.folder / "certs" / "ca" / "ca.pem").read_bytes()
    forged = as_identity(new_kit("shop", tmp_path / "other"), ca, "shop")
    own = identity_of(made, "shop").sign(welcome.job, 3, bytes(32))
    for receipt in (
        other,
        changed(other, party="shop"),
        changed(own, entry=4),
        changed(own, head=bytes(31) + b"1"),
        forged.sign(welcome.job, 3, bytes(32)),
        Receipt("shop", welcome.job, 3, bytes(32), b"no certificate", b""),
    ):
        with pytest.raises(op.PeerError, match=r"receipt"):
            connection.call("receipt", receipt, Ack)


def test_a_decompression_bomb_ends_the_call_not_the_gate(besieged, attacker):
    """46 kB of zstd that unpack to 1.5 GB: the gate's memory limit holds."""
    made, _ = besieged
    connection, welcome = attacker
    _, files = release_of(made, welcome)
    with pa.OSFile(str(files[1])) as file, pa.ipc.open_stream(file) as stream:
        honest = stream.schema
    size = 1_500_000_000
    bomb = pa.record_batch([pa.array([bytes(size)], pa.binary())], schema=FIELDS)
    options = flight.FlightCallOptions(write_options=pa.ipc.IpcWriteOptions(compression="zstd"))
    path = flight.FlightDescriptor.for_path(welcome.job, "1")
    writer, _ = connection._client.do_put(path, honest, options)
    writer.write_batch(bomb)
    with pytest.raises((flight.FlightError, pa.ArrowException), match=r"more memory"):
        writer.close()
    again, _ = shaken_hands(made, besieged[1], identity_of(made, "telco"))
    again.close()
    lines = log_lines(made)
    assert any("memory" in line.get("why", "") for line in lines), lines[-5:]


def log_lines(made):
    (file,) = (made.folder / LABEL_PARTY / "state").glob("*/gate.jsonl")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_flood_of_calls_is_cut_off_and_others_are_served(besieged, attacker):
    made, address = besieged
    connection, welcome = attacker
    from concurrent.futures import ThreadPoolExecutor

    def poll(_):
        try:
            connection.call("poll", Poll(welcome.job), Ack)
        except op.PeerError as error:
            return str(error)
        return "held"

    with ThreadPoolExecutor(60) as pool:
        flood = pool.map(poll, range(60))
        other, _ = shaken_hands(made, address, identity_of(made, "telco"))
        other.close()
        said = list(flood)
    assert sum("calls open already" in words for words in said) >= 20


def test_a_message_that_ends_the_gate_does_not_end_the_service(besieged, attacker):
    made, address = besieged
    connection, _ = attacker
    with contextlib.suppress(flight.FlightError, pa.ArrowException, op.PeerError):
        raw_action(connection, "hello", bytes(700_000_000))
    wait_for(lambda: _answers(made, address))


def _answers(made, address):
    try:
        other, _ = shaken_hands(made, address, identity_of(made, "telco"))
    except op.PeerError:
        return False
    other.close()
    return True


def test_the_verb_makes_kits_and_refuses_to_overwrite(tmp_path):
    status, out, words = run("certs", "new", "shop", "--dir", tmp_path)
    assert (status, out.strip()) == (0, str(tmp_path / "shop"))
    assert "keep" in words
    assert (tmp_path / "shop" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "ca" / "ca.key").stat().st_mode & 0o777 == 0o600
    assert run("certs", "new", "shop", "--dir", tmp_path)[0] == 2
    assert run("certs", "new", "Not A Name", "--dir", tmp_path)[0] == 2


def test_certificates_are_checked_before_a_peer_would(tmp_path):
    made = scene(tmp_path, ("shop",))
    config = made.config("shop")
    text = config.read_text()
    for change, status, words in (
        (('kit = "../certs/shop"', 'kit = "../certs/bank"'), 2, "is for bank"),
        (('kit = "../certs/shop"', 'kit = "../certs/none"'), 2, "cannot be read"),
        (("[tls]\nkit = \"../certs/shop\"\n", ""), 2, "There is no [tls]"),
        (('name = "shop"', 'name = "stop"'), 2, "no feature party of job"),
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
    made = scene(tmp_path, ("shop",))
    new_kit("bank", tmp_path / "other")
    with serving(made) as (_, address):
        ca = tmp_path / "certs" / "shop" / "ca.pem"
        ca.write_bytes((tmp_path / "other" / "bank" / "ca.pem").read_bytes())
        started = time.monotonic()
        refused = subprocess.run(
            [*made.command("shop"), "--connect", address], capture_output=True, text=True
        )
    assert refused.returncode == 4
    assert "TLS with the label party failed" in refused.stderr
    assert time.monotonic() - started < 30


def test_a_label_party_that_is_not_there_is_told_with_status_4(tmp_path):
    made = scene(tmp_path, ("shop",))
    config = made.config("shop")
    config.write_text(config.read_text() + "\n[limits]\nconnect_seconds = 0.3\n")
    status, _, words = run("join", "-c", config, "--connect", "127.0.0.1:9")
    assert status == 4
    assert "cannot be reached" in words


def test_a_party_does_not_join_twice_at_once(tmp_path):
    made = scene(tmp_path, ("shop", "telco"))
    with serving(made) as (_, address):
        waiting = started_process([*made.command("shop"), "--connect", address])
        wait_for(lambda: list((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/sent")))
        second = subprocess.run(
            [*made.command("shop"), "--connect", address], capture_output=True, text=True
        )
        stop(waiting)
    assert second.returncode == 2
    assert "Another process already works" in second.stderr


def test_a_label_that_cannot_be_learned_is_refused_before_parties_are_let_in(tmp_path):
    made = scene(tmp_path, ("shop",))
    table = columns(NAMES[:2]).append_column("ill", pa.array(np.ones(ROWS, dtype=int)))
    pa.parquet.write_table(table, tmp_path / LABEL_PARTY / "table.parquet")
    status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    assert status == 5
    assert "'ill' is the label and holds one value only" in words
    assert not list((tmp_path / LABEL_PARTY / "state").glob("*/job.json"))


def test_two_label_parties_do_not_share_a_state(tmp_path):
    made = scene(tmp_path, ("shop",))
    with serving(made):
        status, _, words = run("serve", "-c", made.config(LABEL_PARTY))
    assert status == 2
    assert "Another process already works" in words
