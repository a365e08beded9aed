"""Bundles and receipts: altered on the way, and signed by a hostile peer."""

import hashlib
import json
import pickle
import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random

from opboost.config.job_file import LabelConfig, load_feature, load_label
from opboost.demo.local_federation import LABEL_PARTY
from opboost.errors import PeerError, PrivacyError
from opboost.ledger.open_ledger import open_ledger
from opboost.protocol.messages import Receipt, SplitQuery, decode
from opboost.transport.feature.feature_job import feature_party
from opboost.transport.label import label_bundles
from opboost.transport.shared.bundle_chain import BundleChain
from opboost.transport.shared.bundle_file import MARK, Header, open_bundle, signed_text, with_length
from opboost.transport.shared.bundle_steps import Tools, check_items, check_sizes, pair_of
from opboost.transport.shared.tls import Identity, check_certificate, check_receipt, read_identity
from robustness.bundle_office import Office, extracted
from robustness.fuzz.mutate import spoilt, spoilt_json
from robustness.fuzz.target import FuzzDrill, Target, holds, of_files
from robustness.fuzz.targets.config import der_of, pem_of
from robustness.fuzz.targets.messages import respoilt
from robustness.fuzz.targets.streams import spoilt_stream
from robustness.party_processes import federation


def _made(folder: Path) -> tuple[Path, dict[int, Path]]:
    """Run a whole job by bundles; return its folder and what each step wrote."""
    booster = {"num_boost_round": 3, "max_depth": 2, "nthread": 1}
    office = Office(federation(folder / "job", ("shop",), rows=120, booster=booster))
    found = [office.begun()["shop"]]
    for number, verb in enumerate(("align", "align", "export", "split-query", "answer")):
        party = LABEL_PARTY if number % 2 else "shop"
        found += office.written(party, verb, found[-1]).values()
    return folder / "job", {number: Path(path) for number, path in enumerate(found, 1)}


def _label_party(folder: Path) -> tuple[LabelConfig, Tools]:
    bank = load_label(folder / "bank" / "bank.toml")
    return bank, Tools.of(bank.tls, "bank")


def _resigned(header: bytes, items: bytes, identity: Identity) -> bytes:
    """Return a bundle of this header and these items, signed as its sender would sign it."""
    start = MARK + with_length(header)
    digest = hashlib.sha256(start + items).digest()
    signature = identity.signature(signed_text(digest, identity.cert))
    return start + items + with_length(identity.cert) + with_length(signature)


def _cut(data: bytes) -> tuple[bytes, bytes]:
    """Return the header and the encrypted items of a bundle."""
    begin = len(MARK) + 8
    size = int.from_bytes(data[len(MARK) : begin], "big")
    header = data[begin : begin + size]
    items = Header.from_bytes(header).bundle_size()
    return header, data[begin + size : begin + size + items]


def _prepare_outside(home: Path) -> FuzzDrill:
    folder, made = _made(home)
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
                with suppress(ValueError, RecursionError):
                    tree = json.loads(header)
                    header = json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()
        else:
            items = spoilt(rng, items)
        return _resigned(header, items, shop)

    def feed(data: bytes) -> None:
        file.write_bytes(data)
        bundle = open_bundle(file, tools.identity.ca)
        holds(Header.from_bytes(bundle.header.to_bytes()) == bundle.header, "a header changes")
        check_sizes(bundle)
        extracted(bundle, tools.key, inside)
        talk.check(bundle, "finish", 6)
        check_items(inside, ["answer"])

    return FuzzDrill(make, feed)


def _prepare_inside(number: int, home: Path) -> FuzzDrill:
    """Prepare the content of a feature party's bundle, as the label party checks it."""
    folder, made = _made(home)
    bank, tools = _label_party(folder)
    bundle = open_bundle(made[number], tools.identity.ca)
    opened, inside = home / "opened", home / "inside"
    job = label_bundles.BundleJob(bank, bank.state / bundle.header.job, tools)
    items = extracted(bundle, tools.key, opened, job.intake.unlocked(bundle.header)[1])
    streams = [data for name, data in items.items() if name.endswith(".arrow")]
    others = streams or list(items.values())

    def change(rng: Random, data: bytes) -> bytes:
        if data in streams:
            return spoilt_stream(rng, data, streams)
        return spoilt(rng, data, others) if rng.random() < 0.2 else respoilt(rng, data, others)

    def put(file: Path, data: bytes) -> None:
        shutil.rmtree(inside, ignore_errors=True)
        shutil.copytree(opened, inside)
        file.write_bytes(data)

    files = [(inside / name, data) for name, data in items.items()]
    return of_files(files, lambda: job.intake.check_inside(inside, "shop", number), change, put)


def _prepare_query(home: Path) -> FuzzDrill:
    """Prepare a split query, as the feature party answers it."""
    folder, made = _made(home)
    shop = load_feature(folder / "shop" / "shop.toml")
    tools = Tools.of(shop.tls, "shop")
    query = open_bundle(made[5], tools.identity.ca)
    good = extracted(query, tools.key, home / "opened")["query"]
    party = feature_party(shop, open_ledger(shop.ledger))

    def feed(data: bytes) -> None:
        query = decode(data, SplitQuery)
        party.answer(query)
        list(party._answers.values(party.folder(query.job), query))

    return FuzzDrill(lambda rng: respoilt(rng, good), feed)


def _prepare_receipt(home: Path) -> FuzzDrill:
    """Prepare a receipt's certificate and signature, and a certificate without a receipt."""
    folder, _ = _made(home)
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
        return pickle.dumps((certificate, signature))

    def feed(data: bytes) -> None:
        certificate, signature = pickle.loads(data)
        receipt = Receipt(good.party, good.job, good.entry, good.head, certificate, signature)
        check_receipt(receipt, "shop", shop.ca)
        check_certificate(certificate, "The bundle", shop.ca)

    return FuzzDrill(make, feed)


TARGETS = [
    Target("bundle: outside", (PeerError,), _prepare_outside, most=20_000),
    Target("bundle: points inside", (PeerError,), partial(_prepare_inside, 2), most=10_000),
    Target("bundle: release inside", (PeerError,), partial(_prepare_inside, 4), most=10_000),
    Target("bundle: answer inside", (PeerError,), partial(_prepare_inside, 6), most=10_000),
    Target("split query to a party", (PeerError, PrivacyError), _prepare_query, most=20_000),
    Target("receipt and certificate", (PeerError,), _prepare_receipt, most=40_000),
]
