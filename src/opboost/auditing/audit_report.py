"""What an audit found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PairAudit:
    """Two values: what is promised of them, what the law says, and what the samples prove.

    ``lower`` is a lower bound on the loss, reached by the outcomes in ``event``, which speak for
    ``x`` against ``y``.
    """

    x: Any
    y: Any
    promised: float
    exact: float
    lower: float
    event: str

    @property
    def broken(self) -> bool:
        """Whether the samples prove that the promise is not kept."""
        return self.lower > self.promised

    @property
    def beyond_distribution(self) -> bool:
        """Whether the samples prove that they do not come from the law that was certified."""
        return self.lower > self.exact

    @property
    def reached(self) -> float:
        """The share of the exact loss that the bound reaches."""
        return self.lower / self.exact if self.exact > 0 else 0.0


@dataclass(frozen=True, slots=True)
class IndependenceAudit:
    """Two draws that must not know of each other, and how likely chance alone explains theirs."""

    between: str
    chance: float
    dependent: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit of one mechanism found.

    ``samples`` were drawn for each value.  If the mechanism is sound, the probability that anything
    here says otherwise is at most ``1 − confidence``, all pairs and checks together.
    """

    mechanism: str
    samples: int
    confidence: float
    pairs: tuple[PairAudit, ...]
    independence: tuple[IndependenceAudit, ...]

    @property
    def sound(self) -> bool:
        """Whether nothing was found: no promise broken, no law left, no draws that know another."""
        return not self.findings

    @property
    def findings(self) -> tuple[str, ...]:
        """What was found, in sentences; empty for a sound mechanism."""
        found = []
        for p in self.pairs:
            if p.broken:
                found.append(
                    f"The loss of {p.x} and {p.y} is at least {p.lower:.4g}; "
                    f"promised are {p.promised:.4g}."
                )
            elif p.beyond_distribution:
                found.append(
                    f"The loss of {p.x} and {p.y} is at least {p.lower:.4g}; the certified law "
                    f"has {p.exact:.4g}, so something else is sampled."
                )
        found += [
            f"Draws of {check.between} depend on each other."
            for check in self.independence
            if check.dependent
        ]
        return tuple(found)
