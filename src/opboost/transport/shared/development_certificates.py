"""A development authority and its certificates: one kit per party.

The party's name is the only subject alternative name of its certificate, because that is how the
transport identifies a peer.  In production, have your own authority sign certificates of this form.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from opboost.config.job_file import Tls
from opboost.errors import ConfigError
from opboost.protocol.messages import PARTY_NAME
from opboost.storage import atomic_files
from opboost.transport.shared.bundle_keys import certify, new_key, read_key
from opboost.transport.shared.tls import Identity, named_in, read_identity

PARTS = ("ca", "cert", "key")
VALID_DAYS = 397
"""Days for which a party's certificate is valid."""
AUTHORITY_DAYS = 3650
"""Days for which the authority's certificate is valid."""


def new_kit(
    name: str, folder: Path, *, days: float = VALID_DAYS, authority_days: float = AUTHORITY_DAYS
) -> Path:
    """Make certificates for a party, signed by the authority in ``folder``; return their folder.

    The authority is made if there is none.  The kit holds ``ca.pem``, ``cert.pem`` and ``key.pem``,
    and for bundles ``encryption.key``.  The public half of that key, ``NAME.public``, is written
    beside the kit, for the other parties.
    """
    if not PARTY_NAME.fullmatch(name):
        raise ConfigError(
            f"A party's name is made of a-z, 0-9 and '-' (at most 63); got {name[:80]!r}."
        )
    kit = folder / name
    if (kit / "cert.pem").exists():
        raise ConfigError(f"{kit} holds a certificate already. Remove it to make a new one.")
    authority, authority_key = _authority(folder / "ca", authority_days)
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    certificate = (
        _builder(name, authority.subject, key.public_key(), days)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    kit.mkdir(parents=True, exist_ok=True)
    atomic_files.write(kit / "key.pem", _private(key), mode=0o600)
    atomic_files.write(kit / "ca.pem", authority.public_bytes(serialization.Encoding.PEM))
    atomic_files.write(kit / "cert.pem", certificate.public_bytes(serialization.Encoding.PEM))
    tls = kit_files(kit)
    _certify(tls, Identity(name, *(f.read_bytes() for f in (tls.ca, tls.cert, tls.key))))
    return kit


def add_encryption(kit: Path, own: Path | None = None) -> Path:
    """Make a kit's encryption key unless it exists, and certify its public half (again).

    ``own`` is the path of a key that was moved: certify it instead of making a key.
    """
    tls = kit_files(kit, own)
    identity = read_identity(tls, named_in(tls.cert))
    if own is None and not tls.encryption.exists() and tls.public_of(identity.name).exists():
        raise ConfigError(
            f"{tls.public_of(identity.name)} was certified before, and {tls.encryption} is "
            "missing. Give its new path with --key; if it is lost, remove the public file, run "
            "this again, and give the new public file to every party."
        )
    if own is not None:
        read_key(own)
    return _certify(tls, identity)


def kit_files(kit: Path, own: Path | None = None) -> Tls:
    """Return the files of a kit; ``own`` is another path of the encryption key."""
    ca, cert, key = (kit / f"{part}.pem" for part in PARTS)
    return Tls(ca, cert, key, own or kit / "encryption.key", {})


def _certify(tls: Tls, identity: Identity) -> Path:
    target = tls.public_of(identity.name)
    key = new_key(tls.encryption).public(identity.name)
    atomic_files.write(target, certify(key, identity))
    return target


def _authority(folder: Path, days: float) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    if (folder / "ca.pem").exists():
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes()), key
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "OpBoost development authority")])
    certificate = (
        _builder("", subject, key.public_key(), days, subject)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(
            x509.KeyUsage(False, False, False, False, False, True, True, False, False),
            critical=True,
        )
        .sign(key, hashes.SHA256())
    )
    folder.mkdir(parents=True, exist_ok=True)
    atomic_files.write(folder / "ca.key", _private(key), mode=0o600)
    atomic_files.write(folder / "ca.pem", certificate.public_bytes(serialization.Encoding.PEM))
    return certificate, key


def _builder(
    name: str,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    days: float,
    subject: x509.Name | None = None,
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    own = subject or x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    return (
        x509.CertificateBuilder()
        .subject_name(own)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=max(1.0, 1.0 - days)))
        .not_valid_after(now + timedelta(days=days))
    )


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
