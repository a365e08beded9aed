"""Peers that mean harm: every attack, on live processes."""

from __future__ import annotations

from functools import lru_cache
from statistics import fmean

from claims.claim import Page
from claims.covered_sources import FEDERATION
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


HERE = Page("docs/reliability.md, Hostile peers")
COVERS = FEDERATION
CLAIMS = [
    HERE.equals(
        "attacks: refused, others served, nothing used up: share",
        1.0,
        lambda: fmean(o.survived for o in outcomes(*KINDS)),
    ),
    HERE.equals(
        "attacks on the gate: honest calls answered: share",
        1.0,
        lambda: fmean(o.served for o in outcomes("gate")),
    ),
    HERE.equals(
        "honest jobs that finish after all of it: share",
        1.0,
        lambda: fmean(report(kind).finished for kind in KINDS),
    ),
    HERE.equals(
        "attacks on the gate: deaths of its process",
        0.0,
        lambda: sum(o.died for o in outcomes("gate")),
    ),
    HERE.at_most(
        "attacks: slowest honest call, s", 10.0, lambda: max(o.waited for o in outcomes("gate"))
    ),
    HERE.at_most(
        "attacks: MB of the gate, limit 512",
        GATE_MB,
        lambda: max(o.gate_mb for o in outcomes("gate")),
    ),
    HERE.at_most(
        "attacks: MB of a feature party", 450, lambda: max(o.peer_mb for o in outcomes("join"))
    ),
    HERE.at_most(
        "attacks: bytes that one leaves on disk",
        2_000_000,
        lambda: max(o.disk for o in outcomes(*KINDS)),
    ),
]
