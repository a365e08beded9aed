"""A pilot by bundles: two extra steps before the release, and nothing is released twice."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
import zipfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import PeerError
from opboost.parties.row_proof import RowProof
from opboost.protocol.messages import Proof, Weights, decode, encode
from opboost.psi.blinding import Secret
from opboost.transport.label.job_folder import PartyFolder
from opboost.transport.shared.bundle_file import open_bundle, write_bundle
from opboost.transport.shared.bundle_keys import read_key, read_public
from robustness.bundle_office import Office
from robustness.command_line import run
from robustness.party_processes import Party, identity_of
from tests.support.parties import refused
from tests.transport.test_pilot_over_network import (
    COUNT,
    ROWS,
    check_whole,
    federation,
    finished,
    new_cells,
    told,
)


def aligned(office, *more):
    """Run a job up to the bundles that the feature parties answer with a release."""
    sent = office.begun(*more)
    parties = office.made.parties
    met = [office.written(p, "align", sent[p])[LABEL_PARTY] for p in parties]
    return office.written(LABEL_PARTY, "align", *met)


def piloted(office, align="given"):
    """Return the bundle before the shop's pilot, the pilot's, and the label party's answer."""
    first = (aligned(office) if align == "psi" else office.begun())["shop"]
    pilot = office.written("shop", "export", first)[LABEL_PARTY]
    return first, pilot, office.written(LABEL_PARTY, "split-query", pilot)["shop"]


def entries(made, party="shop"):
    return [e["kind"] for e in json.loads(run("ledger", "export", "-c", made.config(party))[1])]


def parts(model):
    with zipfile.ZipFile(model) as file:
        return {name: file.read(name) for name in file.namelist()}


@pytest.mark.parametrize("align", ["given", "psi"])
def test_the_model_after_a_pilot_is_that_of_the_network(tmp_path, align):
    made = federation(tmp_path, align)
    finished(made)
    model = tmp_path / LABEL_PARTY / "model.opboost"
    by_network, weights = parts(model), told(made)
    assert Office(made, processes=True).model("--again") == model
    assert parts(model) == by_network
    files = sorted((tmp_path / LABEL_PARTY / "state").glob("*/parties/shop/weights"))
    assert [decode(f.read_bytes(), Weights).columns for f in files] == [weights, weights]
    cells = new_cells(made)
    assert (sum(cells), cells[2:]) == (ROWS, [0, 0])
    assert run("ledger", "verify", "-c", made.config("shop"))[0] == 0


@pytest.mark.parametrize("align", ["given", "psi"])
def test_every_command_of_the_detour_may_be_repeated(tmp_path, align):
    office = Office(federation(tmp_path, align))
    made = office.made

    def twice(party, verb, *given):
        written = [office.run(party, verb, *given, to=office.out(party) / n) for n in "12"]
        (one,), (two,) = (w["written"] for w in written)
        assert Path(one["path"]).read_bytes() == Path(two["path"]).read_bytes()
        assert one["next"] == two["next"]
        return Path(one["path"]), one["next"]

    first = (aligned(office) if align == "psi" else office.begun())["shop"]
    pilot, verb = twice("shop", "export", first)
    assert (verb, ".3a-pilot.shop-to-bank" in pilot.name) == ("split-query", True)
    status = run("serve", "-c", made.config(LABEL_PARTY), "--status", "--format", "json")[1]
    assert json.loads(status)["phase"] == "waiting for releases"
    answer, verb = twice(LABEL_PARTY, "split-query", pilot)
    assert (verb, ".3b-weights.bank-to-shop" in answer.name) == ("export", True)
    export, verb = twice("shop", "export", answer)
    assert (verb, ".4-export.shop-to-bank" in export.name) == ("split-query", True)
    query, _ = twice(LABEL_PARTY, "split-query", export)
    office.run(LABEL_PARTY, "finish", twice("shop", "answer", query)[0])
    check_whole(made)
    released = ["reserve", "commit"] * 2
    before = ["open", *(["align", "aligned"] if align == "psi" else [])]
    assert entries(made) == [*before, *released, "answer"]


@pytest.mark.parametrize("align", ["given", "psi"])
def test_a_party_that_is_killed_on_the_detour_repeats_its_command(tmp_path, align):
    office = Office(federation(tmp_path, align), processes=True)

    def killed(party, verb, *given):
        for pause in (0.1, 0.4):
            victim = Party(office.command(party, verb, *given))
            time.sleep(pause)
            victim.kill()
            victim.communicate()
        (path,) = office.written(party, verb, *given).values()
        return path

    first = (aligned(office) if align == "psi" else office.begun())["shop"]
    answer = killed(LABEL_PARTY, "split-query", killed("shop", "export", first))
    query = killed(LABEL_PARTY, "split-query", killed("shop", "export", answer))
    office.run(LABEL_PARTY, "finish", office.written("shop", "answer", query)[LABEL_PARTY])
    check_whole(office.made)


