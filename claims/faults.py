"""Kills, full disks, broken connections, damaged files: how many of how many were survived."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache

from hardening import clock, damage, disk, kills, links, twice
from hardening.stage import ALL
from hardening.tally import Tally

from claims.claim import Claim

SEED = 20_26
KILLS = 50

KINDS: dict[str, Callable[[], Tally]] = {
    **{
        f"kill -9 of {v} at every boundary": lambda v=v: kills.at_boundaries(v)
        for v in kills.VICTIMS
    },
    **{
        f"kill -9 of {v} at random moments": lambda v=v: kills.at_random(v, KILLS, SEED)
        for v in kills.VICTIMS
    },
    **{f"full disk of {v} at every block": lambda v=v: disk.run(v) for v in ALL},
    "cut connections": lambda: links.cut(40, SEED),
    "half-open connections": lambda: links.half_open(10, SEED),
    "slow peers": lambda: links.slow(5, SEED),
    **{f"clock of {v} set back": lambda v=v: clock.set_back(v) for v in ALL},
    "second starts": lambda: twice.run(12, SEED),
    "damaged files": lambda: damage.run(None, SEED),
}
LEAST = {name: KILLS for name in KINDS if name.endswith("random moments")} | {
    "cut connections": 40,
    "half-open connections": 10,
    "damaged files": 60,
}


@cache
def tally(name: str) -> Tally:
    """One kind of trouble, run once; what failed is told."""
    found = KINDS[name]()
    print(f"seed {SEED}, {found}", file=sys.stderr, flush=True)
    return found


HERE = "docs/reliability.md, Faults"
CLAIMS = [
    claim
    for name in KINDS
    for claim in (
        Claim(
            f"{name}: tried", HERE, "at least", LEAST.get(name, 1), lambda n=name: tally(n).tried
        ),
        Claim(f"{name}: share survived", HERE, "equals", 1.0, lambda n=name: tally(n).share),
    )
]
