"""Faults by hand: ``python -m robustness.faults kills --count 50 --seed 7``.

Exit status 1 if something was not survived.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator

from robustness.faults import (
    broken_connections,
    clock_set_back,
    damaged_files,
    double_start,
    full_disk,
    kills,
)
from robustness.faults.faults_harness import ALL
from robustness.tally import Tally


def _kills(count: int, seed: int) -> Iterator[Tally]:
    """Every boundary, and ``count`` random moments, for every victim."""
    for victim in kills.VICTIMS:
        yield kills.at_boundaries(victim)
        yield kills.at_random(victim, count, seed)


def _connections(count: int, seed: int) -> Iterator[Tally]:
    """``count`` cut connections, a fifth of it half-open ones, a tenth of it slow jobs."""
    yield broken_connections.cut(count, seed)
    yield broken_connections.half_open(max(1, count // 5), seed)
    yield broken_connections.slow(max(1, count // 10), seed)


Run = Callable[[int, int], Iterator[Tally]]
KINDS: dict[str, tuple[int, Run]] = {
    "kills": (50, _kills),
    "broken_connections": (50, _connections),
    "full_disk": (1, lambda count, _: (full_disk.run(victim, step=count) for victim in ALL)),
    "clock_set_back": (1, lambda *_: map(clock_set_back.set_back, ALL)),
    "double_start": (9, lambda count, seed: iter([double_start.run(count, seed)])),
    "damaged_files": (0, lambda count, seed: iter([damaged_files.run(count or None, seed)])),
}
"""The default of ``--count``, and what is run: a full disk at every so manieth block, damage in so
many cases or, by 0, in every file."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m robustness.faults", description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    count, run = KINDS[asked.kind]
    print(f"seed {asked.seed}")
    failed = False
    for tally in run(count if asked.count is None else asked.count, asked.seed):
        print(tally, flush=True)
        failed |= tally.survived < tally.tried
    sys.exit(failed)


if __name__ == "__main__":
    main()
