"""Which sources a file of claims covers, and whether they changed since its claims were recorded.

``python -m claims.covered_sources`` lists stale files of claims and ends with status 0, because
some take hours to recompute.  With ``--strict``, for a release, it ends with status 1.
"""

import argparse
import hashlib
import importlib
import json
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from claims import FILES
from claims.claim import ROOT
from opboost_lab.code_alone import code_without_messages

RECORDED = ROOT / "docs" / "claims.json"


def source_files(prefixes: Sequence[str], src: Path = ROOT / "src") -> Iterator[Path]:
    """Yield the source files of modules and packages, in order; refuse a prefix without any."""
    for prefix in sorted(set(prefixes)):
        place = src / prefix.replace(".", "/")
        found = sorted(place.rglob("*.py")) or [place.with_suffix(".py")]
        if not found[0].exists():
            raise ValueError(f"No source file belongs to {prefix!r}, which a claim covers.")
        yield from found


def source_hash(prefixes: Sequence[str], src: Path = ROOT / "src") -> str:
    """Return a hash of the covered files' names and code, without docstrings and messages."""
    digest = hashlib.sha256()
    for path in source_files(prefixes, src):
        code = _code_of(path, path.stat().st_mtime_ns)
        digest.update(f"{path.relative_to(src).as_posix()} {len(code)}\n".encode() + code)
    return digest.hexdigest()[:16]


@cache
def _code_of(path: Path, changed: int) -> bytes:
    """Return the code of a file, cached for all claims that cover it."""
    return code_without_messages(path.read_text(encoding="utf-8")).encode()


def stale(recorded: dict[str, list[dict[str, object]]]) -> dict[str, int]:
    """Return how many claims of each file were recorded from other or unknown sources."""
    found = {}
    for file in FILES:
        now = source_hash(importlib.import_module(f"claims.{file}").COVERS)
        lines = recorded.get(file, [{}])
        if count := sum(line.get("sources") != now for line in lines):
            found[file] = count
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print which files of claims are stale."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("--strict", action="store_true", help="end with status 1 if a claim is stale")
    strict = ask.parse_args(arguments).strict
    found = stale(json.loads(RECORDED.read_text()))
    if found:
        listed = ", ".join(f"{file} ({count})" for file, count in found.items())
        print(f"Stale claims (their sources have changed since they were recorded): {listed}.")
        print('Run them again with: make claims ONLY="NAME ..."')
    else:
        print("No claim is stale.")
    return 1 if strict and found else 0


if __name__ == "__main__":
    sys.exit(main())
