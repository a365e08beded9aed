"""A party's certificates: reading and checking them, and signing logins and receipts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InternalError, InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from opboost.errors import ConfigError, PeerError, in_words
from opboost.protocol.messages import PARTY_NAME, Hello, Login, Receipt

if TYPE_CHECKING:
    from opboost.config.job_file import Tls

CLAIMED = "opboost-party"
"""The header that names a party if there is no certificate: plaintext on loopback."""

UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, InternalError, x509.InvalidVersion)
"""The errors that the library raises for invalid or unsupported certificates and keys."""

SESSION = "opboost-session"
"""The header of each call that proves that its sender has logged in."""

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


@dataclass(frozen=True, slots=True)
class Identity:
    """A party's certificate and key, and the authority that it trusts, as PEM bytes."""

    name: str
    ca: bytes
    cert: bytes
    key: bytes

    def sign(self, job: str, entry: int, head: bytes) -> Receipt:
        """Return a signed receipt for the head of this party's ledger."""
        receipt = Receipt(self.name, job, entry, head, self.cert, b"")
        return replace(receipt, signature=self.signature(receipt.signed()))

    def login(self, hello: Hello, label_party: str, nonce: bytes) -> Login:
        """Return the answer to a challenge."""
        return Login(self.cert, self.signature(Login.signed(hello, label_party, nonce)))

    def signature(self, data: bytes) -> bytes:
        """Sign data with the certificate's key; the data must begin with a name for its kind."""
        key = serialization.load_pem_private_key(self.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ConfigError(
                "Logins, receipts and bundles are signed with an elliptic-curve key. Make a kit "
                "with such a key."
            )
        return key.sign(data, ec.ECDSA(hashes.SHA256()))


def read_identity(tls: Tls | None, name: str) -> Identity:
    """Read this party's own certificate, and check it before a peer can refuse it."""
    if tls is None:
        raise ConfigError(
            'There is no [tls]. Add [tls] with kit = "certs/NAME" '
            "(opboost certs new NAME --dir certs makes one to try)."
        )
    ca, cert, key = _read(tls.ca), _read(tls.cert), _read(tls.key)
    if os.name == "posix" and tls.key.stat().st_mode & 0o077:
        raise ConfigError(f"The key {tls.key} can be read by others. Run: chmod 600 {tls.key}")
    try:
        certificate = x509.load_pem_x509_certificate(cert)
        private = serialization.load_pem_private_key(key, None)
        x509.load_pem_x509_certificate(ca)
        fits = private.public_key() == certificate.public_key()
    except UNREADABLE as error:
        raise ConfigError(
            f"{tls.cert.parent}: a certificate or key cannot be read: {in_words(error)}."
        ) from None
    if not fits:
        raise ConfigError(f"The key {tls.key} does not belong to the certificate {tls.cert}.")
    found = alternative_names(certificate)
    if found != [name]:
        raise ConfigError(
            f"{tls.cert} is for {', '.join(found) or 'nobody'}; party {name!r} needs one whose "
            "only subject alternative name is its own."
        )
    if certificate.not_valid_before_utc > datetime.now(UTC):
        raise PeerError(
            f"{tls.cert} is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} "
            f"UTC, and this machine's clock shows {datetime.now(UTC):%Y-%m-%d %H:%M}. Correct the "
            "clock, or renew the certificate."
        )
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise PeerError(
            f"{tls.cert} expired on {certificate.not_valid_after_utc:%Y-%m-%d}. Renew it."
        )
    return Identity(name, ca, cert, key)


def check_loopback(address: str) -> None:
    """Refuse plaintext to or from anywhere but this machine."""
    if address.rpartition(":")[0] not in LOOPBACK:
        raise ConfigError(
            f"Plaintext is only for trials on loopback, and {address!r} is not on it. "
            'Use "127.0.0.1:PORT", or certificates.'
        )


def check_receipt(receipt: Receipt, party: str, ca: bytes) -> None:
    """Refuse a receipt that the party did not sign with a certificate of this authority."""
    try:
        signer = issued_by(receipt.certificate, ca)
        verify(signer, receipt.signature, receipt.signed())
    except (ValueError, InvalidSignature):
        raise PeerError(f"The receipt of party {party!r} has no valid signature.") from None
    if receipt.party != party or alternative_names(signer) != [party]:
        raise PeerError(f"The receipt is not from party {party!r}.")


def check_login(login: Login, hello: Hello, label_party: str, nonce: bytes, ca: bytes) -> None:
    """Refuse a login that the party did not sign with its own certificate, over this nonce."""
    signer = check_named(login.certificate, hello.party, ca)
    try:
        verify(signer, login.signature, Login.signed(hello, label_party, nonce))
    except InvalidSignature:
        raise PeerError(
            f"The login of party {hello.party!r} has no valid signature. Log in again."
        ) from None


def check_named(certificate: bytes, party: str, ca: bytes) -> x509.Certificate:
    """Return a certificate of this authority that names only the party and is valid today.

    Refuse any other.  TLS is less strict: gRPC also accepts a certificate that names the party as
    its subject, by an address or among other names.
    """
    try:
        found = issued_by(certificate, ca)
    except (ValueError, InvalidSignature):
        raise PeerError(
            f"The certificate of party {party!r} was not issued by the authority in ca.pem."
        ) from None
    if (names := alternative_names(found)) != [party]:
        raise PeerError(
            f"The certificate of party {party!r} is for {', '.join(names) or 'nobody'}. It needs "
            "one subject alternative name, a DNS name, which is the party's."
        )
    if not _good_today(found):
        raise PeerError(
            f"The certificate of party {party!r} is valid from {_dates(found)}, not today. "
            "Renew it."
        )
    return found


def as_pem(certificate: x509.Certificate) -> bytes:
    """Return one certificate as PEM bytes."""
    return certificate.public_bytes(serialization.Encoding.PEM)


def check_certificate(certificate: bytes, what: str, ca: bytes) -> x509.Certificate:
    """Return a certificate that this authority issued to one party and that is valid today."""
    try:
        signer = issued_by(certificate, ca)
    except (ValueError, InvalidSignature):
        raise PeerError(
            f"{what} is signed with a certificate that this party's authority did not issue."
        ) from None
    if len(alternative_names(signer)) != 1:
        raise PeerError(f"{what} is signed with a certificate that does not name one party.")
    if not _good_today(signer):
        raise PeerError(
            f"{what} is signed with a certificate that is valid from {_dates(signer)}, not today. "
            "Its sender has to renew it."
        )
    authority = x509.load_pem_x509_certificate(ca)
    if not _good_today(authority):
        raise PeerError(
            f"{what} cannot be checked: the authority's certificate (ca.pem) is valid from "
            f"{_dates(authority)}, not today. All parties need a new one."
        )
    return signer


def _good_today(certificate: x509.Certificate) -> bool:
    now = datetime.now(UTC)
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def _dates(certificate: x509.Certificate) -> str:
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return f"{first:%Y-%m-%d} to {last:%Y-%m-%d}"


def issued_by(certificate: bytes, ca: bytes) -> x509.Certificate:
    """Load a certificate; raise ValueError or InvalidSignature unless the authority signed it."""
    try:
        found = x509.load_pem_x509_certificate(certificate)
        found.verify_directly_issued_by(x509.load_pem_x509_certificate(ca))
    except UNREADABLE as error:
        raise ValueError("The certificate cannot be read or checked.") from error
    return found


def verify(signer: x509.Certificate, signature: bytes, data: bytes) -> None:
    """Raise InvalidSignature unless the certificate's key signed the data."""
    try:
        key = signer.public_key()
    except UNREADABLE:
        raise InvalidSignature from None
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise InvalidSignature
    key.verify(signature, data, ec.ECDSA(hashes.SHA256()))


def alternative_names(certificate: x509.Certificate) -> list[str]:
    """Return a certificate's DNS names and, for other names, their kinds.

    Return an empty list if they cannot be read.
    """
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, x509.DuplicateExtension, *UNREADABLE):
        return []
    return [n.value if isinstance(n, x509.DNSName) else f"({type(n).__name__})" for n in names]


def named_in(path: Path) -> str:
    """Return the party that a certificate's file names."""
    try:
        found = alternative_names(x509.load_pem_x509_certificate(_read(path)))
    except UNREADABLE as error:
        raise ConfigError(f"{path}: the certificate cannot be read: {in_words(error)}.") from None
    if len(found) != 1 or not PARTY_NAME.fullmatch(found[0]):
        raise ConfigError(f"{path} is for {', '.join(found) or 'nobody'}, not for one party.")
    return found[0]


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"{path} cannot be read: {error.strerror}. "
            "opboost certs new NAME --dir certs makes a kit to try."
        ) from None
