"""Files that people write: the job file, party files, column configurations, key files."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random

from opboost.config.columns_file import load
from opboost.config.job_file import is_label_party, load_feature, load_job, load_label
from opboost.errors import ConfigError, OpBoostError, PeerError
from opboost.ledger.key_file import KeyFile
from opboost.transport.shared.bundle_keys import read_key, read_public
from opboost.transport.shared.development_certificates import new_kit
from opboost.transport.shared.tls import named_in, read_identity
from robustness.fuzz.mutate import spoilt, spoilt_json, spoilt_toml
from robustness.fuzz.target import FuzzDrill, Target

JOB_FILES = (
    b'[job]\nname = "credit"\nlabel_party = "bank"\nfeature_parties = ["shop", "telco"]\n'
    b'align = "psi"\npurpose = "train"\n[align]\ntrim = true\ncase = "lower"\nunicode = "NFKC"\n',
    b'[job]\nname = "p"\nlabel_party = "bank"\nfeature_parties = ["shop"]\nalign = "given"\n'
    b'purpose = "predict"\n[align]\nparts = ["branch", "number"]\n',
)

COLUMN_FILES = (
    b"""[grid]
lower = 1
upper = 10
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.age]
bounds = [17, 90]
missing = "flag"
eps_missing = 1.0
missing_constant = 50
attribute = "shop.age"
[columns.pay]
bounds = [1, 1000]
scale = "log"
outside = "raise"
missing = 7
[columns.pay.mechanism]
kind = "adj-map"
epsilon = 0.64
theta = 2
alpha = 1.0
[columns.pay.grid]
lower = 1
upper = 20
[columns.city]
categories = ["north", "south", "east"]
[columns.size]
categories = [1, 2, 3]
ordered = true
[table]
public = ["region"]
drop = ["name"]
[budget]
split = "weighted"
[budget.weights]
age = 2.0
pay = 1.0
city = 1.0
size = 1.0
[booster]
kind = "xgboost"
seed = 7
denoise = "auto"
params = { max_depth = 3, eta = 0.1 }
""",
    b"""[mechanism]
kind = "local-map"
epsilon = 1
theta = [3, 7]
[columns.age]
bounds = [0, 1.5]
scale = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
[columns.b]
bounds = [-1e3, 1e3]
mapping = "paper"
mechanism = { kind = "global-map", epsilon = 2.0 }
[columns.c]
bounds = [0, 1]
mechanism = { kind = "piecewise", epsilon = 2.0 }
[columns.d]
bounds = [0, 1]
mechanism = { kind = "randomized-response", epsilon = 2.0 }
[columns.e]
categories = ["x", nan]
mechanism = { kind = "unary-encoding", epsilon = 1.0, encoding = "sue" }
[budget]
split = "sampled"
columns_per_row = 2
""",
)

FEATURE_FILE = b"""[party]
name = "shop"
job = "job.toml"
table = "shop.parquet"
connect = "bank.example:8815"
state = "state-shop"
units = "raw"
names = "shown"
codebook = "full"
[tls]
kit = "certs/shop"
[align]
id = ["branch", "number"]
minimum_rows = 100
most_rows = 5000000
repeats = 20
[ledger]
folder = "ledger"
key = "keys/ledger.key"
cap_attribute = 12.0
cap_person = 60.0
new_attributes = ["a"]
people = "id"
[mechanism]
kind = "clamp-map"
epsilon = 0.64
[columns.basket]
bounds = [0, 500]
[limits]
connect_seconds = 60.0
wait_seconds = 60.0
[peers.bank]
public = "bank.public"
"""

LABEL_FILE = b"""[party]
name = "bank"
job = "job.toml"
table = "bank.parquet"
listen = "0.0.0.0:8815"
[label]
column = "default"
task = "auto"
model = "model.opboost"
ask = "always"
[tls]
ca = "ca.pem"
cert = "cert.pem"
key = "key.pem"
encryption = "e.key"
[align]
id = ["branch", "number"]
[booster]
kind = "xgboost"
params = { num_boost_round = 80 }
[peers.shop]
revoked = false
public = "shop.public"
[limits]
memory_mb = 1024
columns = 100
"""


def _toml(
    name: str, samples: tuple[bytes, ...], read: Callable[[Path], object], home: Path
) -> FuzzDrill:
    trees = [tomllib.loads(sample.decode()) for sample in samples]
    file = home / name
    (home / "job.toml").write_bytes(JOB_FILES[1].replace(b'"predict"', b'"train"'))

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
    from opboost.transport.shared.development_certificates import kit_files

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
    import base64

    lines = pem.decode().strip().splitlines()
    return lines[0].strip("-").removeprefix("BEGIN "), base64.b64decode("".join(lines[1:-1]))


def pem_of(label: str, der: bytes) -> bytes:
    import base64

    text = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{text}-----END {label}-----\n".encode()


def _prepare_ledger_key(home: Path) -> FuzzDrill:
    file, good = home / "ledger.key", b"ab" * 32 + b"\n" + b"cd" * 32 + b"\n"
    file.touch(mode=0o600)

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        KeyFile.read(file, home / "ledger", new=False)

    return FuzzDrill(lambda rng: spoilt(rng, good, [b"\xff\xfe", b"\xc3\xa9"]), feed)


def _target(
    name: str,
    samples: tuple[bytes, ...],
    read: Callable[[Path], object],
    share: float,
    errors: tuple[type[OpBoostError], ...] = (ConfigError,),
) -> Target:
    file = name.replace(" ", "-") + ".toml"
    return Target(name, "user", errors, partial(_toml, file, samples, read), share=share)


TARGETS = [
    _target("job file", JOB_FILES, load_job, 2),
    _target("column configuration", COLUMN_FILES, _plan, 2),
    _target("feature party's file", (FEATURE_FILE,), load_feature, 1),
    _target("label party's file", (LABEL_FILE,), _label, 1),
    Target("public key file", "peer", (PeerError,), _prepare_public, share=1),
    Target("certificates and keys of a kit", "user", (ConfigError, PeerError), _prepare_kit),
    Target("ledger's key file", "user", (ConfigError,), _prepare_ledger_key),
]
