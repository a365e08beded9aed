"""What a claim is, and how it is judged."""

from __future__ import annotations

import math
import statistics
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Rule = Literal["equals", "at least", "at most"]
Compute = Callable[[], float | Sequence[float]]


@dataclass(frozen=True, slots=True)
class Claim:
    """A stated figure: where it stands, how to recompute it, and when it holds."""

    name: str
    where: str
    rule: Rule
    target: float
    compute: Compute
    within: float = 0.0
    middle: Callable[[list[float]], float] = statistics.median
    short: bool = False
    """Known not to be met yet: the figure is recorded all the same."""

    def judge(self) -> dict[str, object]:
        """Recompute; the middle of several values counts, and they are the spread."""
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
    """A page, or a part of one, that states figures: each method makes a claim of a figure.

    ``more`` are other fields of a claim: ``within``, ``middle`` and ``short``.
    """

    where: str

    def equals(self, name: str, target: float, compute: Compute, **more: Any) -> Claim:
        return Claim(name, self.where, "equals", target, compute, **more)

    def at_least(self, name: str, target: float, compute: Compute, **more: Any) -> Claim:
        return Claim(name, self.where, "at least", target, compute, **more)

    def at_most(self, name: str, target: float, compute: Compute, **more: Any) -> Claim:
        return Claim(name, self.where, "at most", target, compute, **more)
