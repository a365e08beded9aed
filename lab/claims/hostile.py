"""Peers that mean harm: every attack, on live processes."""

from __future__ import annotations

from functools import lru_cache

from claims.claim import Claim
from claims.covered_sources import FEDERATION
from robustness.attacks.attack_harness import GATE_MB
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


def refused() -> float:
    outcomes = [o for kind in KINDS for o in report(kind).outcomes]
    return sum(o.survived for o in outcomes) / len(outcomes)


def served() -> float:
    outcomes = report("gate").outcomes
    return sum(o.served for o in outcomes) / len(outcomes)


def restarts() -> float:
    return float(sum(o.died for o in report("gate").outcomes))


def slowest_honest_call() -> float:
    return max(o.waited for o in report("gate").outcomes)


def gate_memory() -> float:
    return max(o.gate_mb for o in report("gate").outcomes)


def join_memory() -> float:
    return max(o.peer_mb for o in report("join").outcomes)


def disk() -> float:
    return float(max(o.disk for kind in KINDS for o in report(kind).outcomes))


def finished() -> float:
    return sum(report(kind).finished for kind in KINDS) / len(KINDS)


HERE = "docs/reliability.md, Hostile peers"
COVERS = FEDERATION
CLAIMS = [
    Claim("attacks: refused, others served, nothing used up: share", HERE, "equals", 1.0, refused),
    Claim("attacks on the gate: honest calls answered: share", HERE, "equals", 1.0, served),
    Claim("honest jobs that finish after all of it: share", HERE, "equals", 1.0, finished),
    Claim("attacks on the gate: deaths of its process", HERE, "equals", 0.0, restarts),
    Claim("attacks: slowest honest call, s", HERE, "at most", 10.0, slowest_honest_call),
    Claim("attacks: MB of the gate, limit 512", HERE, "at most", GATE_MB, gate_memory),
    Claim("attacks: MB of a feature party", HERE, "at most", 450, join_memory),
    Claim("attacks: bytes that one leaves on disk", HERE, "at most", 2_000_000, disk),
]
