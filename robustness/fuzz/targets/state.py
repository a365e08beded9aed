"""What parties keep on disk during a job: records, party folders, chains, models in codes."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import opboost as op
from opboost.errors import DataError, OpBoostError, PeerError, PrivacyError
from opboost.parties.label.model_in_codes import first_books
from opboost.protocol.messages import Cuts, Receipt, SplitQuery, Welcome, encode
from opboost.scale import Manifest, release_secret
from opboost.scale import read_manifest as read_release
from opboost.scale.part_writer import PartReceipt, read_receipt
from opboost.storage import atomic_files
from opboost.transport.feature.feature_job import signed_receipt
from opboost.transport.label.job_folder import JobRecord, PartyFolder, jobs, newest_receipt, status
from opboost.transport.label.label_job import read_manifest
from opboost.transport.shared.bundle_chain import STEPS, BundleChain, BundleEntry, Pair
from robustness.fuzz.target import FuzzDrill, Target, of_files, put_checked
from robustness.fuzz.targets.messages import JOB, columns

RECORD = JobRecord(
    *(JOB, "ab" * 32, "cd" * 32, 100, "ef" * 32, "bank", ("shop", "telco"), ("telco",)),
    *(True, 100, 1, "psi", 5000, "network", "train"),
)

Kept = tuple[str, bytes]

CHECKED = (
    *("job.json", "points", "expected", "due", "common", "books.json", "binding.json", "*.values"),
    *("_manifest.json", "part-*.json"),
)
"""Files that end with a digest of the rest."""


def _put(file: Path, data: bytes) -> None:
    """Write a case's bytes, with a checksum if the file ends with one."""
    checked = any(file.match(pattern) for pattern in CHECKED)
    (put_checked if checked else Path.write_bytes)(file, data)


def _prepare(kept: Sequence[Kept], use: Callable[[Path], Any], home: Path) -> FuzzDrill:
    """Prepare the files of one folder, one of which a case spoils."""
    job = home / JOB
    files = [(job / name, data) for name, data in kept]
    for file, _ in files:
        file.parent.mkdir(parents=True, exist_ok=True)
    return of_files(files, lambda: use(job), put=_put)


def _json(tree: Any) -> bytes:
    return json.dumps(tree).encode()


RECORD_FILES = (
    ("job.json", _json(asdict(RECORD))),
    ("job.json", _json(asdict(RECORD))),
    ("parties/shop/points", _json({"tag": "00" * 16, "total": 50, "bytes": 3})),
    ("parties/shop/expected", _json({"rows": 40, "ids": "ab" * 32, "secret": "cd" * 32})),
    ("parties/shop/due", b"4"),
    ("manifest.json", _json({"job": JOB, "rows": 3, "seconds": 1.5})),
    ("common", bytes(32) + (3).to_bytes(8, "big") + b"\xe0"),
    ("parties/shop/receipt", encode(Receipt("shop", JOB, 3, bytes(32), b"c", b"s"))),
    ("parties/shop/refused", b"The points cannot be used."),
    ("stopped", b"too few rows"),
)
CHAIN = (BundleEntry(1, "bank", "ab" * 32), BundleEntry(2, "shop", "cd" * 32))
CHAIN_FILES = (("bundles/shop.json", _json([asdict(entry) for entry in CHAIN])),)
TRAINED_FILES = (("books.json", _json({0: [1, 2, 5], 1: None})),)
MANIFEST = Manifest("ab" * 16, 3, "0.64-dLDP", 5.76, {"part-00000.parquet": "cd" * 32})
RELEASE_FILES = (
    ("_manifest.json", _json(asdict(MANIFEST))),
    (release_secret.RECEIPT.format(0), _json(asdict(PartReceipt(3, "ab" * 32, {"age": 1})))),
)


def _look(job: Path) -> None:
    jobs(job.parent)
    record = JobRecord.load(job)
    json.dumps(status(job))
    box = PartyFolder(job, "shop")
    box.expected(record)
    box.due()
    newest_receipt(job.parent, "shop")
    read_manifest(job)
    refused = box.folder / "refused"
    words = refused.read_bytes()
    box.take_refusal()
    refused.write_bytes(words)


def _chain(job: Path) -> None:
    talk = BundleChain(job, Pair("bank", "shop", "ab" * 32, JOB, "bank", STEPS))
    talk.due()
    talk.written()


def _prepare_party(home: Path) -> FuzzDrill:
    """Prepare a feature party's job folder, from which it answers and signs."""
    numbers = np.random.default_rng(0)
    table = pa.table({"age": numbers.uniform(0, 100, 60)})
    party = op.FeatureParty(table, columns()[:1], state=home / "state", name="shop")
    welcome = Welcome(JOB, bytes(32), b"")
    party.release(welcome)
    query = SplitQuery(JOB, True, (Cuts(0, (1, 3)),))
    party.answer(query)
    folder = party.folder(JOB)
    kept = [(folder / name, (folder / name).read_bytes()) for name in ("schema", "answer")]
    kept += [
        (folder / name, atomic_files.read_checked(folder / name, ""))
        for name in ("binding.json", "00000.values")
    ]

    def put(file: Path, data: bytes) -> None:
        for known, content in kept:
            _put(known, content)
        _put(file, data)
        if file.suffix == ".values":
            (folder / "answer").unlink(missing_ok=True)

    def use() -> None:
        party.release(welcome)
        party.answer(query)
        signed_receipt(folder, party._ledger, _Signer())

    return of_files(kept, use, put=put)


def _released(folder: Path) -> None:
    read_release(folder)
    read_receipt(folder, 0)


class _Signer:
    """A stand-in for a party's identity, whose files are not fuzzed here."""

    def sign(self, job: str, entry: int, head: bytes) -> Receipt:
        return Receipt("shop", job, entry, head, b"", b"")


BOOKS = partial(first_books, {})
ERRORS: tuple[type[OpBoostError], ...] = (DataError, PeerError, PrivacyError)
TARGETS = [
    Target("job's state", ERRORS, partial(_prepare, RECORD_FILES, _look), share=1),
    Target("chain of bundles", ERRORS, partial(_prepare, CHAIN_FILES, _chain), share=2),
    Target("release in parts", ERRORS, partial(_prepare, RELEASE_FILES, _released)),
    Target("codebooks of a model", ERRORS, partial(_prepare, TRAINED_FILES, BOOKS)),
    Target("feature party's state", ERRORS, _prepare_party, most=30_000),
]
