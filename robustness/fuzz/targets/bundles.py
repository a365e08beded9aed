"""Bundles and receipts: altered on the way, and signed by a peer that means no good."""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import lru_cache, partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.config.job_file import LabelConfig, load_feature, load_label
from opboost.demo.local_federation import LABEL_PARTY, LocalFederation, write_federation
from opboost.errors import PeerError, PrivacyError
from opboost.ledger.open_ledger import open_ledger
from opboost.protocol import envelope
from opboost.protocol.messages import Receipt, SplitQuery, decode
from opboost.transport.feature import feature_bundles
from opboost.transport.feature.feature_job import feature_party
from opboost.transport.label import label_bundles
from opboost.transport.shared.bundle_chain import BundleChain
from opboost.transport.shared.bundle_file import MARK, Header, open_bundle, signed_text, with_length
from opboost.transport.shared.bundle_steps import Tools, check_items, check_sizes, pair_of
from opboost.transport.shared.tls import Identity, check_certificate, check_receipt, read_identity
from robustness.fuzz.mutate import spoilt, spoilt_json
from robustness.fuzz.target import FuzzDrill, Target, holds
from robustness.fuzz.targets.config import der_of, pem_of
from robustness.fuzz.targets.messages import repacked
from robustness.fuzz.targets.streams import framed, parts, spoilt_stream

ROWS = 120


def _federation(folder: Path) -> LocalFederation:
    numbers = np.random.default_rng(0)
    ids = pa.array([f"p{i:03d}" for i in range(ROWS)])
    hidden = numbers.uniform(0, 100, ROWS)
    own = pa.table({"own": numbers.uniform(0, 1, ROWS), "y": (hidden > 50).astype(int), "id": ids})
    theirs = pa.table({"a": hidden, "b": numbers.uniform(0, 100, ROWS), "id": ids})
    booster = {"num_boost_round": 3, "max_depth": 2, "nthread": 1}
    bounds = {"a": (0, 100), "b": (0, 100)}
    tables = {"shop": theirs}
    return write_federation(folder, own, "y", tables, bounds, epsilon=2.0, booster=booster)


@lru_cache(maxsize=1)
def _made(folder: Path) -> dict[int, Path]:
    """A whole job by bundles: what each step wrote."""
    federation = _federation(folder)
    bank, shop = load_label(federation.config(LABEL_PARTY)), load_feature(federation.config("shop"))
    out = folder / "out"
    found = {1: label_bundles.begin(bank, out).written[0].path}
    for number, verb in ((2, "align"), (4, "export"), (6, "answer")):
        found[number] = feature_bundles.go_on(shop, verb, found[number - 1], out).written[0].path
        following = {2: "align", 4: "split-query"}.get(number)
        if following:
            outcome = label_bundles.go_on(bank, following, [found[number]], out)
            found[number + 1] = outcome.written[0].path
    return found


def _shared(home: Path) -> tuple[Path, dict[int, Path]]:
    """One job for all targets of a worker."""
    folder = home.parent / "bundles-scene"
    return folder, _made(folder)


def _label_party(folder: Path) -> tuple[LabelConfig, Tools]:
    bank = load_label(folder / "bank" / "bank.toml")
    return bank, Tools.of(bank.tls, "bank")


def _resigned(header: bytes, items: bytes, identity: Identity) -> bytes:
    """A bundle of this header and these items, signed as its sender would."""
    start = MARK + with_length(header)
    digest = hashlib.sha256(start + items).digest()
    signature = identity.signature(signed_text(digest, identity.cert))
    return start + items + with_length(identity.cert) + with_length(signature)


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """The header and the encrypted items of a bundle."""
    begin = len(MARK) + 8
    size = int.from_bytes(data[len(MARK) : begin], "big")
    header = data[begin : begin + size]
    items = Header.from_bytes(header).bundle_size()
    return header, data[begin + size : begin + size + items]


def _prepare_outside(home: Path) -> FuzzDrill:
    folder, made = _shared(home)
    bank, tools = _label_party(folder)
    shop = read_identity(load_feature(folder / "shop" / "shop.toml").tls, "shop")
    whole = [made[n].read_bytes() for n in (2, 4, 6)]
    small = whole[-1]
    job = Header.from_bytes(_cut(small)[0]).job
    talk = BundleChain(bank.state / job, pair_of(bank.job, "bank", "shop", job))
    file, inside = home / "case.bundle", home / "inside"

    def make(rng: Random) -> bytes:
        way, data = rng.random(), rng.choice((*whole, small, small, small))
        if way < 0.3:
            return spoilt(rng, data, whole)
        header, items = _cut(data)
        if way < 0.8:
            header = spoilt_json(rng, header)
            if rng.random() < 0.7:
                try:
                    tree = json.loads(header)
                    header = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
                except (ValueError, RecursionError):
                    pass
        else:
            items = spoilt(rng, items)
        return _resigned(header, items, shop)

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        bundle = open_bundle(file, tools.identity.ca)
        holds(Header.from_bytes(bundle.header.to_bytes()) == bundle.header, "a header says other")
        check_sizes(bundle)
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir()
        bundle.extract(tools.key, inside)
        talk.check(bundle, "finish", 6)
        check_items(inside, ["answer"])

    return FuzzDrill(make, feed)


