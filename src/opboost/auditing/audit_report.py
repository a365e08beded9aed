"""The report of an audit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PairAudit:
    """Two values: the promised loss, the exact loss, and the loss that the samples prove.

    ``lower`` is a lower bound on the loss, proved by the outcomes in ``event``, which favour ``x``
    over ``y``.
    """

    x: Any
    y: Any
    promised: float
    exact: float
    lower: float
    event: str

    @property
    def broken(self) -> bool:
        """Whether the samples prove that the promise is broken."""
        return self.lower > self.promised

    @property
    def beyond_distribution(self) -> bool:
        """Whether the samples prove that they do not come from the certified distribution."""
        return self.lower > self.exact

    @property
    def reached(self) -> float:
        """The share of the exact loss that the bound reaches."""
        return self.lower / self.exact if self.exact > 0 else 0.0


@dataclass(frozen=True, slots=True)
class IndependenceAudit:
    """A test that two draws are independent; ``chance`` is its p-value."""

    between: str
    chance: float
    dependent: bool


@dataclass(frozen=True, slots=True)
class Audit:
    """The result of the audit of one mechanism.

    ``samples`` is the number drawn for each value.  If the mechanism is sound, any finding has a
    probability of at most ``1 − confidence``, over all pairs and checks together.
    """

    mechanism: str
    samples: int
    confidence: float
    pairs: tuple[PairAudit, ...]
    independence: tuple[IndependenceAudit, ...]

    @property
    def sound(self) -> bool:
        """Whether the audit found nothing: promise and distribution hold, draws are independent."""
        return not self.findings

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings, as sentences; empty for a sound mechanism."""
        found = []
        for p in self.pairs:
            if p.broken:
                found.append(
                    f"The loss of {p.x} and {p.y} is at least {p.lower:.4g}; "
                    f"the promise is {p.promised:.4g}."
                )
            elif p.beyond_distribution:
                found.append(
                    f"The loss of {p.x} and {p.y} is at least {p.lower:.4g}; the certified "
                    f"distribution has {p.exact:.4g}, so the samples come from a different one."
                )
        found += [
            f"Draws of {check.between} depend on each other."
            for check in self.independence
            if check.dependent
        ]
        return tuple(found)
