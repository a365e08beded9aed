"""How much is run: the paper's repeats, fewer, or a quick look."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

QUICK_SEEDS = 2
EPSILONS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
"""The levels of the paper's experiments: 0.01 · 2^k (docs/errata.md, 17)."""
QUICK_EPSILONS = (0.08, 0.64, 2.56)


@dataclass(frozen=True, slots=True)
class OwnTable:
    """A user's table in the place of the paper's data: file, label, declared columns."""

    path: Path
    label: str
    config: Path | None = None


@dataclass(frozen=True, slots=True)
class Scope:
    """What a run covers."""

    quick: bool = False
    seeds: int | None = None
    table: OwnTable | None = None
    bundled: bool = False
    """Take data that scikit-learn ships in the place of the paper's; only a quick run may."""

    def repeats(self, paper: int = 10) -> range:
        """The seeds of a measurement that the paper repeats so often."""
        return range(self.seeds or (min(QUICK_SEEDS, paper) if self.quick else paper))

    @property
    def epsilons(self) -> tuple[float, ...]:
        """The levels a unit of distance."""
        return QUICK_EPSILONS if self.quick else EPSILONS
