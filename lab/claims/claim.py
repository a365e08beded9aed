"""What a claim is, and how it is judged."""

from __future__ import annotations

import math
import statistics
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

Rule = Literal["equals", "at least", "at most"]


@dataclass(frozen=True, slots=True)
class Claim:
    """A stated figure: where it stands, how to recompute it, and when it holds."""

    name: str
    where: str
    rule: Rule
    target: float
    compute: Callable[[], float | Sequence[float]]
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
