"""When a job is resumed, check that its files are undamaged.

Every file that is read again has a checksum: messages as part of their format, notes and streams at
their end.  A damaged file is refused by name, so that no wrong model results.  If it can be made
again from other files, it is removed instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from opboost.errors import DataError
from opboost.protocol.envelope import PROTOCOL_VERSION, is_whole, version_of
from opboost.storage import atomic_files
from opboost.transport.shared.bundle_file import VERSION as BUNDLE_VERSION
from opboost.transport.shared.bundle_file import version_of as bundle_version

MESSAGES = (
    *(
        "hello",
        "terms",
        "schema",
        "receipt",
        "aligned",
        "told",
        "claim",
        "proved",
        "welcome",
        "query",
        "answer",
    ),
    "weights",
    *("*.feature", "*.raised", "*.label"),
)
STREAMS = ("*.arrow",)
NOTES = (
    *("job.json", "points", "expected", "due", "common", "secret"),
    *("binding.json", "*.values", "*.doubled", "rows.lock"),
)


def check(job: Path, next_step: str, made_again: Sequence[str] = ()) -> list[str]:
    """Check every file of a job's folder; return the names of those that must be made again.

    Each entry of ``made_again`` is a group of patterns.  If a damaged file matches a group, all
    files of that group in its folder are removed.  Any other damaged file is refused, with
    ``next_step`` as advice to its owner.
    """
    lost = []
    for file in sorted(f for f in job.rglob("[!.]*") if f.is_file()):
        if not file.exists() or _is_sound(file):
            continue
        group = next((g for g in made_again if _fits(file, g.split())), None)
        if group is None:
            raise atomic_files.damaged(file, next_step)
        lost.append(str(file.relative_to(job)))
        for other in file.parent.iterdir():
            if _fits(other, group.split()):
                other.unlink(missing_ok=True)
    return lost


def check_version(job: Path) -> None:
    """Refuse to continue a job that another release of OpBoost began with another message format.

    Receipts are exempt: they are kept for good, and every release reads them.
    """
    for file in sorted(f for f in job.rglob("[!.]*") if f.is_file()):
        version = _version(file)
        if version:
            raise DataError(
                f"Job {job.name} holds messages of version {version}, and this release of OpBoost "
                f"speaks version {PROTOCOL_VERSION} ({file.relative_to(job)})",
                hint="Finish the job with the release that began it, or ask the label party to "
                "begin a new run (--again): what was released before is not charged again.",
            )


def _version(file: Path) -> str:
    """Return the version of a message or bundle if it differs from this release's, or ""."""
    bundle = fnmatch(file.name, "*.bundle")
    if file.name == "receipt" or not (bundle or _fits(file, MESSAGES)):
        return ""
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    found, own = (
        (bundle_version(head), BUNDLE_VERSION)
        if bundle
        else (version_of(head), str(PROTOCOL_VERSION))
    )
    if found == own or not (bundle or is_whole(file.read_bytes())):  # which is reported as damage
        return ""
    return found


_HEAD = 2**16
"""The first bytes of a file, which contain its version."""


def _fits(file: Path, patterns: Sequence[str]) -> bool:
    return any(fnmatch(file.name, p) for p in patterns)


def _is_sound(file: Path) -> bool:
    if _fits(file, MESSAGES):
        return is_whole(file.read_bytes())
    return not _fits(file, (*STREAMS, *NOTES)) or atomic_files.checksum_holds(file)
