"""Checks of a party's file, and of the table, keys, certificates and folders that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509

from opboost.config import load
from opboost.config.columns_file import validated
from opboost.config.job_file import (
    FeatureConfig,
    LabelConfig,
    Tls,
    is_label_party,
    load_feature,
    load_label,
)
from opboost.config.sections import LedgerSection
from opboost.config.toml_files import read
from opboost.doctor.finding import Finding, State
from opboost.doctor.machine_checks import disk
from opboost.errors import DataError, OpBoostError, exit_status
from opboost.files.read_tables import column_names, table_files
from opboost.ledger.store import CHAIN_FILE
from opboost.sources.table_address import TableAddress, may_be_read
from opboost.transport.feature.release_checks import check_config
from opboost.transport.label.label_checks import check_label_side
from opboost.transport.label.label_job import read_data
from opboost.transport.shared.bundle_keys import read_key, read_public
from opboost.transport.shared.tls import UNREADABLE, read_identity

RENEW_BEFORE = timedelta(days=30)
"""A certificate that expires within this time should be renewed now."""


def examine_party(path: Path) -> Iterator[Finding]:
    """Yield checks of a file and all that it names; stop at the first error in the file itself."""
    try:
        sections = validated(read(path), path.name)
        if sections.party is None:
            load(path)
            yield Finding("configuration", State.ok, f"{path.name} declares columns, no party")
            if sections.ledger is not None:
                yield _ledger_key(sections.ledger.based(path.parent))
            return
        found = load_label(path) if is_label_party(path) else load_feature(path)
    except OpBoostError as error:
        yield _wrong("configuration", path.name, error)
        return
    role = "label party" if isinstance(found, LabelConfig) else "feature party"
    yield Finding(
        "configuration", State.ok, f"{found.party.name}, {role} of job {found.job.name!r}"
    )
    yield _table(found.table, path)
    yield from _certificates(found)
    yield disk("disk, state", found.state)
    if isinstance(found, FeatureConfig):
        key = _ledger_key(found.ledger)
        yield key
        yield disk("disk, ledger", Path(found.ledger.folder))
        if key.well:
            yield _release(found, path)
    elif found.job.purpose == "train":
        yield disk("disk, model", found.model.parent)
        yield _training(found, path)


def _training(found: LabelConfig, path: Path) -> Finding:
    """Check what opboost serve would refuse before it listens."""
    if not may_be_read(found.table):
        return Finding(
            "training", State.warning, "not tried without the table", "See the line of the table."
        )
    try:
        check_label_side(found, read_data(found))
    except OpBoostError as error:
        return _wrong("training", path.name, error)
    return Finding("training", State.ok, f"{found.booster.kind} trains on made-up rows")


def _release(found: FeatureConfig, path: Path) -> Finding:
    """Check what opboost join would refuse before it connects."""
    try:
        check_config(found)
    except OpBoostError as error:
        return _wrong("release", path.name, error)
    looked = "caps, columns, IDs and values" if may_be_read(found.table) else "caps"
    return Finding("release", State.ok, f"{looked} allow it")


def _wrong(what: str, where: str, error: OpBoostError) -> Finding:
    """Return an error as a finding; the error's message says what to do."""
    words = error.logged if isinstance(error, DataError) else str(error)
    return Finding(what, State.wrong, f"{where} is refused", words, exit_status(error))


def _table(table: TableAddress, path: Path) -> Finding:
    if not isinstance(table, Path):
        try:
            column_names(table_files(table)[0])
        except OpBoostError as error:
            return _wrong("table", str(table), error)
        return Finding("table", State.ok, str(table))
    if table.exists() and os.access(table, os.R_OK):
        return Finding("table", State.ok, str(table))
    step = f'Put it there, or correct [party] table = "..." in {path.name}.'
    return Finding("table", State.wrong, f"{table} cannot be read", step)


def _certificates(found: FeatureConfig | LabelConfig) -> Iterator[Finding]:
    """Yield checks of both certificates, and then of the keys for bundles that exist."""
    tls, name = found.tls, found.party.name
    try:
        identity = read_identity(tls, name)
    except OpBoostError as error:
        yield _wrong("certificate", str(tls.cert) if tls else "no certificate", error)
        return
    assert tls is not None
    yield dates("certificate", identity.cert, f"Ask your authority to renew {tls.cert}.")
    everybody = f"All parties need a new {tls.ca.name}, and certificates that it has signed."
    yield dates("authority's certificate", identity.ca, everybody)
    if tls.encryption.exists():
        yield from _bundle_keys(found, tls, identity.ca)


def _bundle_keys(found: FeatureConfig | LabelConfig, tls: Tls, ca: bytes) -> Iterator[Finding]:
    try:
        read_key(tls.encryption)
        yield Finding("encryption key", State.ok, str(tls.encryption))
    except OpBoostError as error:
        yield _wrong("encryption key", str(tls.encryption), error)
    label = isinstance(found, LabelConfig)
    for peer in found.job.feature_parties if label else (found.job.label_party,):
        public = tls.public_of(peer)
        if not public.exists():  # needed only for bundles
            continue
        try:
            read_public(public, peer, ca)
            yield Finding(f"public key of {peer}", State.ok, str(public))
        except OpBoostError as error:
            yield _wrong(f"public key of {peer}", str(public), error)


def dates(what: str, pem: bytes, remedy: str, now: datetime | None = None) -> Finding:
    """Check whether a certificate is valid today and for some time to come."""
    today = now or datetime.now(UTC)
    try:
        certificate = x509.load_pem_x509_certificate(pem)
    except UNREADABLE:
        return Finding(what, State.wrong, "cannot be read", remedy)
    first, last = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    text = f"valid from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
    if not first <= today <= last:
        clock = f"This machine's clock shows {today:%Y-%m-%d}: correct it if that is wrong."
        return Finding(what, State.wrong, f"{text}, not today", f"{remedy} {clock}")
    left = f"{text}, {(last - today).days} more days"
    if last - today < RENEW_BEFORE:
        return Finding(what, State.warning, left, remedy)
    return Finding(what, State.ok, left)


def _ledger_key(section: LedgerSection) -> Finding:
    key, ledger = Path(section.key), Path(section.folder) / CHAIN_FILE
    if not key.exists():
        if ledger.exists():
            step = f"Restore {key} from a copy: without it, everybody would get new noise."
            return Finding("ledger's key", State.wrong, f"{key} does not exist", step)
        return Finding("ledger's key", State.ok, f"{key} is created at first use")
    if os.name == "posix" and key.stat().st_mode & 0o077:
        return Finding(
            "ledger's key", State.wrong, f"{key} can be read by others", f"Run: chmod 600 {key}"
        )
    if not ledger.exists():
        step = (
            f"Restore {section.folder} (is its volume mounted?): without it, everybody would be "
            "drawn and charged again. A release is refused until then; --new-ledger begins an "
            "empty ledger."
        )
        return Finding(
            "ledger's key", State.warning, f"{key} exists, but its ledger does not", step
        )
    return Finding("ledger's key", State.ok, str(key))