def _spoilt_item(rng: Random, name: str, data: bytes, others: list[bytes]) -> bytes:
    if name.endswith(".arrow"):
        return spoilt_stream(rng, data, others)
    if rng.random() < 0.2:
        return spoilt(rng, data, others)
    return repacked(spoilt(rng, data[len(envelope.MARK) + 32 :], others))


def _prepare_inside(number: int, home: Path) -> FuzzDrill:
    """What a feature party's bundle holds, as the label party checks it."""
    folder, made = _shared(home)
    bank, tools = _label_party(folder)
    bundle = open_bundle(made[number], tools.identity.ca)
    opened = home / "opened"
    opened.mkdir()
    job = label_bundles.BundleJob(bank, bank.state / bundle.header.job, tools)
    bundle.extract(tools.key, opened, job.intake.unlocked(bundle.header)[1])
    items = {file.name: file.read_bytes() for file in sorted(opened.iterdir())}
    inside = home / "inside"
    names, contents = list(items), list(items.values())
    streams = [data for name, data in items.items() if name.endswith(".arrow")] or contents

    def make(rng: Random) -> bytes:
        place = rng.randrange(len(names))
        data = _spoilt_item(rng, names[place], contents[place], streams)
        return bytes([place]) + data

    def feed(data: bytes) -> None:
        shutil.rmtree(inside, ignore_errors=True)
        inside.mkdir()
        for place, name in enumerate(names):
            content = data[1:] if place == data[0] else contents[place]
            (inside / name).write_bytes(content)
        job.intake.check_inside(inside, "shop", number)

    return FuzzDrill(make, feed)


def _prepare_query(home: Path) -> FuzzDrill:
    """A split query, as the feature party answers it."""
    folder, made = _shared(home)
    shop = load_feature(folder / "shop" / "shop.toml")
    tools = Tools.of(shop.tls, "shop")
    opened = home / "opened"
    opened.mkdir()
    open_bundle(made[5], tools.identity.ca).extract(tools.key, opened)
    good = (opened / "query").read_bytes()
    party = feature_party(shop, open_ledger(shop.ledger))

    def make(rng: Random) -> bytes:
        return repacked(spoilt(rng, good[len(envelope.MARK) + 32 :]))

    def feed(data: bytes) -> None:
        query = decode(data, SplitQuery)
        party.answer(query)
        list(party._answers.values(party.folder(query.job), query))

    return FuzzDrill(make, feed)


def _prepare_receipt(home: Path) -> FuzzDrill:
    """A receipt's certificate and signature, and a certificate alone."""
    folder, _ = _shared(home)
    shop = read_identity(load_feature(folder / "shop" / "shop.toml").tls, "shop")
    good = shop.sign("20260102T030405Z-00000000", 3, bytes(32))
    label, der = der_of(shop.cert)

    def make(rng: Random) -> bytes:
        certificate, signature = good.certificate, good.signature
        way = rng.random()
        if way < 0.6:
            certificate = pem_of(label, spoilt(rng, der))
        elif way < 0.8:
            certificate = spoilt(rng, certificate)
        else:
            signature = spoilt(rng, signature)
        return framed(certificate, signature)

    def feed(data: bytes) -> None:
        certificate, signature = parts(data)
        receipt = Receipt(good.party, good.job, good.entry, good.head, certificate, signature)
        check_receipt(receipt, "shop", shop.ca)
        check_certificate(certificate, "The bundle", shop.ca)

    return FuzzDrill(make, feed)


def _target(name: str, prepare: Any, most: int, *more: Any) -> Target:
    return Target(name, (PeerError, *more), prepare, most=most)


TARGETS = [
    _target("bundle: outside", _prepare_outside, 20_000),
    _target("bundle: points inside", partial(_prepare_inside, 2), 10_000),
    _target("bundle: release inside", partial(_prepare_inside, 4), 10_000),
    _target("bundle: answer inside", partial(_prepare_inside, 6), 10_000),
    _target("split query to a party", _prepare_query, 20_000, PrivacyError),
    _target("receipt and certificate", _prepare_receipt, 40_000),
]
