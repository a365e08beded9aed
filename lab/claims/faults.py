"""Full disks, broken connections, clocks and second starts: the share that jobs survive."""

import sys
from collections.abc import Callable, Mapping
from functools import cache

from claims.claim import FEDERATION, Claim, Page
from robustness.faults import broken_connections, clock_set_back, double_start, full_disk
from robustness.faults.faults_harness import ALL
from robustness.tally import Tally

SEED = 2026
HERE = Page("docs/reliability.md, Faults")


def claims_of(kinds: Mapping[str, tuple[int, Callable[[], Tally]]]) -> list[Claim]:
    """Claim for each kind of fault, which is run once, that enough was tried and all survived."""

    @cache
    def tally(name: str) -> Tally:
        found = kinds[name][1]()
        print(f"seed {SEED}, {found}", file=sys.stderr, flush=True)
        return found

    return [
        claim
        for name, (least, _) in kinds.items()
        for claim in (
            HERE.at_least(f"{name}: tried", least, lambda n=name: tally(n).tried),
            HERE.equals(f"{name}: share survived", 1.0, lambda n=name: tally(n).share),
        )
    ]


COVERS = FEDERATION
CLAIMS = claims_of(
    {
        **{f"full disk of {v} at every block": (20, lambda v=v: full_disk.run(v)) for v in ALL},
        "cut connections": (40, lambda: broken_connections.cut(40, SEED)),
        "half-open connections": (10, lambda: broken_connections.half_open(10, SEED)),
        "slow peers": (5, lambda: broken_connections.slow(5, SEED)),
        **{f"clock of {v} set back": (2, lambda v=v: clock_set_back.set_back(v)) for v in ALL},
        "second starts": (12, lambda: double_start.run(12, SEED)),
    }
)
