"""Whole, killed, bundled and failing jobs, captured by tshark and searched for values and IDs."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import Claim
from claims.covered_sources import FEDERATION
from robustness.leaks.leak_search import FAILURES, Outcome, run_one

SEED = 20_260_101


@lru_cache(maxsize=1)
def outcomes() -> tuple[Outcome, ...]:
    done = [run_one("by bundles", SEED), run_one("whole", SEED, plain=False, captured=True)]
    done += [
        run_one(name, SEED, captured=True) for name in ("whole", "killed", "classes", *FAILURES)
    ]
    for one in done:
        if not one.as_meant:
            print(f"{one.name}: ended with {one.ended}")
        for found in one.found[:4]:
            print(f"{one.name}: {found.what} as {found.form} in {found.where}")
    return tuple(done)


def leaking() -> float:
    return float(sum(bool(one.found) for one in outcomes()))


def as_meant() -> float:
    return sum(one.as_meant for one in outcomes()) / len(outcomes())


def planted() -> float:
    """Captured wires and files in which a value that was planted is found."""
    found = run_one("planted", SEED, captured=True).found
    return float(len({f.where for f in found if f.what == "odd value"}))


HERE = "docs/reliability.md, Privacy, attacked"
COVERS = (*FEDERATION, "opboost.boosting", "opboost.training", "opboost.cli")
CLAIMS = [
    Claim("jobs that end as meant, failing ones among them: share", HERE, "equals", 1, as_meant),
    Claim("of them, jobs that leave a raw value or ID behind", HERE, "equals", 0, leaking),
    Claim("places in which a planted value is found", HERE, "at least", 6, planted),
]
