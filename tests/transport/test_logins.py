"""A peer's identity: one DNS name in its certificate, and a signature over a one-time nonce."""

from __future__ import annotations

import threading

import pytest
from cryptography import x509

import opboost as op
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import PeerError
from opboost.protocol.messages import Ack, Challenge, Hello, Login, Poll, Welcome
from opboost.transport.feature.label_connection import Connection
from opboost.transport.label.logins import Logins, NotLoggedInError
from opboost.transport.shared.development_certificates import new_kit
from opboost.transport.shared.tls import alternative_names, check_login, check_named, issued_by
from robustness.attacks.by_label_party import Impostor
from robustness.attacks.by_outsiders import lax_identity
from robustness.party_processes import (
    as_identity,
    federation,
    identity_of,
    job_hash,
    serving,
    shaken_hands,
)

JOB = "20260102T030405Z-01020304"
HELLO = Hello("shop", bytes(32))
URI, MAIL = x509.UniformResourceIdentifier("shop"), x509.RFC822Name("shop")
OWN, OTHER = x509.DNSName("shop"), x509.DNSName("telco")
LAX = [("shop", ()), ("x", (URI,)), ("x", (MAIL,)), ("x", (OWN, OTHER)), ("x", (OWN, URI))]


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    new_kit("shop", folder)
    new_kit("telco", folder)
    return folder


def identity(certs, name):
    return as_identity(certs / name, name)


@pytest.mark.parametrize(("subject", "names"), LAX)
def test_a_certificate_names_its_party_by_one_dns_name_and_nothing_else(certs, subject, names):
    lax = lax_identity(certs, "shop", subject, names)
    assert alternative_names(issued_by(lax.cert, lax.ca)) != ["shop"]
    with pytest.raises(PeerError, match=r"'shop' is for .*It needs one subject alternative name"):
        check_named(lax.cert, "shop", lax.ca)
    with pytest.raises(PeerError, match="It needs one subject alternative name"):
        check_login(lax.login(HELLO, "bank", bytes(32)), HELLO, "bank", bytes(32), lax.ca)


def test_a_login_covers_who_says_it_to_whom_about_what_and_the_nonce(certs):
    shop, telco, nonce = identity(certs, "shop"), identity(certs, "telco"), bytes(32)
    login = shop.login(HELLO, "bank", nonce)
    check_login(login, HELLO, "bank", nonce, shop.ca)
    for hello, label_party, other in (
        (HELLO, "bank", bytes(31) + b"1"),
        (HELLO, "club", nonce),
        (Hello("shop", b"1" * 32), "bank", nonce),
    ):
        with pytest.raises(PeerError, match="has no valid signature"):
            check_login(login, hello, label_party, other, shop.ca)
    stolen = Login(shop.cert, telco.login(HELLO, "bank", nonce).signature)
    with pytest.raises(PeerError, match="has no valid signature"):
        check_login(stolen, HELLO, "bank", nonce, shop.ca)
    with pytest.raises(PeerError, match="'shop' is for telco"):
        check_login(telco.login(HELLO, "bank", nonce), HELLO, "bank", nonce, shop.ca)
    with pytest.raises(PeerError, match="was not issued by the authority"):
        check_login(Login(b"none", b""), HELLO, "bank", nonce, shop.ca)


def test_a_nonce_is_good_once_over_the_connection_that_it_was_given_to():
    known = Logins()
    nonce = known.challenged("ipv4:1:1", HELLO)
    with pytest.raises(NotLoggedInError, match="No login was begun"):
        known.challenge("ipv4:1:2")
    assert known.challenge("ipv4:1:1") == (HELLO, nonce)
    with pytest.raises(NotLoggedInError, match="No login was begun"):
        known.challenge("ipv4:1:1")
    assert known.challenged("ipv4:1:1", HELLO) != nonce


def test_a_session_is_one_partys_and_those_that_nobody_uses_go():
    known = Logins(max_challenges=2, max_sessions=2)
    first, second = (known.opened("shop").hex() for _ in range(2))
    assert known.is_open(first, "shop")
    third = known.opened("shop").hex()
    assert [known.is_open(s, "shop") for s in (first, second, third)] == [True, False, True]
    assert not known.is_open(third, "telco")
    assert not known.is_open("", "shop")
    for number in range(3):
        known.challenged(f"ipv4:1:{number}", HELLO)
    with pytest.raises(NotLoggedInError):
        known.challenge("ipv4:1:0")
    known.challenge("ipv4:1:1")


def test_the_gate_answers_nobody_whose_certificate_names_it_in_another_way(tmp_path):
    made = federation(tmp_path, ("shop",))
    hello = Hello("shop", job_hash(made))
    with serving(made) as (_, address):
        for subject, names in LAX:
            lax = lax_identity(tmp_path / "certs", "shop", subject, names)
            with pytest.raises(op.PeerError, match="one subject alternative name"):
                shaken_hands(made, address, lax)
            connection = Connection(address, "shop", LABEL_PARTY, lax)
            challenge = connection.call("hello", hello, Challenge)
            true = identity_of(made, "shop").cert
            mixed = Login(true, lax.login(hello, LABEL_PARTY, challenge.nonce).signature)
            with pytest.raises(op.PeerError, match="has no valid signature"):
                connection.call("login", mixed, Welcome)
            with pytest.raises(op.PeerError, match="has not logged in"):
                connection.call("poll", Poll(JOB), Ack)
            connection.close()
        shaken_hands(made, address, identity_of(made, "shop"))[0].close()


def test_a_feature_party_signs_for_nobody_but_the_label_party(tmp_path):
    """A peer whose certificate names the label party as its subject shows that or another one."""
    made = federation(tmp_path, ("shop",))
    lax = lax_identity(tmp_path / "certs", LABEL_PARTY, LABEL_PARTY)
    true = identity_of(made, LABEL_PARTY).cert
    for shown, words in (
        (lax.cert, "'bank' is for nobody"),
        (true, "TLS with the label party failed"),
        (true + lax.cert, "TLS with the label party failed"),
    ):
        peer = Impostor(lax, JOB, {})
        peer.certificate = shown
        try:
            with pytest.raises(op.PeerError, match=words):
                shaken_hands(made, peer.address, identity_of(made, "shop"))
        finally:
            peer.over.set()
            threading.Thread(target=peer.shutdown, daemon=True).start()
        assert set(peer.steps) == {"hello"}
