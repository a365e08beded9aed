"""Every attack on a besieged label party, counted: how many of how many were survived.

``python -m hardening.hostile --count 60 --seed 1`` runs it by hand.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hardening.attack import Attack
from hardening.members import MEMBERS
from hardening.siege import Outcome, Siege
from hardening.strangers import STRANGERS

CATALOGUE: tuple[Attack, ...] = (*STRANGERS, *MEMBERS)


@dataclass(frozen=True, slots=True)
class Report:
    """All outcomes of a run, and whether the honest parties finished the job after it."""

    seed: int
    outcomes: tuple[Outcome, ...]
    finished: bool

    @property
    def tried(self) -> int:
        return len(self.outcomes)

    @property
    def survived(self) -> int:
        return sum(o.survived for o in self.outcomes)


def run(
    count: int,
    seed: int,
    *,
    crowd: int = 1000,
    only: str = "",
    told: Callable[[Outcome], None] = lambda outcome: None,
) -> Report:
    """Try ``count`` attacks, each of the catalogue before any comes twice, in a random order."""
    with tempfile.TemporaryDirectory() as folder:
        siege = Siege(Path(folder), crowd)
        outcomes = []
        with siege.laid():
            for attack in drawn(count, random.Random(seed), only):
                if attack.stage == "release":
                    assert siege.release
                outcomes.append(siege.suffered(attack.name, attack.run, attack.log))
                told(outcomes[-1])
            finished = siege.finish()
    return Report(seed, tuple(outcomes), finished)


def drawn(count: int, rng: random.Random, only: str = "") -> list[Attack]:
    """Attacks in a random order; those on points come before those on a release."""
    known = [a for a in CATALOGUE if only in a.name]
    chosen = [known[n % len(known)] for n in range(count)]
    places = {"points": (0.0, 0.5), "release": (0.5, 1.0), "any": (0.0, 1.0)}
    return sorted(chosen, key=lambda attack: rng.uniform(*places[attack.stage]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=len(CATALOGUE))
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--crowd", type=int, default=1000)
    parser.add_argument("--only", default="")
    given = parser.parse_args()
    print(f"seed {given.seed}")
    report = run(
        given.count,
        given.seed,
        crowd=given.crowd,
        only=given.only,
        told=lambda outcome: print(outcome, flush=True),
    )
    print(f"{report.survived} of {report.tried} survived; finished: {report.finished}")


if __name__ == "__main__":
    main()
