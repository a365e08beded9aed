"""Run claims and write ``docs/claims.json``.

Several runs may work at the same time, because each changes only its own lines of the file.
"""

import argparse
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import track

from claims import FILES
from claims.claim import ROOT, Claim
from claims.covered_sources import RECORDED, source_hash, stale
from opboost.storage import atomic_files


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the chosen claims, and leave the recorded lines of the others as they are."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("files", nargs="*", metavar="FILE", help="all files if none is named")
    ask.add_argument("--named", default="", help="only claims whose name contains this text")
    ask.add_argument("--stale", action="store_true", help="only files whose sources changed")
    given = ask.parse_args(arguments)
    chosen, named = given.files or list(FILES), given.named
    unknown = set(chosen) - set(FILES)
    if unknown:
        print(f"No claims named {', '.join(sorted(unknown))}. There are: {', '.join(FILES)}.")
        return 2
    if given.stale:
        now_stale = stale(recorded())
        chosen = [file for file in chosen if file in now_stale]
    talk = Console(stderr=True)
    failed = 0
    for file in chosen:
        module = importlib.import_module(f"claims.{file}")
        claims, sources = module.CLAIMS, source_hash(module.COVERS)
        wanted = [claim for claim in claims if named in claim.name]
        for claim in track(wanted, file, console=talk, disable=not talk.is_terminal):
            began = time.monotonic()
            line = claim.judge()
            seconds = round(time.monotonic() - began, 1)
            line |= {"commit": commit(), "sources": sources, "seconds": seconds}
            record(file, claims, line)
            shown = line.get("value", line.get("error"))
            known = claim.short and "value" in line and not line["holds"]
            mark = "holds" if line["holds"] else "SHORT" if known else "FAILS"
            print(f"{mark}  {claim.name}: {shown} ({claim.rule} {claim.target})")
            failed += mark == "FAILS"
    print(f"{failed} of the claims fail" if failed else "all claims hold")
    return 1 if failed else 0


def recorded() -> dict[str, list[dict[str, object]]]:
    """Return what was recorded before, by file."""
    return dict(json.loads(RECORDED.read_text())) if RECORDED.exists() else {}


def record(file: str, claims: Sequence[Claim], judged: dict[str, object]) -> None:
    """Record one judged claim, and remove the lines of claims that no longer exist."""
    with atomic_files.waiting(RECORDED.with_suffix(".lock")):
        kept = recorded()
        lines = {line["name"]: line for line in (*kept.get(file, []), judged)}
        kept[file] = [lines[claim.name] for claim in claims if claim.name in lines]
        text = json.dumps(kept, ensure_ascii=False, indent=1) + "\n"
        atomic_files.write(RECORDED, text.encode())


def commit() -> str:
    """Return the commit that is checked out, with a + if the files differ from it."""
    command = ["git", "describe", "--always", "--dirty=+"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return run.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
