"""Curves and tables of an artefact; ``drawing.py`` draws them, ``writing.py`` writes them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

Kind = Literal["paper", "ours", "ldp", "plain"]
"""The method of a curve: the paper's, ours, local DP without distances, or without noise."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A line in a panel; ``spread`` is half the height of its error bars."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    spread: tuple[float, ...] = ()
    kind: Kind = "paper"

    @classmethod
    def of(cls, label: str, points: Mapping[float, Sequence[float]], kind: Kind = "paper") -> Curve:
        """Return a curve through the means of repeated values, with their standard deviations."""
        return cls(
            label,
            tuple(points),
            tuple(statistics.fmean(v) for v in points.values()),
            tuple(statistics.stdev(v) if len(v) > 1 else 0.0 for v in points.values()),
            kind,
        )

    @classmethod
    def level(cls, label: str, x: Sequence[float], value: float, kind: Kind = "plain") -> Curve:
        """Return a level line."""
        return cls(label, tuple(x), (value,) * len(x), (), kind)


@dataclass(frozen=True, slots=True)
class Panel:
    """One set of axes."""

    title: str
    x: str
    y: str
    curves: tuple[Curve, ...]
    logx: bool = False
    logy: bool = False


Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Grid:
    """A table; numbers are kept as numbers and rounded when shown."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    digits: int = 4
    note: str = ""
    wide: bool = False
    """Whether its figures differ greatly in size."""
