"""Run claims and write ``docs/claims.json``."""

from __future__ import annotations

import argparse
import importlib
import json
import subprocess
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.progress import track

from claims import FILES
from claims.covered_sources import RECORDED, ROOT, source_hash
from opboost.storage.atomic_files import write


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge the chosen claims; the others keep the lines they have."""
    ask = argparse.ArgumentParser(description=__doc__)
    ask.add_argument("files", nargs="*", metavar="FILE", help="all files if none is named")
    ask.add_argument("--named", default="", help="only claims whose name contains this text")
    given = ask.parse_args(arguments)
    chosen, named = given.files, given.named
    unknown = set(chosen) - set(FILES)
    if unknown:
        print(f"No claims named {', '.join(sorted(unknown))}. There are: {', '.join(FILES)}.")
        return 2
    kept = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    talk = Console(stderr=True)
    failed = 0
    for file in chosen or FILES:
        module = importlib.import_module(f"claims.{file}")
        claims, sources = module.CLAIMS, source_hash(module.COVERS)
        judged = {}
        wanted = [claim for claim in claims if named in claim.name]
        for claim in track(wanted, file, console=talk, disable=not talk.is_terminal):
            line = claim.judge()
            line |= {"commit": commit(), "sources": sources}
            judged[claim.name] = line
            shown = line.get("value", line.get("error"))
            known = claim.short and "value" in line and not line["holds"]
            mark = "holds" if line["holds"] else "SHORT" if known else "FAILS"
            print(f"{mark}  {claim.name}: {shown} ({claim.rule} {claim.target})")
            failed += mark == "FAILS"
        before = {str(line["name"]): line for line in kept.get(file, [])}
        lines = [judged.get(claim.name, before.get(claim.name)) for claim in claims]
        kept[file] = [line for line in lines if line is not None]
        write(RECORDED, (json.dumps(kept, ensure_ascii=False, indent=1) + "\n").encode())
    print(f"{failed} of the claims fail" if failed else "all claims hold")
    return 1 if failed else 0


def commit() -> str:
    """The commit that the claims were run on, with a + where the tree differs from it."""
    run = subprocess.run(
        ["git", "describe", "--always", "--dirty=+"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or "unknown"


if __name__ == "__main__":
    sys.exit(main())
