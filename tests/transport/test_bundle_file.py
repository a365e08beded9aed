"""A bundle opens only for the right party, at the right step, and once."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import opboost as op
from opboost.config.job_file import Tls
from opboost.transport.shared import bundle_file
from opboost.transport.shared.bundle_chain import GIVEN, BundleChain, Pair, hand_out
from opboost.transport.shared.bundle_file import MARK, Header, open_bundle, write_bundle
from opboost.transport.shared.bundle_keys import certify, read_key, read_public
from opboost.transport.shared.development_certificates import PARTS, add_encryption, new_kit
from opboost.transport.shared.tls import read_identity
from robustness.command_line import run
from tests.support.parties import tree

JOB = "20260101T000000Z-00000000"
HASH = "00" * 32
NAMES = ("bank", "shop", "telco")


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    for name in NAMES:
        new_kit(name, folder)
    return Certs(folder)


class Certs:
    def __init__(self, folder):
        self.folder = folder
        self.ca = (folder / "ca" / "ca.pem").read_bytes()

    def identity(self, name):
        kit = self.folder / name
        return read_identity(
            Tls(*(kit / f"{p}.pem" for p in PARTS), kit / "encryption.key", {}), name
        )

    def public(self, name):
        return read_public(self.folder / f"{name}.public", name, self.ca)

    def key(self, name):
        return read_key(self.folder / name / "encryption.key")

    def write_bundle(self, path, items, *, by="bank", to="shop", key=None, **changes):
        header = replace(Header(by, to, HASH, JOB, 1, "align", ""), **changes)
        write_bundle(path, header, items, self.identity(by), key or self.public(to))
        return path


def pair(own="shop", peer="bank", job=JOB):
    return Pair(own, peer, HASH, job, "bank", GIVEN)


@given(
    items=st.dictionaries(
        st.from_regex(r"[a-z0-9][a-z0-9.]{0,8}[a-z0-9]", fullmatch=True),
        st.binary(max_size=200),
        max_size=5,
    ),
    piece=st.integers(1, 64),
)
def test_what_is_sealed_comes_out_whatever_its_size(certs, tmp_path_factory, items, piece):
    folder = tmp_path_factory.mktemp("bundle")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundle_file, "PIECE_BYTES", piece)
        opened = open_bundle(certs.write_bundle(folder / "b", items), certs.ca)
        out = folder / "out"
        out.mkdir()
        opened.extract(certs.key("shop"), out)
    assert {f.name: f.read_bytes() for f in out.iterdir()} == items
    assert opened.header.bundle_size() >= sum(map(len, items.values()))


@pytest.fixture(scope="module")
def example(certs, tmp_path_factory):
    path = tmp_path_factory.mktemp("example") / "b.bundle"
    certs.write_bundle(path, {"welcome": b"first item, secret", "rows": b"second item, secret"})
    return path.read_bytes()


def refusal(certs, folder, data):
    """Return the message with which bytes are refused as a bundle."""
    path = folder / "b.bundle"
    path.write_bytes(data)
    before = tree(folder)
    with pytest.raises(op.PeerError) as refused:
        open_bundle(path, certs.ca)
    assert tree(folder) == before
    return str(refused.value)


@given(st.data())
def test_a_flipped_bit_is_refused(certs, example, tmp_path_factory, data):
    place = data.draw(st.integers(0, len(example) - 1))
    bit = data.draw(st.integers(0, 7))
    altered = bytearray(example)
    altered[place] ^= 1 << bit
    words = refusal(certs, tmp_path_factory.mktemp("flip"), bytes(altered))
    assert words.startswith("b.bundle ")
    assert words.endswith(".")


def test_every_flipped_byte_is_refused(certs, example, tmp_path):
    for place in range(0, len(example), 7):
        altered = bytearray(example)
        altered[place] ^= 0x20
        refusal(certs, tmp_path, bytes(altered))


@given(st.data())
def test_cut_short_or_longer_is_refused(certs, example, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("cut")
    kept = data.draw(st.integers(0, len(example) - 1))
    words = refusal(certs, folder, example[:kept])
    assert "cut short" in words or "not an OpBoost bundle" in words or "bundle of version" in words
    more = data.draw(st.binary(min_size=1, max_size=50))
    assert "bytes were added" in refusal(certs, folder, example + more)


@given(st.binary(max_size=300))
def test_bytes_that_are_no_bundle_are_refused(certs, tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("bytes")
    words = refusal(certs, folder, data)
    assert "is not an OpBoost bundle" in words or "is a bundle of version" in words
    refusal(certs, folder, MARK + data)
    refusal(certs, folder, MARK + len(data).to_bytes(8, "big") + data)


def test_another_version_is_named(certs, example, tmp_path):
    words = refusal(certs, tmp_path, example.replace(b"BUNDLE 3", b"BUNDLE 1", 1))
    assert "is a bundle of version '1'; this release reads version '3'" in words


def test_a_header_announcing_terabytes_is_refused_before_they_are_looked_for(certs, tmp_path):
    header = Header("bank", "shop", HASH, JOB, 1, "align", "", (bundle_file.Item("codes", 2**45),))
    data = header.to_bytes()
    start = MARK + len(data).to_bytes(8, "big") + data
    assert "cut short" in refusal(certs, tmp_path, start + bytes(1000))
    long = MARK + (2**40).to_bytes(8, "big") + bytes(1000)
    assert "at most 4,194,304 are allowed" in refusal(certs, tmp_path, long)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("sender", "Bank"),
        ("sender", 7),
        ("recipient", ""),
        ("job", "../up"),
        ("job_hash", "00"),
        ("number", True),
        ("number", 1.0),
        ("previous", 0),
        ("previous", "x"),
        ("step", "Align"),
        ("items", [{"name": "../up", "size": 1}]),
        ("items", [{"name": "a", "size": -1}]),
        ("items", [{"name": "a", "size": 1}, {"name": "a", "size": 1}]),
        ("items", [{"name": "a", "size": 1, "more": 1}]),
        ("items", None),
        ("more", 1),
    ],
)
def test_a_header_has_one_form(field, value):
    plain = json.loads(Header("bank", "shop", HASH, JOB, 1, "align", "").to_bytes())
    plain[field] = value
    data = json.dumps(plain, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises((ValueError, TypeError, op.WireError)):
        Header.from_bytes(data)


@pytest.mark.parametrize("change", [(b",", b", "), (b"{", b'{"job":"",'), (b"shop", b"\\u0073hop")])
def test_the_same_header_in_another_spelling_is_refused(change):
    data = Header("bank", "shop", HASH, JOB, 1, "align", "").to_bytes()
    assert Header.from_bytes(data).to_bytes() == data
    with pytest.raises(ValueError, match="another form"):
        Header.from_bytes(data.replace(*change, 1))


def test_items_that_change_places_do_not_open(certs, tmp_path):
    """The swap is refused even if a thief of the signing key signs the file again."""
    path = certs.write_bundle(tmp_path / "b", {"first": b"12345678", "second": b"abcdefgh"})
    bundle = open_bundle(path, certs.ca)
    data = path.read_bytes()
    start = len(bundle_file.header_bytes(bundle.header))
    first, second = (data[start + 56 * i : start + 56 * (i + 1)] for i in (0, 1))
    swapped = data[:start] + second + first
    bank = certs.identity("bank")
    signature = bank.signature(bundle_file.signed_text(hashlib.sha256(swapped).digest(), bank.cert))
    path.write_bytes(
        swapped + bundle_file.with_length(bank.cert) + bundle_file.with_length(signature)
    )
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(op.PeerError, match="encrypted to another key"):
        open_bundle(path, certs.ca).extract(certs.key("shop"), out)


def test_a_file_that_changes_between_check_and_use_is_refused(certs, tmp_path):
    """Anyone can encrypt to the recipient: the second pass compares the digest again."""
    path = certs.write_bundle(tmp_path / "b", {"first": b"honest"})
    bundle = open_bundle(path, certs.ca)
    start = bundle_file.header_bytes(bundle.header)
    info = bundle_file.piece_info(hashlib.sha256(start).digest(), 0, 0)
    forged = certs.public("shop").encrypt(b"forged", info)
    data = path.read_bytes()
    path.write_bytes(start + forged + data[len(start) + len(forged) :])
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(op.WireError, match="changed while it was read"):
        bundle.extract(certs.key("shop"), out)


def test_only_the_recipient_can_read_it(certs, tmp_path):
    secret = b"what only the shop may read"
    path = certs.write_bundle(tmp_path / "b", {"first": secret})
    assert secret not in path.read_bytes()
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(op.PeerError, match="encrypted to another key"):
        open_bundle(path, certs.ca).extract(certs.key("telco"), out)


def refused_by(chain, path, certs, verb="export", number=1):
    folder = path.parent
    before = tree(folder)
    with pytest.raises(op.PeerError) as refused:
        chain.check(open_bundle(path, certs.ca), verb, number)
    assert tree(folder) == before
    return str(refused.value)


def test_each_refusal_has_its_sentence(certs, tmp_path):
    items = {"welcome": b"w"}
    mine = BundleChain(tmp_path / "shop", pair())
    here = tmp_path / "b"

    def words(**changes):
        return refused_by(mine, certs.write_bundle(here, items, **changes), certs)

    assert words(to="telco") == "b is for 'telco'; this party is 'shop'."
    assert words(by="telco") == "b is from 'telco'; one from 'bank' is expected."
    assert words(by="telco", sender="telco").startswith("b is from 'telco'")
    assert "belongs to another job file" in words(job_hash="11" * 32)
    assert "belongs to job 20270101T000000Z-00000000" in words(job="20270101T000000Z-00000000")
    assert "is not a step that 'bank' takes" in words(number=4, step="export")
    assert "is not a step that 'bank' takes" in words(number=2)
    assert "is not a step that 'bank' takes" in words(step="export")
    assert "'opboost bundle export' does not take" in words(number=5, step="split-query")
    assert "does not answer the last bundle" in words(previous="22" * 32)


def test_a_bundle_signed_by_another_in_the_senders_name_is_refused(certs, tmp_path):
    header = Header("bank", "shop", HASH, JOB, 1, "align", "")
    forger = replace(certs.identity("telco"), name="bank")
    write_bundle(tmp_path / "b", header, {"welcome": b"w"}, forger, certs.public("shop"))
    with pytest.raises(op.PeerError, match=r"says that it is from 'bank'; 'telco' signed it\."):
        open_bundle(tmp_path / "b", certs.ca)


def test_a_bundle_under_another_authority_or_an_old_certificate_is_refused(certs, tmp_path):
    header = Header("bank", "shop", HASH, JOB, 1, "align", "")
    for days, words in ((30.0, "authority did not issue"), (-1.0, "not today")):
        other = tmp_path / f"other{days}"
        kit = new_kit("bank", other, days=days)
        known = certs.identity("bank")
        stranger = replace(
            known, cert=(kit / "cert.pem").read_bytes(), key=(kit / "key.pem").read_bytes()
        )
        write_bundle(tmp_path / "b", header, {}, stranger, certs.public("shop"))
        ca = certs.ca if days > 0 else (other / "ca" / "ca.pem").read_bytes()
        with pytest.raises(op.PeerError, match=words):
            open_bundle(tmp_path / "b", ca)


def test_a_conversation_goes_on_by_one_step_at_a_time(certs, tmp_path):
    bank = BundleChain(tmp_path / "bank", pair("bank", "shop"))
    shop = BundleChain(tmp_path / "shop", pair())

    def taken(by, path, verb, number):
        bundle = open_bundle(path, certs.ca)
        by.check(bundle, verb, number)
        return bundle

    first = bank.write({"welcome": b"w"}, certs.identity("bank"), certs.public("shop"))
    assert first.name == f"{JOB}.1-align.bank-to-shop.bundle"
    out = hand_out(first, tmp_path / "out")
    used = taken(shop, out, "export", 1)
    second = shop.write({"schema": b"s"}, certs.identity("shop"), certs.public("bank"), used)
    assert [e.number for e in shop.entries] == [1, 4]

    # Repeating the command gives the same bundle and changes nothing.
    taken(shop, out, "export", 1)
    assert shop.written() == second
    # A second first step, however well signed, is refused.
    forged = certs.write_bundle(tmp_path / "forged", {"welcome": b"other"})
    assert "second bundle for step 1 (align)" in refused_by(shop, forged, certs)

    answer = taken(bank, second, "split-query", 4)
    third = bank.write({"query": b"q"}, certs.identity("bank"), certs.public("shop"), answer)
    query = taken(shop, third, "answer", 5)
    last = shop.write({"answer": b"a"}, certs.identity("shop"), certs.public("bank"), query)
    assert "was used before" in refused_by(shop, out, certs)
    bank.took(taken(bank, last, "finish", 6))
    assert bank.due() is None
    assert "was used before" in refused_by(bank, second, certs, "split-query", 4)

    # All of this is on disk, so another process refuses the same.
    later = BundleChain(tmp_path / "shop", pair())
    assert "was used before" in refused_by(later, out, certs)
    assert "'opboost bundle export' does not take" in refused_by(later, third, certs)


def test_a_step_out_of_turn_is_refused(certs, tmp_path):
    bank = BundleChain(tmp_path / "bank", pair("bank", "shop"))
    bank.write({}, certs.identity("bank"), certs.public("shop"))
    early = certs.write_bundle(tmp_path / "b", {}, by="shop", to="bank", number=6, step="answer")
    words = refused_by(bank, early, certs, "finish", 6)
    assert words == "b is step 6 (answer), out of turn: step 4 (export) is due."


def test_a_public_key_is_taken_only_from_its_party(certs, tmp_path):
    path = tmp_path / "k"
    good = (certs.folder / "shop.public").read_text()
    path.write_text(good)
    assert read_public(path, "shop", certs.ca) == certs.key("shop").public("shop")
    with pytest.raises(op.PeerError, match="is the key of 'shop', not of 'bank'"):
        read_public(path, "bank", certs.ca)
    swapped = json.loads(good) | {"key": certs.public("bank").raw.hex()}
    for text, words in (
        (json.dumps(swapped), "signature does not match"),
        (good.replace("key 1", "key 2"), "does not have the format"),
        ("{}", "not the public key"),
        ("[" * 10_000, "not the public key"),
        (" " * 2**16 + good, "not the public key"),
    ):
        path.write_text(text)
        with pytest.raises(op.PeerError, match=words):
            read_public(path, "shop", certs.ca)
    forger = replace(certs.identity("telco"), name="shop")
    path.write_bytes(certify(certs.key("telco").public("shop"), forger))
    with pytest.raises(op.PeerError, match="is signed by 'telco', not by 'shop'"):
        read_public(path, "shop", certs.ca)
    with pytest.raises(op.ConfigError, match=r"Ask that party for its file shop\.public"):
        read_public(tmp_path / "none", "shop", certs.ca)


def test_the_verb_certs_makes_encryption_keys(tmp_path):
    assert run("certs", "new", "shop", "--dir", tmp_path)[0] == 0
    key = tmp_path / "shop" / "encryption.key"
    assert key.stat().st_mode & 0o777 == 0o600
    first, public = key.read_bytes(), (tmp_path / "shop.public").read_bytes()
    # Repeated, it keeps the key and certifies the public half anew.
    status, out, _ = run("certs", "encryption", tmp_path / "shop")
    assert (status, out.strip()) == (0, str(tmp_path / "shop.public"))
    assert key.read_bytes() == first
    again = (tmp_path / "shop.public").read_bytes()
    assert json.loads(again)["key"] == json.loads(public)["key"]
    key.chmod(0o644)
    status, _, words = run("certs", "encryption", tmp_path / "shop")
    assert status == 2
    assert "chmod 600" in words
    key.chmod(0o600)
    # If the key was moved away, no other is made in its place.
    moved = key.rename(tmp_path / "moved.key")
    status, _, words = run("certs", "encryption", tmp_path / "shop")
    assert (status, "--key" in words, key.exists()) == (2, True, False)
    assert run("certs", "encryption", tmp_path / "shop", "--key", tmp_path / "none")[0] == 2
    assert run("certs", "encryption", tmp_path / "shop", "--key", moved)[0] == 0
    assert not key.exists()
    again = (tmp_path / "shop.public").read_bytes()
    assert json.loads(again)["key"] == json.loads(public)["key"]
    # If the key is lost, a new one is made.
    (tmp_path / "shop.public").unlink()
    add_encryption(tmp_path / "shop")
    assert key.read_bytes() != first
    assert run("certs", "encryption", tmp_path / "nowhere")[0] == 2


def test_the_public_half_lies_beside_the_kit_however_the_kit_is_named(tmp_path, monkeypatch):
    kit = new_kit("shop", tmp_path)
    (tmp_path / "shop.public").unlink()
    monkeypatch.chdir(kit)
    assert add_encryption(Path()).resolve() == (tmp_path / "shop.public").resolve()
    assert not list(kit.glob("*.public"))


def test_an_authority_that_has_expired_vouches_for_nobody(tmp_path):
    kit = new_kit("shop", tmp_path, authority_days=-1)
    with pytest.raises(op.PeerError, match=r"the authority's certificate .* not today"):
        read_public(tmp_path / "shop.public", "shop", (kit / "ca.pem").read_bytes())


SEALING = """
import os, sys
from pathlib import Path
from tests.transport.test_bundle_file import Certs, pair
from opboost.transport.shared.bundle_chain import BundleChain
certs, state = Certs(Path(sys.argv[1])), Path(sys.argv[2])
for line in sys.stdin:
    child = os.fork()
    if child:
        print(os.waitpid(child, 0)[1], flush=True)
        continue
    print(os.getpid(), flush=True)
    chain = BundleChain(state, pair("bank", "shop"))
    if chain.written() is None:
        items = {"welcome": b"w", "codes": bytes(2**26)}
        chain.write(items, certs.identity("bank"), certs.public("shop"))
    os._exit(0)
