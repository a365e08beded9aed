"""What a claim is, how it is judged, and packages that it may cover."""

import math
import statistics
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

ROOT = Path(__file__).parents[2]

NOISE = tuple(f"opboost.{p}" for p in ("grid", "randomness", "distributions", "mechanisms"))
"""The packages that decide which values are drawn."""

LEARNING = (
    *NOISE,
    *(f"opboost.{p}" for p in ("columns", "budgets", "denoise", "boosting", "training")),
    "opboost.estimators",
)
"""The packages that decide how good a model is, and what it costs to train."""

FEDERATION = (
    *NOISE,
    *(f"opboost.{p}" for p in ("columns", "budgets", "config", "sources", "files", "ledger")),
    *(f"opboost.{p}" for p in ("psi", "protocol", "parties", "transport", "storage", "runtime")),
)
"""The packages that decide what a party stores and sends."""

Found = TypeVar("Found")
Rule = Literal["equals", "at least", "at most"]
Middle = Callable[[list[float]], float]
Compute = Callable[[], float | Sequence[float]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A stated figure: which page states it, how to recompute it, and when it holds."""

    name: str
    where: str
    rule: Rule
    target: float
    compute: Compute
    within: float = 0.0
    middle: Middle = statistics.median
    short: bool = False
    """Whether the claim is known to fail so far; its figure is recorded nevertheless."""

    def judge(self) -> dict[str, object]:
        """Recompute the figure; of several values, take the middle and record the range."""
        line: dict[str, object] = {
            "name": self.name,
            "where": self.where,
            "rule": self.rule,
            "target": self.target,
            **({"short": True} if self.short else {}),
        }
        try:
            got = self.compute()
        except Exception:
            return {**line, "holds": False, "error": traceback.format_exc(limit=-1).strip()}
        values = [float(v) for v in got] if isinstance(got, Sequence) else [float(got)]
        value = self.middle(values)
        return {
            **line,
            "value": value if math.isfinite(value) else str(value),
            "spread": [min(values), max(values)],
            "holds": self._holds(value),
        }

    def _holds(self, value: float) -> bool:
        if self.rule == "equals":
            return abs(value - self.target) <= self.within
        if self.rule == "at least":
            return value >= self.target - self.within
        return value <= self.target + self.within


@dataclass(frozen=True, slots=True)
class Page:
    """A page, or a section of one, that states figures; each method makes a claim about one.

    ``more`` sets other fields of the claim: ``within``, ``middle`` and ``short``.
    """

    where: str
    middle: Middle = statistics.median

    def claim(self, name: str, rule: Rule, target: float, compute: Compute, **more: Any) -> Claim:
        more = {"middle": self.middle} | more
        return Claim(name, self.where, rule, target, compute, **more)

    def equals(self, name: str, target: float, compute: Compute, **more: Any) -> Claim:
        return self.claim(name, "equals", target, compute, **more)

    def at_least(self, name: str, target: float, compute: Compute, **more: Any) -> Claim:
        return self.claim(name, "at least", target, compute, **more)

    def at_most(self, name: str, target: float, compute: Compute, **more: Any) -> Claim:
        return self.claim(name, "at most", target, compute, **more)


class Rounds(Generic[Found]):
    """The results of several runs, which start when a figure is first needed."""

    def __init__(self, run: Callable[[], Found], count: int) -> None:
        self._found = cache(lambda: [run() for _ in range(count)])

    def of(self, figure: Callable[[Found], float]) -> Compute:
        """Return a function that returns a figure of every run."""
        return lambda: [figure(found) for found in self._found()]
