"""Run claims and write ``docs/claims.json``."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

from rich.console import Console
from rich.progress import track

from claims import FILES
from claims.covered_sources import RECORDED, ROOT, source_hash
from opboost.storage.atomic_files import write


def main(chosen: list[str]) -> int:
    """Judge the chosen files' claims; the others keep the lines they have."""
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
        lines = []
        for claim in track(claims, file, console=talk, disable=not talk.is_terminal):
            line = claim.judge()
            line |= {"commit": commit(), "sources": sources}
            lines.append(line)
            shown = line.get("value", line.get("error"))
            known = claim.short and "value" in line and not line["holds"]
            mark = "holds" if line["holds"] else "SHORT" if known else "FAILS"
            print(f"{mark}  {claim.name}: {shown} ({claim.rule} {claim.target})")
            failed += mark == "FAILS"
        kept[file] = lines
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


sys.exit(main(sys.argv[1:]))
