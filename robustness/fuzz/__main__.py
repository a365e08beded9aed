"""Fuzz by hand; exit status 1 if anything broke the contract."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from robustness.fuzz.engine import Result, run
from robustness.fuzz.target import judged
from robustness.fuzz.targets import BY_NAME, TARGETS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m robustness.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--target", action="append", help="part of a target's name")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--keep", type=Path, help="a folder for the bytes of crashes")
    parser.add_argument("--list", action="store_true", help="the targets")
    parser.add_argument("--replay", type=Path, help="feed one file to --target")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(BY_NAME))
        return 0
    chosen = [t for t in TARGETS if not asked.target or any(p in t.name for p in asked.target)]
    if asked.replay:
        return _replayed(chosen, asked.replay)
    print(f"seed {asked.seed}, {len(chosen)} targets")
    result = run(chosen, asked.cases, asked.seed, workers=asked.workers, say=print)
    _report(result, asked.keep)
    return 1 if result.crashes else 0


def _replayed(chosen: list, file: Path) -> int:
    import tempfile

    with tempfile.TemporaryDirectory() as home:
        (target,) = chosen
        words = judged(target, target.prepare(Path(home)), file.read_bytes())
    print(words or "kept the contract")
    return 1 if words else 0


def _report(result: Result, keep: Path | None) -> None:
    kinds: dict[str, list] = {}
    for crash in result.crashes:
        kinds.setdefault(crash.kind, []).append(crash)
    for crashes in kinds.values():
        names = sorted({crash.target for crash in crashes})
        print(f"\n{len(crashes)}x {', '.join(names)}: {crashes[0].words}")
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            name = crashes[0].target.replace(" ", "-").replace(":", "")
            (keep / f"{name}-{crashes[0].case}").write_bytes(crashes[0].data)
    print(f"\nseed {result.seed}: {result.total:,} cases, {len(result.crashes)} crashes", end=" ")
    print(f"of {len(kinds)} kinds")


if __name__ == "__main__":
    sys.exit(main())