@pytest.mark.parametrize("kept", ["weights", "weights schema"])
def test_a_kill_between_the_weights_and_the_release_draws_nobody_again(tmp_path, kept):
    """The party was killed after it stored these files, but before it wrote its bundle."""
    office = Office(federation(tmp_path))
    answer = piloted(office)[2]
    (job,) = (tmp_path / "shop" / "state").glob("2*")
    chain = (job / "bundles" / "bank.json").read_bytes()
    office.written("shop", "export", answer)
    drawn = [file.read_bytes() for file in sorted(job.glob("*.arrow"))]
    (job / "bundles" / "bank.json").write_bytes(chain)
    (job / "released.json").unlink()
    if "schema" not in kept:
        (job / "schema").unlink()
    export = office.written("shop", "export", answer)[LABEL_PARTY]
    assert [file.read_bytes() for file in sorted(job.glob("*.arrow"))] == drawn
    assert sum(new_cells(office.made)) == ROWS
    office.written(LABEL_PARTY, "split-query", export)


@pytest.mark.parametrize("align", ["given", "psi"])
def test_one_party_has_a_pilot_and_the_other_has_none(tmp_path, align):
    office = Office(federation(tmp_path, align, parties=("shop", "telco"), piloting=("telco",)))
    sent = aligned(office) if align == "psi" else office.begun()
    pilot = office.written("telco", "export", sent["telco"])[LABEL_PARTY]
    # The pilot is answered even though the first party in the job file has sent nothing.
    said = office.run(LABEL_PARTY, "split-query", pilot)
    assert [(w["for"], w["next"]) for w in said["written"]] == [("telco", "export")]
    assert said["waiting"] == {"shop": "export", "telco": "export"}
    answer = said["written"][0]["path"]
    export = office.written("shop", "export", sent["shop"])[LABEL_PARTY]
    said = office.run(LABEL_PARTY, "split-query", export)
    assert [w["for"] for w in said["written"]] == ["telco"]  # the same weights, if they were lost
    assert said["waiting"] == {"telco": "export"}
    last = office.written("telco", "export", answer)[LABEL_PARTY]
    queries = office.written(LABEL_PARTY, "split-query", last)
    assert set(queries) == {"shop", "telco"}
    answers = [office.written(p, "answer", queries[p])[LABEL_PARTY] for p in queries]
    office.run(LABEL_PARTY, "finish", *answers)
    assert (new_cells(office.made), sum(new_cells(office.made, "telco"))) == ([COUNT * ROWS], ROWS)
    assert told(office.made, "telco")[2] == 0
    op.load(tmp_path / LABEL_PARTY / "model.opboost")


def test_two_pilots_are_answered_at_once_and_weights_may_be_refused(tmp_path):
    parties = ("shop", "telco")
    office = Office(federation(tmp_path, label="share_weights = false\n", parties=parties))
    sent = office.begun()
    pilots = [office.written(p, "export", sent[p])[LABEL_PARTY] for p in parties]
    answers = office.written(LABEL_PARTY, "split-query", *pilots)
    assert set(answers) == set(parties)
    queries = office.queries(answers)
    assert set(queries) == set(parties)
    assert told(office.made) == told(office.made, "telco") == ()
    assert sum(new_cells(office.made)) == sum(new_cells(office.made, "telco")) == ROWS


def test_a_person_who_is_forgotten_is_in_no_pilot_that_is_kept(tmp_path):
    office = Office(federation(tmp_path))
    office.model()
    (job,) = (tmp_path / "shop" / "state").glob("2*")
    assert list((job / "pilot").glob("*.arrow"))
    config = office.made.config("shop")
    assert run("ledger", "forget", "-c", config, "--person", "person-0007")[0] == 0
    left = [*job.glob("*.arrow"), *(job / "pilot").iterdir(), *job.glob("bundles/*.bundle")]
    assert left == []


def test_a_limit_on_all_parties_holds_for_a_pilot(tmp_path):
    office = Office(federation(tmp_path))
    for party in (LABEL_PARTY, "shop"):
        job = tmp_path / party / "job.toml"
        job.write_text(job.read_text().replace("[job]\n", "[job]\nrecord = 4.0\n"))
    office.model()
    check_whole(office.made)


