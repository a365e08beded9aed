"""Full disks, broken connections, clocks, second starts: how many of how many were survived."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import cache

from hardening import clock, disk, links, twice
from hardening.stage import ALL
from hardening.tally import Tally

from claims.claim import Claim

SEED = 2026
HERE = "docs/reliability.md, Faults"


def claims_of(kinds: Mapping[str, tuple[int, Callable[[], Tally]]]) -> list[Claim]:
    """Two claims a kind of trouble, which is run once: that enough was tried, and all survived."""

    @cache
    def tally(name: str) -> Tally:
        found = kinds[name][1]()
        print(f"seed {SEED}, {found}", file=sys.stderr, flush=True)
        return found

    return [
        claim
        for name, (least, _) in kinds.items()
        for claim in (
            Claim(f"{name}: tried", HERE, "at least", least, lambda n=name: tally(n).tried),
            Claim(f"{name}: share survived", HERE, "equals", 1.0, lambda n=name: tally(n).share),
        )
    ]


CLAIMS = claims_of(
    {
        **{f"full disk of {v} at every block": (20, lambda v=v: disk.run(v)) for v in ALL},
        "cut connections": (40, lambda: links.cut(40, SEED)),
        "half-open connections": (10, lambda: links.half_open(10, SEED)),
        "slow peers": (5, lambda: links.slow(5, SEED)),
        **{f"clock of {v} set back": (2, lambda v=v: clock.set_back(v)) for v in ALL},
        "second starts": (12, lambda: twice.run(12, SEED)),
    }
)
