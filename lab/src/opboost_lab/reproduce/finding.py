"""What an artefact shows: curves, tables, and sentences; how they are drawn is elsewhere."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Results, Task

Kind = Literal["paper", "ours", "ldp", "plain"]
"""Whose a curve is: a method of the paper, one of ours, local DP without distances, or no noise."""


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
        """A curve through the means of repeated values, with their standard deviations."""
        return cls(
            label,
            tuple(points),
            tuple(statistics.fmean(v) for v in points.values()),
            tuple(statistics.stdev(v) if len(v) > 1 else 0.0 for v in points.values()),
            kind,
        )


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
    """Its figures are of very different sizes."""


@dataclass(frozen=True, slots=True)
class Headline:
    """A line of the summary: one quantity as printed, by the paper's method, and at our best."""

    what: str
    paper: Cell
    ours: Cell
    best: Cell = None
    plain: Cell = None
    """No noise, raw values."""
    on_grid: Cell = None
    """No noise, values on the grid."""
    better: Literal["higher", "lower", "same"] = "same"

    @property
    def ratio(self) -> float | None:
        """Ours by the paper's method over what the paper prints."""
        if isinstance(self.paper, int | float) and isinstance(self.ours, int | float):
            return self.ours / self.paper if self.paper else None
        return None


@dataclass(frozen=True, slots=True)
class Note:
    """A sentence on a difference, and the erratum that explains it."""

    text: str
    erratum: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """All that is shown of an artefact; ``short`` is for those who read nothing else."""

    summary: str
    headlines: tuple[Headline, ...] = ()
    panels: tuple[Panel, ...] = ()
    grids: tuple[Grid, ...] = ()
    notes: tuple[Note, ...] = ()
    short: str = ""


@dataclass(frozen=True, slots=True)
class Artefact:
    """A table, figure or statement of the paper, by its label."""

    label: str
    title: str
    tasks: Callable[[Scope], list[Task]]
    show: Callable[[Scope, Results], Finding]
    needs: tuple[str, ...] = ()
    """Data sets of the paper; where they are missing, a quick run takes bundled ones."""
    learning: bool = False
    """It trains models, so a table of the user's own can take the place of its data."""

    @property
    def slug(self) -> str:
        """The label as the name of a folder."""
        return "".join(c if c.isalnum() else "-" for c in self.label)
