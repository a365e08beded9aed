"""What a feature party does in every job, over a connection or with bundles."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from opboost.config.job_file import FeatureConfig, Job
from opboost.config.plan_limits import check_job_record
from opboost.errors import PeerError, PrivacyError
from opboost.ledger import Ledger
from opboost.ledger.verify_ledger import holds
from opboost.parties.feature.feature_party import FeatureParty
from opboost.parties.feature.party_table import JobProgress
from opboost.protocol.messages import Hello, Receipt, Welcome, decode
from opboost.storage import atomic_files
from opboost.transport.shared.manifest import versions
from opboost.transport.shared.tls import Identity, check_receipt


def feature_party(
    config: FeatureConfig, ledger: Ledger, progress: JobProgress | None = None
) -> FeatureParty:
    """Return the party that a file describes."""
    return FeatureParty(
        config.table,
        config.plan,
        ledger=ledger,
        ids=config.align.ids(),
        name=config.party.name,
        recipient=config.job.label_party,
        units=config.party.units,
        names=config.party.names,
        codebook=config.party.codebook,
        state=config.state,
        new_attributes=config.ledger.new_attributes,
        people=config.ledger.people,
        align=config.job.alignment(config.align),
        rows=config.job.rows,
        normalisation=config.job.normalisation,
        progress=progress,
    )


def check_limit(welcome: Welcome, job: Job) -> None:
    """Refuse a label party whose limit per person differs from the job file's."""
    if welcome.record != (job.record or 0.0):
        raise PeerError(
            f"The label party says that the job allows {welcome.record:g} per person, but the job "
            f"file says {job.record or 0.0:g} (0: no limit). All parties need the same file."
        )


def check_rollback(welcome: Welcome, ledger: Ledger, identity: Identity) -> None:
    """Refuse to continue with a ledger that is older than what the label party has seen of it."""
    if not welcome.receipt:
        return
    receipt = decode(welcome.receipt, Receipt)
    if not holds(ledger, receipt.entry, receipt.head):
        check_receipt(receipt, identity.name, identity.ca)
        raise PrivacyError(
            f"The label party holds a receipt of entry {receipt.entry} of this ledger, signed by "
            "this party, and the ledger does not have that entry: it was rolled back or replaced, "
            "and would draw new noise for people. Restore the right ledger."
        )


def signed_receipt(folder: Path, ledger: Ledger, identity: Identity) -> Receipt:
    """Return the signed head of the ledger after the release in a job's folder."""
    job = folder.name
    entry = next(
        (e for e in reversed(list(ledger.entries("commit"))) if e.body["job"] == job), None
    )
    if entry is None:
        raise PrivacyError(
            f"The ledger does not have the release of job {job}: it was rolled back or replaced. "
            "Restore the right ledger."
        )
    return identity.sign(job, entry.number, entry.hash)


def write_manifest(
    party: FeatureParty, job: str, phase: str, sent: int, seconds: float
) -> dict[str, Any]:
    """Write and return the manifest: what was sent, and its guarantee."""
    schema, files = party.released(job)
    promise = party.guarantee()
    manifest = {
        "job": job,
        "party": party.name,
        "phase": phase,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "rows": schema.rows,
        "columns": len(files),
        "bytes": sent,
        "guarantee": str(promise),
        "total": promise.total,
        "versions": versions(),
    }
    file = manifest_of(party.folder(job), phase)
    atomic_files.write(file, json.dumps(manifest, indent=1).encode())
    return manifest


def introduction(config: FeatureConfig) -> Hello:
    """Return a party's hello, with its record total if the job limits what the parties reveal.

    Refuse a plan that reveals more than that limit by itself.
    """
    job, plan = config.job, config.plan
    check_job_record(plan, job.record, config.party.name)
    return Hello(config.party.name, job.hash, plan.total if job.record else 0.0)


def last_run(ledger: Ledger, job_hash: bytes) -> str | None:
    """Return the last run of a job file, from the ledger; None if there is none."""
    runs = [e.body["job"] for e in ledger.entries("reserve")]
    own = [job for job in runs if job.endswith(job_hash[:4].hex())]
    return own[-1] if own else None


def last_released(state: Path, ledger: Ledger, job_hash: bytes) -> str | None:
    """Return the last run of a job file if its release was made; None otherwise."""
    job = last_run(ledger, job_hash)
    return job if job is not None and (state / job / "schema").exists() else None


def last_done(party: FeatureParty, ledger: Ledger, job_hash: bytes) -> dict[str, Any] | None:
    """Return the manifest of a job file's last run in the ledger; None if that run is not done."""
    job = last_run(ledger, job_hash)
    if job is None:
        return None
    try:
        found: dict[str, Any] = json.loads(manifest_of(party.folder(job), "done").read_text())
    except (OSError, ValueError):
        return None
    return found if found.get("phase") == "done" else None


def manifest_of(folder: Path, phase: str) -> Path:
    """Return the file that keeps the manifest of a phase."""
    return folder / ("manifest.json" if phase == "done" else "released.json")
