"""Peers that mean harm: every attack, on live processes."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from statistics import fmean

from claims.claim import FEDERATION, Compute, Page
from robustness.attacks.attack_harness import GATE_MB, Outcome
from robustness.attacks.catalogue import KINDS, Report

ROUNDS = {"gate": 2, "join": 1, "bundles": 1}
"""How often each attack is tried."""


@lru_cache(maxsize=3)
def report(kind: str) -> Report:
    run, count = KINDS[kind]
    found = run(ROUNDS[kind] * count, 2026)
    print(f"{kind}, {found}")
    for outcome in found.outcomes:
        if not outcome.survived:
            print(outcome)
    return found


def outcomes(*kinds: str) -> list[Outcome]:
    """Every attack of some kinds."""
    return [outcome for kind in kinds for outcome in report(kind).outcomes]


def of(figure: str, pick: Callable[[Iterable[float]], float], *kinds: str) -> Compute:
    """A figure of every attack of some kinds, and which of them, or how much of all, counts."""
    return lambda: pick(getattr(outcome, figure) for outcome in outcomes(*kinds))


SURVIVED = "attacks: refused, others served, nothing used up: share"
SERVED = "attacks on the gate: honest calls answered: share"
FINISHED = "honest jobs that finish after all of it: share"
HERE = Page("docs/reliability.md, Hostile peers")
COVERS = FEDERATION
CLAIMS = [
    HERE.equals(SURVIVED, 1.0, of("survived", fmean, *KINDS)),
    HERE.equals(SERVED, 1.0, of("served", fmean, "gate")),
    HERE.equals(FINISHED, 1.0, lambda: fmean(report(kind).finished for kind in KINDS)),
    HERE.equals("attacks on the gate: deaths of its process", 0.0, of("died", sum, "gate")),
    HERE.at_most("attacks: slowest honest call, s", 10.0, of("waited", max, "gate")),
    HERE.at_most("attacks: MB of the gate, limit 512", GATE_MB, of("gate_mb", max, "gate")),
    HERE.at_most("attacks: MB of a feature party", 450, of("peer_mb", max, "join")),
    HERE.at_most("attacks: bytes that one leaves on disk", 2_000_000, of("disk", max, *KINDS)),
]
