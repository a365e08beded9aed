"""Check, before anybody connects, whether a feature party's release would be refused."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from opboost.config import load
from opboost.config.columns_file import validated
from opboost.config.job_file import FeatureConfig, is_label_party, load_feature
from opboost.config.plan_limits import check_caps_of_plan
from opboost.config.sections import LedgerSection
from opboost.config.toml_files import read
from opboost.errors import refusing
from opboost.ledger import Caps, Ledger
from opboost.ledger.open_ledger import open_ledger
from opboost.ledger.store import CHAIN_FILE
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.feature.party_table import JobProgress
from opboost.sources.table_address import TableAddress, may_be_read
from opboost.transport.feature.feature_job import feature_party
from opboost.transport.shared.tls import read_identity


def checked_party(
    config: FeatureConfig, ledger: Ledger, progress: JobProgress | None = None
) -> FeatureParty:
    """Return the party that a file describes, unless its release would be refused.

    The error says what is wrong, and its ``refusal`` is the kind of reason that a peer may learn: a
    cap, the declaration of columns, or the rows of the table.
    """
    with refusing("cap"):
        check_caps_of_plan(config.plan, config.ledger)
    with refusing("declaration"):
        party = feature_party(config, ledger, progress)
    party.check_release()
    if config.job.purpose == "train":
        party.check_pilot()
    return party


def check_file(path: Path, table: TableAddress | None = None) -> list[str]:
    """Refuse a file that ``opboost join`` would refuse before connecting; write nothing.

    ``table`` replaces the one that the file names.  Return what could not be checked because it
    does not exist yet: a table, or certificates.
    """
    sections = validated(read(path), path.name)
    if sections.party is None:
        plan, ids = load(path), sections.align.ids()
        if table is not None:
            section = sections.ledger and sections.ledger.based(path.parent)
            with _rehearsal_ledger(section if ids else None) as ledger:
                FeatureParty(table, plan, ledger=ledger if ids else None, ids=ids).check_release()
        return []
    if is_label_party(path):
        return []
    config = load_feature(path)
    if table is not None:
        config = replace(config, table=table)
    unseen = []
    if config.tls is None or config.tls.cert.exists():
        read_identity(config.tls, config.party.name)
    else:
        unseen.append(f"certificate {config.tls.cert}")
    check_config(config)
    return unseen if may_be_read(config.table) else [*unseen, f"table {config.table}"]


def check_config(config: FeatureConfig) -> None:
    """Refuse a release that ``opboost join`` would; check only caps if the table is missing."""
    with refusing("cap"):
        check_caps_of_plan(config.plan, config.ledger)
    if may_be_read(config.table):
        with _rehearsal_ledger(config.ledger) as ledger:
            checked_party(config, ledger)


@contextmanager
def _rehearsal_ledger(section: LedgerSection | None) -> Iterator[Ledger]:
    """Yield the ledger of a section; if it does not exist yet, a temporary empty one."""
    begun = section is not None and (
        (Path(section.folder) / CHAIN_FILE).exists() or Path(section.key).exists()
    )
    if section is not None and begun:
        with open_ledger(section) as ledger:
            yield ledger
        return
    caps = Caps() if section is None else Caps(section.cap_attribute, section.cap_person)
    ids = None if section is None else section.ids
    with (
        tempfile.TemporaryDirectory(prefix="opboost-") as place,
        Ledger(Path(place, "ledger"), Path(place, "keys", "key"), caps, ids=ids) as ledger,
    ):
        yield ledger
