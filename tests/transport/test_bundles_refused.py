"""Bundles that are out of turn, forged or not allowed are refused, and nothing changes."""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from opboost.config.job_file import load_job
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import PeerError
from opboost.parties.row_proof import RowProof
from opboost.protocol.column_streams import FIELDS
from opboost.protocol.messages import (
    Aligned,
    Cuts,
    Points,
    Proof,
    Schema,
    SplitQuery,
    decode,
    encode,
)
from opboost.psi.blinding import Secret
from opboost.psi.common_rows import packed
from opboost.transport.label.job_folder import PartyFolder
from opboost.transport.shared.bundle_file import Header, open_bundle, write_bundle
from opboost.transport.shared.bundle_keys import read_key, read_public
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import IDS, NAMES, ROWS, columns, federation, identity_of
from tests.support.parties import refused


@pytest.fixture
def office(tmp_path):
    return Office(federation(tmp_path, align="given"))


@pytest.fixture
def small(tmp_path):
    return Office(federation(tmp_path, ("shop",), align="given"))


def test_bundles_that_are_not_due_here_and_now_are_refused_and_nothing_changes(office):
    first = office.begun()
    status, words = refused(office, "telco", "export", first["shop"])
    assert (status, "is for 'shop'; this party is 'telco'." in words) == (4, True)
    wrong = refused(office, "shop", "answer", first["shop"])[1]
    assert "it is for 'opboost bundle export'" in wrong
    assert refused(office, LABEL_PARTY, "split-query", first["shop"])[0] == 4
    exports = {p: office.written(p, "export", first[p])[LABEL_PARTY] for p in office.made.parties}

    # Bundles that were damaged on the way, or spliced from two.
    damaged = Path(exports["shop"]).with_name("damaged.bundle")
    whole = Path(exports["shop"]).read_bytes()
    other = Path(exports["telco"]).read_bytes()
    for data, said in (
        (whole[:-1], "cut short"),
        (whole + b"\0", "bytes were added"),
        (whole[:900] + bytes([whole[900] ^ 1]) + whole[901:], "altered"),
        (whole[:1000] + other[1000:1100] + whole[1100:], "altered"),
    ):
        damaged.write_bytes(data)
        status, words = refused(office, LABEL_PARTY, "split-query", damaged)
        assert (status, said in words) == (4, True), words
    damaged.unlink()
    both = [exports["shop"], exports["shop"]]
    assert "are both from 'shop'" in refused(office, LABEL_PARTY, "split-query", *both)[1]
    wrong = refused(office, LABEL_PARTY, "finish", exports["shop"])[1]
    assert "it is for 'opboost bundle split-query'" in wrong
    # With one valid bundle and one invalid, neither is used.
    mixed = [exports["shop"], first["telco"]]
    assert refused(office, LABEL_PARTY, "split-query", *mixed)[0] == 4

    # Bundles may arrive one by one; after the last, the job continues.
    said = office.run(LABEL_PARTY, "split-query", exports["shop"])
    assert (said["written"], said["waiting"]) == ([], {"telco": "export"})
    queries = office.written(LABEL_PARTY, "split-query", exports["telco"])
    assert set(queries) == {"shop", "telco"}


def test_a_used_bundle_is_refused_also_later(small):
    first = small.begun()["shop"]
    export = small.written("shop", "export", first)[LABEL_PARTY]
    query = small.written(LABEL_PARTY, "split-query", export)["shop"]
    answer = small.written("shop", "answer", query)[LABEL_PARTY]
    assert "was used before" in refused(small, "shop", "export", first)[1]
    small.run(LABEL_PARTY, "finish", answer)
    assert "was used before" in refused(small, LABEL_PARTY, "split-query", export)[1]
    status, words = refused(small, LABEL_PARTY, "align")
    assert (status, "--again" in words) == (2, True)

    # A new run of the job accepts no bundles of the old one.
    second = small.begun("--again")["shop"]
    assert "belongs to job" in refused(small, LABEL_PARTY, "split-query", export)[1]
    assert "was used before" in refused(small, "shop", "export", first)[1]
    small.written("shop", "export", second)


