"""Forget one person everywhere that a feature party's ledger knows of.

    check    the ledger's chain is complete, and no job or release is unfinished
    stage    stored releases are rewritten without the person's row (files/forget_rows.py)
    entry    one entry removes the person's records and leaves a tombstone (ledger/forget_person.py)
    remove   new parts replace old ones; kept files and files of finished jobs are deleted

Nothing changes before all checks have passed.  Each later step can be repeated without harm, so
after a kill the same command finishes what it began.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from opboost._typing import BoolArray
from opboost.columns.row_ids import id_array
from opboost.errors import ConfigError, DataError, PrivacyError
from opboost.files.forget_rows import StagedRelease, finish, has_ids, holds, known_releases, stage
from opboost.files.stored_release import read_manifest
from opboost.ledger import Ledger
from opboost.ledger.forget_person import erase, forgotten, remove_kept
from opboost.ledger.open_ledger import person_bytes
from opboost.ledger.renewal import refuse_open
from opboost.ledger.verify_ledger import check_chain
from opboost.parties.feature.feature_job_folders import PILOT, RELEASE
from opboost.storage import atomic_files
from opboost.transport.feature.feature_job import manifest_of

_RELEASED = (*RELEASE.split(), "[0-9]*.draws")

ROWS = (*_RELEASED, *(f"{PILOT}/{name}" for name in _RELEASED), "common", "bundles/*.bundle")
"""The files of a job that hold data about its rows."""


@dataclass(frozen=True, slots=True)
class Forgotten:
    """The result of forgetting a person: folders and files are named, the person is not.

    Attributes:
        entry: The number of the ledger's entry; None if an earlier run had written it.
        records: How many records of the person were removed from the ledger.
        kept: How many files kept by version 0.1.0 of the ledger were removed.
        jobs: How many finished jobs had files with rows, which were removed.
        elsewhere: How many jobs in the ledger have no folder here.
        rewritten: Stored releases, and how many rows each lost.
        without_ids: Stored releases without IDs, in which the person's row cannot be found.
        not_found: Stored releases that are no longer where they were made.
        files: Released files, which remain unchanged.
    """

    entry: int | None
    records: int
    kept: int
    jobs: int
    elsewhere: int
    rewritten: dict[str, int]
    without_ids: list[str]
    not_found: list[str]
    files: list[str]


def forget(
    ledger: Ledger,
    person: Sequence[str],
    ids: Sequence[str],
    *,
    state: Path | None = None,
    stored: Sequence[Path] = (),
) -> Forgotten:
    """Remove what is remembered about one person, and leave a tombstone.

    Args:
        ledger: The feature party's ledger.
        person: The person's ID, one text per part.
        ids: The columns that hold these parts.
        state: The party's folder of jobs.
        stored: Folders of stored releases that were moved or copied since they were made.
    """
    name = _name(ledger, person, ids)
    with ExitStack() as stack:
        if state is not None and state.exists():
            stack.enter_context(atomic_files.alone(state))
        stack.enter_context(atomic_files.alone(ledger.folder))
        check_chain(ledger)
        refuse_open(ledger)
        jobs = list(_jobs(state))
        _check_finished(jobs)
        releases = _Releases.found(ledger, stored)
        staged = releases.staged(ledger, name, ids)
        done = erase(ledger, name, {s.manifest.release: s.manifest.output() for s in staged})
        releases.finish(ledger)
        kept = remove_kept(ledger)
        cleared = sum(_clear(job) for job in jobs)
    return Forgotten(
        done.entry,
        done.records,
        kept,
        cleared,
        len(_job_names(ledger) - {job.name for job in jobs}),
        {str(s.folder): s.rows for s in staged},
        [str(f) for f in releases.folders if not has_ids(f, ids)],
        releases.gone,
        sorted(_released_files(ledger)),
    )


def _name(ledger: Ledger, person: Sequence[str], ids: Sequence[str]) -> bytes:
    """Return the person's ID as the ledger spells it."""
    if len(person) != len(ids):
        raise ConfigError(
            f"An ID of this party has {len(ids)} part{'s' if len(ids) > 1 else ''} "
            f"({', '.join(ids)}); got {len(person)}. Give --person once for each, in that order."
        )
    return person_bytes(person, ids, ledger.ids)


