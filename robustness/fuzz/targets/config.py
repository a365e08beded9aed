"""Files that people write: the job file, party files, column configurations, key files."""

import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from opboost.config.columns_file import load
from opboost.config.job_file import is_label_party, load_feature, load_job, load_label
from opboost.errors import ConfigError, PeerError
from opboost.ledger.key_file import KeyFile
from opboost.transport.shared.bundle_keys import read_key, read_public
from opboost.transport.shared.development_certificates import kit_files, new_kit
from opboost.transport.shared.tls import named_in, read_identity
from robustness.fuzz.mutate import spoilt, spoilt_json, spoilt_toml
from robustness.fuzz.target import FuzzDrill, Target, of_file, of_files, sample


def _toml(names: tuple[str, ...], read: Callable[[Path], object], home: Path) -> FuzzDrill:
    samples = [sample(name) for name in names]
    (home / "job.toml").write_bytes(sample("job-given").replace(b'"predict"', b'"train"'))
    file = home / f"{names[0]}.toml"
    return of_file(file, lambda rng: spoilt_toml(rng, rng.choice(samples), samples), read)


def _plan(path: Path) -> None:
    plan = load(path)
    str(plan.guarantee())
    [column.release_names() for column in plan.private]


def _label(path: Path) -> None:
    is_label_party(path)
    load_label(path)


def _prepare_public(home: Path) -> FuzzDrill:
    kits = home / "certs"
    made = [new_kit(name, kits) for name in ("bank", "shop")]
    good = [kit.with_suffix(".public").read_bytes() for kit in made]
    ca = (kits / "ca" / "ca.pem").read_bytes()

    def read(file: Path) -> None:
        read_public(file, "bank", ca).encrypt(b"x", b"y")

    return of_file(kits / "bank.public", lambda rng: spoilt_json(rng, rng.choice(good), good), read)


def _prepare_kit(home: Path) -> FuzzDrill:
    """Prepare a party's certificate, authority and keys, spoilt as PEM and as DER."""
    tls = kit_files(new_kit("bank", home / "certs"))
    files = [(file, file.read_bytes()) for file in (tls.ca, tls.cert, tls.key, tls.encryption)]
    ders = [der_of(pem)[1] for _, pem in files]

    def change(rng: Random, data: bytes) -> bytes:
        if rng.random() < 0.4:
            return spoilt(rng, data, [pem for _, pem in files])
        label, der = der_of(data)
        return pem_of(label, spoilt(rng, der, ders))

    def use() -> None:
        read_key(tls.encryption).public("bank")
        read_identity(tls, "bank").signature(b"x")
        named_in(tls.cert)

    return of_files(files, use, change)


def der_of(pem: bytes) -> tuple[str, bytes]:
    lines = pem.decode().strip().splitlines()
    return lines[0].strip("-").removeprefix("BEGIN "), base64.b64decode("".join(lines[1:-1]))


def pem_of(label: str, der: bytes) -> bytes:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n".encode()


def _prepare_ledger_key(home: Path) -> FuzzDrill:
    file, good = home / "ledger.key", b"ab" * 32 + b"\n" + b"cd" * 32 + b"\n"
    file.touch(mode=0o600)
    return of_file(
        file,
        lambda rng: spoilt(rng, good, [b"\xff\xfe", b"\xc3\xa9"]),
        lambda file: KeyFile.read(file, home / "ledger", new=False),
    )


def _target(name: str, read: Callable[[Path], object], share: float, *samples: str) -> Target:
    return Target(name, (ConfigError,), partial(_toml, samples, read), share=share)


TARGETS = [
    _target("job file", load_job, 2, "job-psi", "job-given"),
    _target("column configuration", _plan, 2, "columns-weighted", "columns-sampled"),
    _target("feature party's file", load_feature, 1, "feature-party"),
    _target("label party's file", _label, 1, "label-party"),
    Target("public key file", (PeerError,), _prepare_public, share=1),
    Target("certificates and keys of a kit", (ConfigError, PeerError), _prepare_kit),
    Target("ledger's key file", (ConfigError,), _prepare_ledger_key),
]
