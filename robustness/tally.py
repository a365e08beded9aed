"""Count how many cases were survived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcome of one kind of attack or fault; each failure is a line that names its case."""

    kind: str
    tried: int = 0
    survived: int = 0
    failures: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The share of cases that were survived."""
        return self.survived / self.tried if self.tried else 0.0

    def after(self, case: str, tried: int, said: Sequence[str]) -> Tally:
        """Return the tally after one more case; with complaints, none of it counts as survived."""
        if not said:
            return Tally(self.kind, self.tried + tried, self.survived + tried, self.failures)
        failures = (*self.failures, f"{case}: {'; '.join(said)}")
        return Tally(self.kind, self.tried + (tried or 1), self.survived, failures)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.survived} of {self.tried} survived"]
        return "\n".join([*lines, *(f"  {f}" for f in self.failures)])


def counted(kind: str, cases: dict[str, list[str]]) -> Tally:
    """Return a tally of cases by name; a case without complaints was survived."""
    tally = Tally(kind)
    for name, said in cases.items():
        tally = tally.after(name, 1, said)
    return tally
