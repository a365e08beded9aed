"""How many of how many were survived."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcome of one kind of trouble; each failure is a line that names its case."""

    kind: str
    tried: int
    survived: int
    failures: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The part that was survived."""
        return self.survived / self.tried if self.tried else 0.0

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.kind,
            self.tried + other.tried,
            self.survived + other.survived,
            self.failures + other.failures,
        )

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.survived} of {self.tried} survived"]
        return "\n".join([*lines, *(f"  {f}" for f in self.failures)])


def counted(kind: str, cases: dict[str, list[str]]) -> Tally:
    """A tally of cases by name, each with its complaints; none is a case survived."""
    failures = tuple(f"{name}: {'; '.join(said)}" for name, said in cases.items() if said)
    return Tally(kind, len(cases), len(cases) - len(failures), failures)


def by_hand(run: Callable[[int, int], list[Tally]], count: int) -> None:
    """``--count`` and ``--seed`` for a run by hand; exit status 1 if something was not survived."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, default=count)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    tallies = run(asked.count, asked.seed)
    print(f"seed {asked.seed}")
    for tally in tallies:
        print(tally)
    sys.exit(any(t.survived < t.tried for t in tallies))