# Stored releases


@dataclass(frozen=True, slots=True)
class _Releases:
    """The stored releases of a ledger: the folders found, and the missing ones."""

    folders: list[Path]
    gone: list[str]

    @classmethod
    def found(cls, ledger: Ledger, more: Sequence[Path]) -> _Releases:
        known = known_releases(ledger)
        moved = {folder.resolve(): read_manifest(folder).release for folder in more}
        for path, release in moved.items():
            if release not in known:
                raise ConfigError(f"The ledger does not know the stored release in {path}.")
        folders, gone = [], []
        for release, folder in known.items():
            if folder is not None and holds(folder, release):
                folders.append(folder)
            elif release not in moved.values():
                gone.append(str(folder) if folder else f"release {release}")
        return cls([*folders, *(f for f in moved if f not in folders)], gone)

    def staged(self, ledger: Ledger, person: bytes, ids: Sequence[str]) -> list[StagedRelease]:
        """Rewrite each release that has a row of the person without it; return the new folders."""
        is_gone = forgotten(ledger, person)

        def gone(table: pa.Table) -> BoolArray:
            return is_gone(id_array(table, ids, spelling=ledger.ids))

        self.finish(ledger)
        try:
            tried = [stage(f, ledger, ids, gone) for f in self.folders if has_ids(f, ids)]
            made = [s for s in tried if s is not None]
            self._check_copies(made)
        except BaseException:
            self.finish(ledger)
            raise
        return made

    def _check_copies(self, made: Sequence[StagedRelease]) -> None:
        """Refuse copies of a release that would then differ: the ledger accepts only one digest."""
        new = {s.folder: s.manifest for s in made}
        changed = {m.release for m in new.values()}
        digests: dict[str, str] = {}
        for folder in self.folders:
            manifest = new.get(folder) or read_manifest(folder)
            first = digests.setdefault(manifest.release, manifest.output())
            if manifest.release in changed and first != manifest.output():
                raise DataError(
                    f"{folder} and another folder hold the same stored release, but differ",
                    hint="Keep one of them, and run the command again.",
                )

    def finish(self, ledger: Ledger) -> None:
        """Put rewritten folders in place if the ledger has recorded them; delete the others."""
        for folder in self.folders:
            finish(folder, ledger)


# Jobs


def _jobs(state: Path | None) -> Iterator[Path]:
    """Yield the folders of jobs."""
    if state is None or not state.exists():
        return
    for folder in sorted(state.iterdir()):
        if (folder / "binding.json").exists() or (folder / "bundles").exists():
            yield folder


def _check_finished(jobs: Sequence[Path]) -> None:
    """Refuse while a job is unfinished and still needs the rows in its folder."""
    for job in jobs:
        try:
            phase = json.loads(manifest_of(job, "done").read_text()).get("phase")
        except (OSError, ValueError):
            phase = None
        if phase != "done":
            raise PrivacyError(
                f"Job {job.name} is not finished, and its folder holds rows. Finish it (opboost "
                f"join, or opboost bundle), or abandon it: remove {job}. Nothing was changed."
            )


def _clear(job: Path) -> bool:
    """Remove the files of a job that hold rows; return whether there were any."""
    files = [path for pattern in ROWS for path in job.glob(pattern)]
    for path in files:
        atomic_files.wipe(path)
    return bool(files)


def _job_names(ledger: Ledger) -> set[str]:
    """Return the jobs with other parties that the ledger knows."""
    bodies = [e.body for e in ledger.entries("commit")]
    return {b["job"] for b in bodies if not b["job"].startswith(("file ", "release "))}


def _released_files(ledger: Ledger) -> set[str]:
    bodies = [e.body for e in ledger.entries("commit")]
    return {b["job"].removeprefix("file ") for b in bodies if b["job"].startswith("file ")}
