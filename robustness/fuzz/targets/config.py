"""Files that people write: the job file, party files, column configurations, key files."""

from __future__ import annotations

import base64
import tomllib
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
from robustness.fuzz.target import FuzzDrill, Target, sample


def _toml(names: tuple[str, ...], read: Callable[[Path], object], home: Path) -> FuzzDrill:
    samples = [sample(name) for name in names]
    trees = [tomllib.loads(data.decode()) for data in samples]
    file = home / f"{names[0]}.toml"
    (home / "job.toml").write_bytes(sample("job-given").replace(b'"predict"', b'"train"'))

    def make(rng: Random) -> bytes:
        place = rng.randrange(len(samples))
        return spoilt_toml(rng, trees[place], samples[place], samples)

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        read(file)

    return FuzzDrill(make, feed)


def _plan(path: Path) -> None:
    plan = load(path)
    str(plan.guarantee())
    [column.release_names() for column in plan.private]


def _label(path: Path) -> None:
    is_label_party(path)
    load_label(path)


def _prepare_public(home: Path) -> FuzzDrill:
    kits = home / "certs"
    new_kit("bank", kits)
    new_kit("shop", kits)
    good = [(kits / f"{name}.public").read_bytes() for name in ("bank", "shop")]
    ca = (kits / "ca" / "ca.pem").read_bytes()
    file = home / "bank.public"

    def make(rng: Random) -> bytes:
        return spoilt_json(rng, rng.choice(good), good)

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        key = read_public(file, "bank", ca)
        key.encrypt(b"x", b"y")

    return FuzzDrill(make, feed)


def _prepare_kit(home: Path) -> FuzzDrill:
    """Certificate, authority and key of one's own: PEM files of whatever content."""
    kit = new_kit("bank", home / "certs")
    names = ("ca.pem", "cert.pem", "key.pem", "encryption.key")
    good = [(kit / name).read_bytes() for name in names]
    ders = [der_of(pem) for pem in good]

    def make(rng: Random) -> bytes:
        place = rng.randrange(4)
        if rng.random() < 0.4:
            data = spoilt(rng, good[place], good)
        else:
            label, der = ders[place]
            data = pem_of(label, spoilt(rng, der, [d for _, d in ders]))
        return bytes([place]) + data

    def feed(data: bytes) -> None:
        place = data[0]
        file = kit / names[place]
        file.write_bytes(data[1:])
        try:
            tls = kit_files(kit)
            if place == 3:
                read_key(tls.encryption).public("bank")
                return
            identity = read_identity(tls, "bank")
            identity.signature(b"x")
            named_in(tls.cert)
        finally:
            file.write_bytes(good[place])

    return FuzzDrill(make, feed)


def der_of(pem: bytes) -> tuple[str, bytes]:
    lines = pem.decode().strip().splitlines()
    return lines[0].strip("-").removeprefix("BEGIN "), base64.b64decode("".join(lines[1:-1]))


def pem_of(label: str, der: bytes) -> bytes:
    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n".encode()


def _prepare_ledger_key(home: Path) -> FuzzDrill:
    file, good = home / "ledger.key", b"ab" * 32 + b"\n" + b"cd" * 32 + b"\n"
    file.touch(mode=0o600)

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        KeyFile.read(file, home / "ledger", new=False)

    return FuzzDrill(lambda rng: spoilt(rng, good, [b"\xff\xfe", b"\xc3\xa9"]), feed)


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
