"""Peers that mean harm: all attacks on one label party, whose job the honest ones then finish."""

from __future__ import annotations

import contextlib
import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.flight as flight
import pytest

import opboost as op
from opboost.experiments.scene import (
    LABEL_PARTY,
)
from opboost.service.certs import new_kit
from opboost.service.join import Connection
from opboost.wire.columns import FIELDS
from opboost.wire.messages import (
    Ack,
    Hello,
    Poll,
    Receipt,
    SplitValues,
    Welcome,
)
from tests.federation import (
    ROWS,
    as_identity,
    identity_of,
    joined,
    scene,
    serving,
    shaken_hands,
    wait_for,
)


@pytest.fixture(scope="module")
def besieged(tmp_path_factory):
    made = scene(tmp_path_factory.mktemp("siege"), ("shop", "telco", "former"), align="given")
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
    schema, files = release_of(made, welcome)
    connection.call("schema", schema, Ack)
    connection.call("receipt", identity_of(made, "shop").sign(welcome.job, 3, bytes(32)), Ack)
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
