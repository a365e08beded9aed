"""Hostile peers: every attack on live processes."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from statistics import fmean

from claims.claim import FEDERATION, Compute, Page
from robustness.attacks.attack_harness import GATE_MB
from robustness.attacks.catalogue import KINDS, Report

ROUNDS = {"gate": 2, "join": 1, "bundles": 1}
"""How many times each attack is tried."""


@lru_cache(maxsize=3)
def report(kind: str) -> Report:
    run, count = KINDS[kind]
    found = run(ROUNDS[kind] * count, 2026)
    print(f"{kind}, {found}")
    for outcome in found.outcomes:
        if not outcome.survived:
            print(outcome)
    return found


def of(figure: str, pick: Callable[[Iterable[float]], float], *kinds: str) -> Compute:
    """Return a function that reduces a figure of all attacks of these kinds to one value."""
    return lambda: pick(getattr(one, figure) for kind in kinds for one in report(kind).outcomes)


SURVIVED = "attacks: refused, others served, nothing used up: share"
SERVED = "attacks on the label server: honest calls answered: share"
FINISHED = "honest jobs that finish after all of it: share"
HERE = Page("docs/reliability.md, Hostile peers")
COVERS = FEDERATION
CLAIMS = [
    HERE.equals(SURVIVED, 1.0, of("survived", fmean, *KINDS)),
    HERE.equals(SERVED, 1.0, of("served", fmean, "gate")),
    HERE.equals(FINISHED, 1.0, lambda: fmean(report(kind).finished for kind in KINDS)),
    HERE.equals("attacks on the label server: deaths of its process", 0.0, of("died", sum, "gate")),
    HERE.at_most("attacks: slowest honest call, s", 10.0, of("waited", max, "gate")),
    HERE.at_most("attacks: MB of the label server, limit 512", GATE_MB, of("gate_mb", max, "gate")),
    HERE.at_most("attacks: MB of a feature party", 450, of("peer_mb", max, "join")),
    HERE.at_most("attacks: bytes that one leaves on disk", 2_000_000, of("disk", max, *KINDS)),
]
