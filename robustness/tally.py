"""Count how many cases were survived."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True, slots=True)
class Tally:
    """The outcome of one kind of attack or fault; each failure is a line that names its case."""

    kind: str
    tried: int = 0
    survived: int = 0
    failures: tuple[str, ...] = ()

    @property
    def share(self) -> float:
        return self.survived / self.tried if self.tried else 0.0

    def after(self, case: str, tried: int, said: Sequence[str]) -> Self:
        """Return the tally after one more case, which was survived unless there are complaints."""
        if not said:
            return replace(self, tried=self.tried + tried, survived=self.survived + tried)
        failures = (*self.failures, f"{case}: {'; '.join(said)}")
        return replace(self, tried=self.tried + (tried or 1), failures=failures)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.survived} of {self.tried} survived"]
        return "\n".join([*lines, *(f"  {f}" for f in self.failures)])


def counted(kind: str, cases: dict[str, list[str]]) -> Tally:
    """Return a tally of cases by name; a case without complaints was survived."""
    tally = Tally(kind)
    for name, said in cases.items():
        tally = tally.after(name, 1, said)
    return tally