def test_rows_in_another_order_are_refused_before_anything_is_drawn(small):
    table = columns(NAMES[3:5], IDS[::-1])
    pa.parquet.write_table(table, small.made.folder / "shop" / "table.parquet")
    done = small.tried("shop", "export", small.begun()["shop"])
    assert done.returncode == 4
    assert "not the label party's in the same order" in done.stderr
    assert not small.out("shop").exists()
    entries = json.loads(run("ledger", "export", "-c", small.made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open"]


def test_a_release_over_the_cap_or_with_a_rolled_back_ledger_ends_with_3(tmp_path):
    capped = Office(
        federation(tmp_path / "a", ("shop",), align="given", ledger={"cap_attribute": 17.9})
    )
    done = capped.tried("shop", "export", capped.begun()["shop"])
    assert (done.returncode, "no more than 17.9" in done.stderr) == (3, True)
    assert not capped.out("shop").exists()

    rolled = Office(federation(tmp_path / "b", ("shop",), align="given"))
    rolled.model()
    shutil.rmtree(rolled.made.folder / "shop" / "ledger")
    shutil.rmtree(rolled.made.folder / "keys")
    again = rolled.begun("--again")["shop"]
    done = rolled.tried("shop", "export", again)
    assert (done.returncode, "rolled back" in done.stderr) == (3, True)


def test_a_revoked_party_and_a_stranger_are_turned_away(office):
    first = office.begun()
    export = office.written("shop", "export", first["shop"])[LABEL_PARTY]
    config = office.made.config(LABEL_PARTY)
    config.write_text(config.read_text() + "\n[peers.shop]\nrevoked = true\n")
    assert "'shop', which is revoked" in refused(office, LABEL_PARTY, "split-query", export)[1]
    # The others continue without it.
    export = office.written("telco", "export", first["telco"])[LABEL_PARTY]
    assert set(office.written(LABEL_PARTY, "split-query", export)) == {"telco"}


def lying(office, party, honest, verb):
    """Return a function with which ``party`` sends any content in a correctly signed bundle."""
    folder, peer = office.made.folder, LABEL_PARTY if party != LABEL_PARTY else "shop"
    identity = identity_of(office.made, party)
    bundle = open_bundle(Path(honest), identity.ca)
    inside = folder / "inside"
    inside.mkdir()
    bundle.extract(read_key(folder / "certs" / peer / "encryption.key"), inside)
    items = {f.name: f.read_bytes() for f in sorted(inside.iterdir())}
    shutil.rmtree(inside)
    public = read_public(folder / "certs" / f"{peer}.public", peer, identity.ca)

    def lie(changes):
        path = folder / "lie.bundle"
        told = {n: d for n, d in {**items, **changes}.items() if d is not None}
        write_bundle(path, bundle.header, told, identity, public)
        status, words = refused(office, peer, verb, path)
        assert words.startswith("lie.bundle: ")
        return status, words

    return lie, items


def test_points_that_do_not_hold_together_are_refused_and_leave_nothing(tmp_path):
    office = Office(federation(tmp_path, ("shop",)))
    first = office.begun()["shop"]
    lie, items = lying(office, LABEL_PARTY, first, "align")
    points = decode(items["00000.label"], Points)
    other = encode(replace(points, job="20260101T000000Z-00000000"))
    off, twice = points.points[:-32] + b"\2" + bytes(31), points.points[:32] * ROWS
    for changes, said in (
        ({"00000.label": None}, "items are not those"),
        ({"00001.label": items["00000.label"]}, "items are not those"),
        ({"welcome": None}, "items are not those"),
        ({"00000.label": items["welcome"]}, "unexpected kind"),
        ({"00000.label": encode(replace(points, step="feature"))}, "another job or step"),
        ({"00000.label": other}, "another job or step"),
        ({"00000.label": encode(replace(points, points=off))}, "does not lie on the curve"),
        ({"00000.label": encode(replace(points, points=twice))}, "occurs twice"),
    ):
        assert said in first_refusal(office, lie, changes)
    met = office.written("shop", "align", first)[LABEL_PARTY]
    lie, items = lying(office, "shop", met, "align")
    points = decode(items["00000.feature"], Points)
    for changes, said in (
        ({"00000.raised": None}, "items are not those"),
        ({"00001.feature": items["00000.feature"]}, "items are not those"),
        ({"00000.raised": items["00000.feature"]}, "out of order"),
        ({"00000.feature": encode(replace(points, tag=bytes(16)))}, "out of order"),
        ({"00000.raised": encode(shortened(items["00000.raised"]))}, "not the label party's"),
    ):
        status, words = lie(changes)
        assert (status, said in words) == (4, True), words


def first_refusal(office, lie, changes):
    """Check that a feature party opens its ledger, but sends, keeps and records nothing else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.support.parties.tree", lambda folder: None)
        status, words = lie(changes)
    assert status == 4, words
    assert not office.out("shop").exists()
    assert not list(office.made.folder.glob("shop/state/2*"))
    entries = json.loads(run("ledger", "export", "-c", office.made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open"]
    return words


def met(office):
    """Run a job up to the bundle in which the label party states the common rows."""
    first = office.begun()["shop"]
    points = office.written("shop", "align", first)[LABEL_PARTY]
    return office.written(LABEL_PARTY, "align", points)["shop"]


def test_common_rows_of_other_points_are_refused_and_others_may_follow(tmp_path):
    office = Office(federation(tmp_path, ("shop",)))
    told = met(office)
    lie, items = lying(office, LABEL_PARTY, told, "export")
    aligned = decode(items["aligned"], Aligned)
    for changes, said in (
        ({"tag": bytes(16)}, "about other points"),
        ({"share": b"\2" + bytes(31)}, "does not lie on the curve"),
    ):
        status, words = lie({"aligned": encode(replace(aligned, **changes))})
        assert (status, said in words) == (4, True), words
    assert "items are not those" in lie({"more": b""})[1]
    office.written("shop", "export", told)


class Liar:
    """A label party that sends any content in correctly signed bundles."""

    def __init__(self, office):
        self.made, self.office = office.made, office
        self.identity = identity_of(office.made, LABEL_PARTY)
        certs = office.made.folder / "certs"
        self.key = read_key(certs / LABEL_PARTY / "encryption.key")
        self.shop = read_key(certs / "shop" / "encryption.key")
        self.public = read_public(certs / "shop.public", "shop", self.identity.ca)

    def opened(self, path, key, *lock):
        inside = Path(tempfile.mkdtemp(dir=self.made.folder))
        open_bundle(Path(path), self.identity.ca).extract(key, inside, *lock)
        return {f.name: f.read_bytes() for f in sorted(inside.iterdir())}

    def sealed(self, honest, items, **change):
        header = replace(open_bundle(Path(honest), self.identity.ca).header, **change)
        path = self.made.folder / "lie.bundle"
        write_bundle(path, header, items, self.identity, self.public)
        return path


@pytest.mark.parametrize("lie", ["share", "bitmap"])
def test_a_label_party_opens_no_release_of_rows_that_it_does_not_prove_to_have(tmp_path, lie):
    office = Office(federation(tmp_path, ("shop",)))
    told = met(office)
    liar = Liar(office)
    aligned = decode(liar.opened(told, liar.shop)["aligned"], Aligned)
    own = PartyFolder(next((tmp_path / LABEL_PARTY / "state").glob("2*")), "shop").row_proof()[1]
    if lie == "share":  # it lacks a row, so its digest of the rows differs
        own = RowProof.of(Secret.fresh(), hashlib.sha256(own.ids).digest())
        said = replace(aligned, share=own.share)
    else:  # it states common rows that it cannot prove to know
        half = packed(np.arange(ROWS // 2), ROWS)
        said = replace(aligned, bitmap=half, count=ROWS // 2)
    export = office.written("shop", "export", liar.sealed(told, {"aligned": encode(said)}))
    export = export[LABEL_PARTY]

    # With its own keys and the claim, it cannot read a byte of the export.
    header = open_bundle(Path(export), liar.identity.ca).header
    claim = bytes.fromhex(header.claim)
    agreed = own.with_feature(said.job, claim[:32])
    assert agreed.feature != claim[32:]
    for lock in (b"", agreed.lock, agreed.label, claim[32:]):
        with pytest.raises(PeerError, match="encrypted to another key"):
            liar.opened(export, liar.key, lock)

    # Nor does it get an answer: its next bundle has to prove that it read the last.
    digest = open_bundle(Path(export), liar.identity.ca).digest
    for proof in (agreed.label, claim[32:], bytes(32)):
        items = {
            "query": encode(SplitQuery(said.job, False, (Cuts(0, (1,)),))),
            "proof": encode(Proof(said.job, proof)),
        }
        question = liar.sealed(told, items, number=5, step="split-query", previous=digest)
        status, words = refused(office, "shop", "answer", question)
        assert (status, "does not prove that it has the rows" in words) == (4, True), words
    bare = liar.sealed(
        told, {"query": items["query"]}, number=5, step="split-query", previous=digest
    )
    assert "items are not those" in refused(office, "shop", "answer", bare)[1]


def test_a_release_whose_claim_is_not_that_of_the_common_rows_is_refused(tmp_path):
    office = Office(federation(tmp_path, ("shop",)))
    export = office.written("shop", "export", met(office))[LABEL_PARTY]
    identity = identity_of(office.made, "shop")
    header = open_bundle(Path(export), identity.ca).header
    other = RowProof.of(Secret.fresh(), bytes(32)).share.hex()
    certs = tmp_path / "certs"
    public = read_public(certs / f"{LABEL_PARTY}.public", LABEL_PARTY, identity.ca)
    forged = tmp_path / "forged.bundle"
    for claim, said in (
        ("", "without a proof of its rows"),
        (header.claim[:-2] + "00", "does not prove that it has the common rows"),
        (other + header.claim[64:], "does not prove that it has the common rows"),
    ):
        write_bundle(forged, replace(header, claim=claim, items=()), {}, identity, public)
        status, words = refused(office, LABEL_PARTY, "split-query", forged)
        assert (status, said in words) == (4, True), words
    office.written(LABEL_PARTY, "split-query", export)


def test_a_step_that_was_used_is_refused_also_when_the_jobs_folder_is_gone(tmp_path):
    office = Office(federation(tmp_path, ("shop",)))
    first = office.begun()["shop"]
    met = office.written("shop", "align", first)[LABEL_PARTY]
    (job,) = (tmp_path / "shop" / "state").glob("2*")
    kept = job.rename(tmp_path / "kept")
    status, words = refused(office, "shop", "align", first)
    assert (status, "lost its state of this job" in words) == (4, True)
    kept.rename(job)
    office.written("shop", "export", office.written(LABEL_PARTY, "align", met)["shop"])
    shutil.rmtree(job)
    status, words = refused(office, "shop", "align", first)
    assert (status, "it raises no more points" in words) == (3, True)


def test_an_item_that_is_too_large_is_refused_before_it_is_opened(small, monkeypatch):
    honest = small.written("shop", "export", small.begun()["shop"])[LABEL_PARTY]
    monkeypatch.setattr("opboost.transport.shared.bundle_steps.MAX_MESSAGE_BYTES", 100_000)
    monkeypatch.setattr(
        "opboost.transport.shared.bundle_file.Bundle.extract",
        lambda *_: pytest.fail("it was opened"),
    )
    identity = identity_of(small.made, "shop")
    header = open_bundle(Path(honest), identity.ca).header
    certs = small.made.folder / "certs"
    public = read_public(certs / "bank.public", LABEL_PARTY, identity.ca)
    for name, size in (("schema", 100_001), ("00000.raised", 400_000)):
        path = small.made.folder / "large.bundle"
        write_bundle(path, header, {name: bytes(size)}, identity, public)
        status, words = refused(small, LABEL_PARTY, "split-query", path)
        assert (status, f"item '{name}' has" in words) == (4, True)


def shortened(data):
    points = decode(data, Points)
    return replace(points, total=points.total - 1, points=points.points[:-32])


def test_too_few_common_rows_end_the_job_on_both_sides(tmp_path):
    office = Office(federation(tmp_path, ("shop",)))
    first = office.begun()["shop"]
    met = office.written("shop", "align", first)[LABEL_PARTY]
    config = office.made.config(LABEL_PARTY)
    text = config.read_text()
    config.write_text(text.replace('id = "id"', f'id = "id"\nminimum_rows = {ROWS + 1}'))
    done = office.tried(LABEL_PARTY, "align", met)
    assert (done.returncode, f"with fewer than {ROWS + 1}" in done.stderr) == (3, True)
    where = run("serve", "-c", config, "--status", "--format", "json")[1]
    assert json.loads(where)["phase"] == "stopped: too few rows in common"
    # The bundle was accepted, so the same command continues under the agreed rule.
    config.write_text(text)
    told = office.written(LABEL_PARTY, "align", met)["shop"]
    theirs = office.made.config("shop")
    text = theirs.read_text()
    theirs.write_text(text.replace('id = "id"', f'id = "id"\nminimum_rows = {ROWS + 1}'))
    done = office.tried("shop", "export", told)
    assert (done.returncode, f"with fewer than {ROWS + 1}" in done.stderr) == (3, True)
    entries = json.loads(run("ledger", "export", "-c", theirs)[1])
    assert [e["kind"] for e in entries] == ["open", "align"]


def test_no_common_row_ends_the_job_before_anything_is_drawn(tmp_path):
    office = Office(federation(tmp_path, ("shop",), limits={"minimum_rows": 1}))
    others = columns(NAMES[3:5], pa.array([f"stranger-{i}" for i in range(ROWS)]))
    pa.parquet.write_table(others, tmp_path / "shop" / "table.parquet")
    met = office.written("shop", "align", office.begun()["shop"])[LABEL_PARTY]
    for _ in range(2):  # repeated, it answers the same
        done = office.tried(LABEL_PARTY, "align", met)
        assert (done.returncode, "have 0 rows in common" in done.stderr) == (3, True)
        assert len(list(office.out(LABEL_PARTY).iterdir())) == 1
    entries = json.loads(run("ledger", "export", "-c", office.made.config("shop"))[1])
    assert [e["kind"] for e in entries] == ["open", "align"]


def test_a_release_that_does_not_hold_together_is_refused_and_leaves_nothing(small):
    honest = small.written("shop", "export", small.begun()["shop"])[LABEL_PARTY]
    lie, items = lying(small, "shop", honest, "split-query")
    schema = decode(items["schema"], Schema)
    for changes, said in (
        ({"schema": None}, "items are not those"),
        ({"receipt": None}, "items are not those"),
        ({"00001.arrow": None}, "items are not those"),
        ({"00002.arrow": items["00001.arrow"]}, "items are not those"),
        ({"more": b""}, "items are not those"),
        ({"receipt": items["schema"]}, "unexpected kind"),
        ({"schema": encode(replace(schema, party="telco"))}, "in the name of 'telco'"),
        ({"schema": encode(replace(schema, rows=7))}, "sent 7 rows"),
        ({"00001.arrow": items["00000.arrow"]}, "where column 1 was due"),
        ({"00001.arrow": items["00001.arrow"][:-40]}, "olumn"),
        ({"00001.arrow": b""}, "cannot be read"),
        ({"00000.arrow": compressed(items["00000.arrow"])}, "compressed"),
    ):
        status, words = lie(changes)
        assert (status, said in words) == (4, True), words


def compressed(stream):
    """Return the same column in compressed batches."""
    with pa.ipc.open_stream(stream) as source:
        schema = FIELDS.with_metadata(source.schema.metadata)
        sink = pa.BufferOutputStream()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        with pa.ipc.new_stream(sink, schema, options=options) as out:
            for batch in source:
                out.write_batch(batch)
    return sink.getvalue().to_pybytes()


def test_a_label_party_that_asks_twice_is_refused(small):
    """A second, different query for the same step, correctly signed, gets no answer."""
    first = small.begun()["shop"]
    export = small.written("shop", "export", first)[LABEL_PARTY]
    query = Path(small.written(LABEL_PARTY, "split-query", export)["shop"])
    small.written("shop", "answer", query)
    identity = identity_of(small.made, LABEL_PARTY)
    header = open_bundle(query, identity.ca).header
    public = read_public(small.made.folder / "certs" / "shop.public", "shop", identity.ca)
    second = query.with_name("second.bundle")
    write_bundle(second, header, {"query": b"another"}, identity, public)
    status, words = refused(small, "shop", "answer", second)
    assert (status, "second bundle for step 5" in words) == (4, True)


def test_a_bundle_of_another_job_file_is_refused(small):
    first = small.begun()["shop"]
    job = small.made.folder / "shop" / "job.toml"
    job.write_text(job.read_text() + "# a word more\n")
    status, words = refused(small, "shop", "export", first)
    assert (status, "belongs to another job file" in words) == (4, True)
    identity = identity_of(small.made, LABEL_PARTY)
    public = read_public(small.made.folder / "certs" / "shop.public", "shop", identity.ca)
    path = small.made.folder / "odd.bundle"
    header = Header(
        LABEL_PARTY, "shop", load_job(job).hash.hex(), "20260101T000000Z-00000000", 1, "align", ""
    )
    write_bundle(path, header, {}, identity, public)
    assert "does not belong to this job file" in refused(small, "shop", "export", path)[1]
