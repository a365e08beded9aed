"""How many of how many were survived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcome of one kind of trouble; each failure is a line that names its case."""

    kind: str
    tried: int = 0
    survived: int = 0
    failures: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        """The part that was survived."""
        return self.survived / self.tried if self.tried else 0.0

    def after(self, case: str, tried: int, said: Sequence[str]) -> Tally:
        """The tally after one more case; with complaints, nothing of it was survived."""
        if not said:
            return Tally(self.kind, self.tried + tried, self.survived + tried, self.failures)
        failures = (*self.failures, f"{case}: {'; '.join(said)}")
        return Tally(self.kind, self.tried + (tried or 1), self.survived, failures)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.survived} of {self.tried} survived"]
        return "\n".join([*lines, *(f"  {f}" for f in self.failures)])


def counted(kind: str, cases: dict[str, list[str]]) -> Tally:
    """A tally of cases by name, each with its complaints; none is a case survived."""
    tally = Tally(kind)
    for name, said in cases.items():
        tally = tally.after(name, 1, said)
    return tally