def test_too_few_people_for_a_pilot_are_refused_before_anything_is_drawn(tmp_path):
    office = Office(federation(tmp_path, pilot=0.1))
    done = office.tried("shop", "export", office.begun()["shop"])
    assert (done.returncode, "too few to tell columns apart" in done.stderr) == (2, True)
    assert entries(office.made) == ["open"]
    assert not office.out("shop").exists()


def test_bundles_of_the_detour_are_refused_out_of_turn(tmp_path):
    office = Office(federation(tmp_path))
    first, pilot, answer = piloted(office)
    wrong = refused(office, LABEL_PARTY, "finish", pilot)[1]
    assert "is step 3a (pilot), which 'opboost bundle finish' does not take" in wrong
    assert "it is for 'opboost bundle split-query'" in wrong
    wrong = refused(office, "shop", "answer", answer)[1]
    assert "is step 3b (weights), which 'opboost bundle answer' does not take" in wrong
    assert "it is for 'opboost bundle export'" in wrong
    identity = identity_of(office.made, "shop")
    public = read_public(tmp_path / "certs" / "bank.public", LABEL_PARTY, identity.ca)
    header = open_bundle(Path(pilot), identity.ca).header
    forged = tmp_path / "forged.bundle"

    def words(**changes):
        write_bundle(forged, replace(header, **changes), {"schema": b"other"}, identity, public)
        status, said = refused(office, LABEL_PARTY, "split-query", forged)
        assert status == 4
        return said

    # A second pilot, and a release that ignores the weights, are refused.
    assert "is a second bundle for step 3a (pilot)" in words()
    assert "does not answer the last bundle" in words(number=4, step="export")
    assert "is not a step that 'shop' takes" in words(step="export")
    export = office.written("shop", "export", answer)[LABEL_PARTY]
    assert "was used before: step 1 (align)" in refused(office, "shop", "export", first)[1]
    query = office.written(LABEL_PARTY, "split-query", export)["shop"]
    assert "was used before: step 3a" in refused(office, LABEL_PARTY, "split-query", pilot)[1]
    office.written("shop", "answer", query)
    assert "was used before: step 3b" in refused(office, "shop", "export", answer)[1]


def test_weights_that_nobody_asked_for_are_refused(tmp_path):
    office = Office(federation(tmp_path, piloting=()))
    first = office.begun()["shop"]
    identity = identity_of(office.made, LABEL_PARTY)
    public = read_public(tmp_path / "certs" / "shop.public", "shop", identity.ca)
    bundle = open_bundle(Path(first), identity.ca)
    forged = tmp_path / "forged.bundle"
    header = replace(bundle.header, number=32, step="weights")
    items = {"weights": encode(Weights(header.job, (0,) * COUNT))}
    write_bundle(forged, header, items, identity, public)
    words = refused(office, "shop", "export", forged)[1]
    assert "is step 3b (weights), out of turn: step 1 (align) is due." in words
    office.written("shop", "export", first)
    write_bundle(forged, replace(header, previous=bundle.digest), items, identity, public)
    words = refused(office, "shop", "export", forged)[1]
    assert "is step 3b (weights), out of turn: step 5 (split-query) is due." in words


def test_a_prediction_has_no_pilot(tmp_path):
    office = Office(federation(tmp_path))
    made = office.made
    office.model()
    job = (tmp_path / LABEL_PARTY / "job.toml").read_text()
    job = job.replace("[job]\n", '[job]\npurpose = "predict"\n')
    for party in (LABEL_PARTY, "shop"):
        (tmp_path / party / "job.toml").write_text(job)
    export = office.run("shop", "export", office.begun()["shop"])["written"]
    assert [(w["step"], w["next"]) for w in export] == [(4, "finish")]
    model, out = tmp_path / LABEL_PARTY / "model.opboost", tmp_path / "answers.csv"
    more = ("--model", model, "--out", out)
    command = ("bundle", "finish", "-c", made.config(LABEL_PARTY), export[0]["path"], *more)
    assert run(*command)[0] == 0
    assert len(out.read_text().splitlines()) == 1 + ROWS


def test_rows_or_a_ledger_that_changed_since_the_pilot_are_refused(tmp_path):
    office = Office(federation(tmp_path))
    answer = piloted(office)[2]
    table = tmp_path / "shop" / "table.parquet"
    rows = pq.read_table(table)
    pq.write_table(rows.slice(1), table)
    done = office.tried("shop", "export", answer)
    assert (done.returncode, "rows" in done.stderr) == (4, True)
    pq.write_table(rows, table)
    ledger, keys = tmp_path / "shop" / "ledger", tmp_path / "keys"
    shutil.rmtree(ledger)
    shutil.rmtree(keys)
    done = office.tried("shop", "export", answer)
    assert (done.returncode, "rolled back" in done.stderr) == (3, True)