"""
"""For each line, write the bundle in a fork; print the fork's number and how it ended."""


def test_a_kill_while_a_bundle_is_written_leaves_all_or_nothing(certs, tmp_path):
    state = tmp_path / "state"
    command = [sys.executable, "-c", SEALING, str(certs.folder), str(state)]
    pauses = random.Random(0)
    with subprocess.Popen(
        command, stdin=-1, stdout=-1, text=True, bufsize=1, cwd=Path(__file__).parents[2]
    ) as sealing:

        def sealed(killed_after=None):
            """Begin to write; return how the process ended."""
            sealing.stdin.write("\n")
            process = int(sealing.stdout.readline())
            if killed_after is not None:
                time.sleep(killed_after)
                with contextlib.suppress(ProcessLookupError):  # it has already ended
                    os.kill(process, signal.SIGKILL)
            return int(sealing.stdout.readline())

        for _ in range(6):
            assert sealed(pauses.uniform(0.0, 0.15)) in (0, signal.SIGKILL)
            if BundleChain(state, pair("bank", "shop")).entries:
                break
        assert sealed() == 0
        chain = BundleChain(state, pair("bank", "shop"))
        (entry,) = chain.entries
        first = chain.written()
        assert open_bundle(first, certs.ca).digest == entry.digest
        before = first.read_bytes()
        assert sealed() == 0
        assert first.read_bytes() == before
