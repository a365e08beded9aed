"""A release stored on disk: its manifest, and the check that it is the one that was charged."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from opboost.columns.column_specs import column_to_dict
from opboost.columns.dataframes import OutColumn
from opboost.columns.private_column import PrivateColumn
from opboost.errors import ColumnError, DataError, PrivacyError
from opboost.ledger import Ledger
from opboost.ledger.chain import Entry
from opboost.mechanisms import registry
from opboost.storage import atomic_files

MANIFEST = "_manifest.json"
"""The name begins with an underscore, so that Parquet readers of the folder skip the file."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a release and its parts; it says nothing about raw values."""

    release: str
    rows: int
    guarantee: str
    total: float
    parts: dict[str, str]
    noise: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The noise of each private column; empty in releases of version 0.1."""
    columns_per_row: int | None = None
    """The number of private columns sent for each row; None if all are sent."""

    def output(self) -> str:
        """Return a digest of all parts, which the ledger records."""
        return hashlib.sha256(json.dumps(self.parts, sort_keys=True).encode()).hexdigest()


def noise_of(column: PrivateColumn) -> dict[str, Any]:
    """Return a column's noise as a manifest records it, with nothing about its raw units.

    >>> import opboost as op
    >>> grid = op.Domain(1, 10)
    >>> age = op.PrivateColumn("age", op.NumericMapping(grid, (0, 99)), op.ClampMap(grid, 0.5))
    >>> noise_of(age)["gaps"], "0.5" in json.dumps(noise_of(age)["mechanism"])
    (None, True)
    """
    gaps = column.flagged()
    return {
        "mechanism": registry.to_dict(column.mechanism),
        "gaps": None if gaps is None else str(gaps.guarantee()),
    }


_NEW_RELEASE = (
    "Restore it from a backup, or make another release, which the ledger charges for again."
)


def read_manifest(target: Path) -> Manifest:
    """Return the manifest of a stored release."""
    found: Manifest = atomic_files.read_json(
        target / MANIFEST, Manifest, _NEW_RELEASE, checksum=True
    )
    return found


def job_of(release: str) -> str:
    """Return the ledger's name for the job of a release."""
    return f"release {release}"


def making(target: Path) -> Path:
    """Return the folder of an unfinished release, which gets the target's name when complete."""
    return target.with_name(f".{target.name}.release")


def removing(folder: Path) -> Path:
    """Return the folder of the parts that will replace those with a forgotten person's row."""
    return folder.with_name(f".{folder.name}.forget")


def noted(target: Path, ledger: Ledger) -> str:
    """Return a release's folder relative to the ledger's, so that both can move together."""
    try:
        return Path(os.path.relpath(target.resolve(), ledger.folder.resolve())).as_posix()
    except ValueError:  # another drive
        return str(target.resolve())


def charged(manifest: Manifest, ledger: Ledger) -> Entry | None:
    """Return the entry that charged a release, or None."""
    entries = ledger.entries("commit")
    return next((e for e in entries if e.body["job"] == job_of(manifest.release)), None)


def outputs(release: str, ledger: Ledger) -> list[str]:
    """Return the digests of a release's parts that the ledger has recorded, the newest last.

    Each removal of a forgotten person's row adds one.
    """
    job = job_of(release)
    made = [e.body for e in ledger.entries("commit")]
    found = [body["output"] for body in made if body["job"] == job and "output" in body]
    removals = [e.body["outputs"] for e in ledger.entries("forget")]
    return found + [digests[release] for digests in removals if release in digests]


@dataclass(frozen=True, slots=True)
class StoredRelease:
    """A stored release that was charged for, about to be sent unchanged."""

    folder: Path
    manifest: Manifest
    private: tuple[PrivateColumn, ...]
    gaps: bool
    """Whether rows may lack a column: it was not sent for them, or the person is forgotten."""

    @classmethod
    def of(
        cls, folder: Path, private: Sequence[PrivateColumn], ledger: Ledger, *, gaps: bool
    ) -> StoredRelease:
        """Return the release in a folder; refuse it unless the ledger has it with these columns."""
        manifest = read_manifest(folder)
        entry, known = charged(manifest, ledger), outputs(manifest.release, ledger)
        if entry is None or manifest.output() not in known[-1:]:
            if (removing(folder) / MANIFEST).exists():
                raise PrivacyError(
                    f"The removal of a person's row from {folder} was interrupted. Run the same "
                    "opboost ledger forget again."
                )
            raise PrivacyError(
                f"The ledger does not know the stored release in {folder}: nobody was charged for "
                "it. Desensitise the table again with this ledger, or restore the ledger that it "
                "was charged to."
            )
        _check_declared(ledger, entry, private)
        return cls(folder, manifest, tuple(private), gaps)

    def check_parts(self) -> None:
        """Refuse parts other than those that were charged for."""
        there = {f.name for f in self.folder.iterdir()} - {MANIFEST}
        for name in sorted(there | set(self.manifest.parts)):
            path = self.folder / name
            if name not in self.manifest.parts or not path.is_file():
                wrong = "is missing" if name in self.manifest.parts else "does not belong"
            else:
                with path.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                wrong = "was changed" if found != self.manifest.parts[name] else ""
            if wrong:
                raise DataError(
                    f"{name} {wrong} in the stored release {self.folder}",
                    hint="Restore the original folder.",
                )

    def columns(self, table: pa.Table) -> list[OutColumn]:
        """Return the released columns of some rows, as they are stored."""
        return [
            self._column(table, column, str(name))
            for column in self.private
            for name in column.release_names()
        ]

    def _column(self, table: pa.Table, declared: PrivateColumn, name: str) -> OutColumn:
        stored = table.column(name).combine_chunks()
        if not stored.null_count:
            return OutColumn(name, stored.to_numpy(zero_copy_only=False))
        if not self.gaps and declared.flagged() is None:
            raise ColumnError(name, "of the stored release has undeclared missing values")
        missing = np.asarray(stored.is_null().to_numpy(zero_copy_only=False))
        filled = stored.fill_null(pa.scalar(0, stored.type))
        return OutColumn(name, filled.to_numpy(zero_copy_only=False), missing)


def _check_declared(ledger: Ledger, entry: Entry, private: Sequence[PrivateColumn]) -> None:
    """Refuse columns whose declaration has changed since they were released."""
    reserved = ledger.entry(entry.body["reservation"])
    if reserved is None:
        raise entry.damaged()
    then = [c.get("declared") for c in reserved.body["columns"]]
    now = [{k: v for k, v in column_to_dict(c).items() if k != "name"} for c in private]
    if len(then) != len(now):
        raise PrivacyError(
            f"The stored release has {len(then)} private columns, but {len(now)} are declared. "
            "Declare them as they were when it was made."
        )
    for column, before, declared in zip(private, then, now, strict=True):
        if json.loads(json.dumps(declared)) != before:
            raise PrivacyError(
                f"Column {column.name!r} was released under a different declaration. "
                "Declare it as it was, or desensitise the table again."
            )
