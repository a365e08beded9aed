"""Remove forgotten people's rows from a stored release, which the ledger continues to accept.

    stage    write the parts without these rows, and a new manifest, next to the release
    entry    the ledger records the digest of the new parts (ledger/forget_person.py)
    swap     move old parts out and new ones in, the manifest last, and overwrite the old ones

After a kill, the next run discards staged parts without an entry, and finishes the swap of parts
with one.  So the same command finishes the work, wherever it was interrupted.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa

from opboost._typing import BoolArray
from opboost.errors import DataError, PrivacyError
from opboost.files.read_tables import column_names, pieces
from opboost.files.stored_release import (
    MANIFEST,
    Manifest,
    making,
    outputs,
    read_manifest,
    removing,
)
from opboost.files.write_tables import TableWriter
from opboost.ledger import Ledger
from opboost.storage import atomic_files

Gone = Callable[[pa.Table], BoolArray]
"""A function from the ID columns of some rows to which of the rows to remove."""

_OLD_SUFFIX = ".old"


@dataclass(frozen=True, slots=True)
class StagedRelease:
    """Parts that wait for the ledger's entry; ``rows`` is how many rows were removed."""

    folder: Path
    manifest: Manifest
    rows: int


def known_releases(ledger: Ledger) -> dict[str, Path | None]:
    """Return the stored releases that were charged, with the folder of each if it was noted."""
    bodies = [e.body for e in ledger.entries("commit")]
    return {
        body["job"].removeprefix("release "): _folder(body.get("folder"), ledger)
        for body in bodies
        if "output" in body
    }


def _folder(noted: object, ledger: Ledger) -> Path | None:
    return (ledger.folder / noted).resolve() if isinstance(noted, str) else None


def holds(folder: Path | None, release: str) -> bool:
    """Return whether a folder holds this release; refuse an unfinished release."""
    if folder is None:
        return False
    if making(folder).exists():
        raise PrivacyError(
            f"The release to {folder} is not finished. Run its command again to finish it, or "
            f"remove {making(folder)} to give it up."
        )
    return (folder / MANIFEST).exists() and read_manifest(folder).release == release


def has_ids(folder: Path, ids: Sequence[str]) -> bool:
    """Return whether the parts of a release contain the ID columns."""
    parts = [folder / name for name in read_manifest(folder).parts]
    return all(set(ids) <= set(column_names(part)) for part in parts)


def stage(folder: Path, ledger: Ledger, ids: Sequence[str], gone: Gone) -> StagedRelease | None:
    """Write the parts without some rows next to the release; return None if it has no such row.

    Parts other than those that were charged for are refused: their new digest would make the ledger
    accept them.
    """
    manifest, place = read_manifest(folder), removing(folder)
    rows = {name: _count(folder / name, ids, gone) for name in manifest.parts}
    if not any(rows.values()):
        return None
    _check_known(folder, manifest, ledger)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    try:
        parts = {
            name: _without(folder / name, place, ids, gone) if rows[name] else digest
            for name, digest in manifest.parts.items()
        }
        left = replace(manifest, rows=manifest.rows - sum(rows.values()), parts=parts)
        data = atomic_files.with_checksum(json.dumps(asdict(left), indent=1).encode())
        atomic_files.write(place / MANIFEST, data)
    except BaseException:
        shutil.rmtree(place, ignore_errors=True)
        raise
    return StagedRelease(folder, left, sum(rows.values()))


def _count(part: Path, ids: Sequence[str], gone: Gone) -> int:
    return sum(int(gone(piece).sum()) for piece in pieces(part, columns=list(ids)))


def _without(part: Path, place: Path, ids: Sequence[str], gone: Gone) -> str:
    """Write a part without some rows, and return its digest."""
    path = place / part.name
    with atomic_files.placing(path) as partial, TableWriter(partial, part.name) as writer:
        for piece in pieces(part):
            writer.write(piece.filter(pa.array(~gone(piece.select(list(ids))))))
    return _digest(path)


def _check_known(folder: Path, manifest: Manifest, ledger: Ledger) -> None:
    wrong = [n for n, digest in manifest.parts.items() if _digest(folder / n) != digest]
    if wrong or manifest.output() not in outputs(manifest.release, ledger):
        raise DataError(
            f"The stored release in {folder} is not the one that people were charged for",
            hint="Restore the original folder, or remove it; then run the command again.",
        )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def finish(folder: Path, ledger: Ledger) -> None:
    """Swap in staged parts that the ledger has recorded, and discard others; can be repeated."""
    place = removing(folder)
    if not place.exists():
        return
    if (place / MANIFEST).exists():
        manifest = read_manifest(place)
        if manifest.output() in outputs(manifest.release, ledger)[-1:]:
            _swap(folder, place, manifest)
    for old in place.glob(f"*{_OLD_SUFFIX}"):
        atomic_files.wipe(old)
    shutil.rmtree(place)
    atomic_files.flush(place.parent)


def _swap(folder: Path, place: Path, manifest: Manifest) -> None:
    atomic_files.move(_swaps(folder, place, manifest))
    atomic_files.move([(place / MANIFEST, folder / MANIFEST)])


def _swaps(folder: Path, place: Path, manifest: Manifest) -> Iterator[tuple[Path, Path]]:
    for name in manifest.parts:
        part, new = folder / name, place / name
        if new.exists():  # otherwise it is unchanged, or was moved in before a kill
            if part.exists():
                yield part, place / f"{name}{_OLD_SUFFIX}"
            yield new, part