def emptied(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def test_a_pilot_of_aligned_rows_opens_only_for_who_has_them(tmp_path):
    office = Office(federation(tmp_path, "psi"))
    sent = aligned(office)["shop"]
    bank, shop = identity_of(office.made, LABEL_PARTY), identity_of(office.made, "shop")
    certs = tmp_path / "certs"
    key = read_key(certs / LABEL_PARTY / "encryption.key")
    to_shop = read_public(certs / "shop.public", "shop", bank.ca)
    to_bank = read_public(certs / "bank.public", LABEL_PARTY, bank.ca)
    inside = tmp_path / "inside"
    pilot = office.written("shop", "export", sent)[LABEL_PARTY]
    opened = open_bundle(Path(pilot), bank.ca)
    assert len(opened.header.claim) == 128
    with pytest.raises(PeerError, match="encrypted to another key"):
        opened.extract(key, emptied(inside))

    # A pilot without its proof, or with another one, is refused.
    forged = tmp_path / "forged.bundle"
    other = RowProof.of(Secret.fresh(), bytes(32)).share.hex()
    for claim, words in (
        ("", "without a proof of its rows"),
        (other + opened.header.claim[64:], "does not prove that it has the common rows"),
    ):
        header = replace(opened.header, claim=claim, items=())
        write_bundle(forged, header, {}, shop, to_bank)
        assert words in refused(office, LABEL_PARTY, "split-query", forged)[1]

    # Without a proof that the label party opened the pilot, its weights cause no draw.
    answer = office.written(LABEL_PARTY, "split-query", pilot)["shop"]
    bundle = open_bundle(Path(answer), bank.ca)
    bundle.extract(read_key(certs / "shop" / "encryption.key"), emptied(inside))
    items = {f.name: f.read_bytes() for f in inside.iterdir()}
    job = bundle.header.job
    for changes, words in (
        ({"proof": encode(Proof(job, hashlib.sha256(b"").digest()))}, "does not prove that it has"),
        ({"proof": None}, "items are not those"),
        ({"rows": b""}, "items are not those"),
        ({"weights": encode(Weights(job, (0,)))}, f"1 weights arrived for {COUNT} columns"),
        ({"weights": encode(Weights("20260101T000000Z-00000000", ()))}, "another job"),
    ):
        told_items = {n: d for n, d in {**items, **changes}.items() if d is not None}
        write_bundle(forged, bundle.header, told_items, bank, to_shop)
        status, said_words = refused(office, "shop", "export", forged)
        assert (status, words in said_words) == (4, True), said_words
    assert entries(office.made).count("reserve") == 1

    # The release is locked like the pilot, under the same proof.
    export = office.written("shop", "export", answer)[LABEL_PARTY]
    header = open_bundle(Path(export), bank.ca).header
    assert header.claim == opened.header.claim
    (folder,) = (tmp_path / LABEL_PARTY / "state").glob("2*")
    theirs = PartyFolder(folder, "shop").row_proof()[1]
    second = RowProof.of(Secret.fresh(), theirs.ids)  # valid: the party knows the rows
    claim = second.share + second.with_label(job, theirs.share).feature
    write_bundle(forged, replace(header, claim=claim.hex(), items=()), {}, shop, to_bank)
    words = refused(office, LABEL_PARTY, "split-query", forged)[1]
    assert "A different proof of rows came with the pilot" in words
    office.written(LABEL_PARTY, "split-query", export)


def test_every_command_of_the_detour_tells_the_next(tmp_path):
    office = Office(federation(tmp_path))

    def last_line(party, verb, given):
        where = ("--to", office.out(party))
        status, out, words = run("bundle", verb, "-c", office.made.config(party), given, *where)
        path = Path(out.splitlines()[0])
        assert status == 0
        return path, " ".join(words.split()).replace(path.name, "NAME")

    pilot, words = last_line("shop", "export", office.begun()["shop"])
    assert words.startswith("step 3a (pilot) of job ")
    assert words.endswith("continues with: opboost bundle split-query -c bank.toml NAME --to DIR")
    answer, words = last_line(LABEL_PARTY, "split-query", pilot)
    assert words.startswith("step 3b (weights) of job ")
    assert "continues with: opboost bundle export -c shop.toml NAME --to DIR" in words
    assert words.endswith("Waiting for shop: step 4 (export).")
    _, words = last_line("shop", "export", answer)
    assert "step 4 (export) of job " in words
    assert "continues with: opboost bundle split-query -c bank.toml NAME --to DIR" in words
