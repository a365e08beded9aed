"""The charts of a choice, each with a sentence in plain words."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import cycle

import numpy as np

from opboost._typing import FloatArray
from opboost.explorer.choice import KINDS, Choice
from opboost.explorer.equal_loss import level, matched
from opboost.explorer.log_distributions import log_rows
from opboost.explorer.mechanism_figures import ExamplePerson, Figures, figures, person, worst
from opboost.mechanisms import LocalMap
from opboost.plots.svg import Series, Shape, SvgChart, short

_SHAPES: tuple[Shape, ...] = ("circle", "square", "triangle", "diamond", "cross", "plus", "down")
SHAPES: dict[str, Shape] = dict(zip(KINDS, cycle(_SHAPES), strict=False))
"""The marker of each mechanism, in addition to its colour and dash."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A mechanism scaled to the chosen one's exact loss; ``figures`` is None if that fails."""

    kind: str
    figures: Figures | None

    @property
    def name(self) -> str:
        """Its name on the page."""
        return KINDS[self.kind]

    @property
    def nominal(self) -> float | None:
        """Its epsilon at that scale."""
        return self.figures.mechanism.nominal_epsilon() if self.figures else None


@dataclass(frozen=True, slots=True)
class View:
    """Everything that the page shows about a choice."""

    choice: Choice
    figures: Figures
    person: ExamplePerson
    exact: float
    goal: float
    rivals: tuple[Rival, ...]
    charts: Mapping[str, SvgChart]


def view(choice: Choice) -> View:
    """Compute and lay out everything that a choice shows."""
    found, seen = figures(choice.mechanism), person(choice.mechanism, choice.cell)
    goal = level(choice.mechanism, choice.match)
    rivals = []
    for kind, mechanism in choice.rivals().items():
        if kind == choice.kind:
            rivals.append(Rival(kind, found))
            continue
        same = matched(mechanism, goal, choice.match)
        rivals.append(Rival(kind, figures(same) if same else None))
    charts = {
        "neighbours": _neighbours(choice, seen),
        "loss": _loss(choice, found),
        "order": _order(choice, found),
        "belief": _belief(choice, seen),
        "rivals": _rivals(choice, rivals),
    }
    exact = level(choice.mechanism, "cell")
    return View(choice, found, seen, exact, goal, tuple(rivals), charts)


def interval(choice: Choice, first: int, last: int) -> tuple[float, float]:
    """Return the range of raw values from one cell to another."""
    return choice.mapping.interval(first)[0], choice.mapping.interval(last)[1]


def _neighbours(choice: Choice, seen: ExamplePerson) -> SvgChart:
    mechanism, cell = choice.mechanism, seen.cell
    grid = mechanism.domain
    beside = [c for c in (cell - 1, cell + 1) if c in grid]
    logs = log_rows(mechanism, [cell, *beside])
    rows, times = np.exp(logs), math.exp(float(worst(logs[:1], logs[1:]).max()))
    shown = np.flatnonzero(rows.max(axis=0) > rows.max() * 1e-3)
    first, last = (0, grid.size - 1) if grid.size <= 48 else (shown[0], shown[-1])
    names = [f"cell {cell}", *(f"cell {c}" for c in beside)]
    looks = ["own", *("below" if c < cell else "above" for c in beside)]
    shapes: list[Shape] = ["circle", "square", "diamond"]
    series = [
        Series(name, _points(grid.L, row, first, last), look, shape)
        for name, row, look, shape in zip(names, rows, looks, shapes, strict=False)
    ]
    return SvgChart(
        "What may be sent for a value and for its neighbours",
        f"Cell {cell} is sent as cell {seen.arrived} most often, with probability "
        f"{short(seen.chance)}. Whatever is sent, it is at most {short(times)} times as likely for "
        "this value as for a neighbour, or the other way round."
        if math.isfinite(times)
        else f"Cell {cell} is sent as cell {seen.arrived} most often. A neighbour lies in another "
        "run, and the run is revealed: the two can be distinguished with certainty.",
        "cell that is sent",
        "probability",
        series,
    )


def _points(lower: int, row: FloatArray, first: int, last: int) -> list[tuple[float, float]]:
    return [(float(lower + y), float(row[y])) for y in range(first, last + 1)]


def _loss(choice: Choice, found: Figures) -> SvgChart:
    steps = [s for s in found.steps if s.loss is not None and s.bound is not None]
    promised = [(float(s.distance), float(s.bound or 0)) for s in steps]
    exact = [(float(s.distance), float(s.loss or 0)) for s in steps]
    if isinstance(choice.mechanism, LocalMap) and choice.mechanism.partition.count > 1:
        words = (
            "Inside a run the exact loss stays below the promise. The run of a value is "
            "revealed, so two values in different runs have no promise at all."
        )
    else:
        far = steps[-1]
        words = (
            f"The loss between two neighbouring cells is at most {short(steps[0].loss or 0)} "
            f"(promised {short(steps[0].bound or 0)}), between the two ends of the grid "
            f"{short(far.loss or 0)} (promised {short(far.bound or 0)})."
        )
    return SvgChart(
        "How far two values can be told apart",
        words,
        "distance in cells",
        "loss (log of the odds)",
        [
            Series("promised", promised, "promised"),
            Series("exact", exact, f"k-{choice.kind}", SHAPES[choice.kind]),
        ],
        x_log=len(found.steps) > 1 and found.steps[-1].distance > 48,
    )


def _order(choice: Choice, found: Figures) -> SvgChart:
    middle = found.steps[len(found.steps) // 2]
    return SvgChart(
        "How much order survives",
        f"Two values {middle.distance} cells apart keep their order with a probability of at "
        f"least {short(middle.gamma)}; ties count as lost. Over a complete column the expected "
        f"weighted Kendall correlation is {short(found.order)} (1 is all order, 0 none).",
        "distance in cells",
        "γ, order kept",
        [Series("γ", _gammas(found), f"k-{choice.kind}", SHAPES[choice.kind])],
        y_top=1.0,
        rule=0.5,
        x_log=found.steps[-1].distance > 48,
    )


def _gammas(found: Figures) -> list[tuple[float, float]]:
    return [(float(s.distance), s.gamma) for s in found.steps]


def _belief(choice: Choice, seen: ExamplePerson) -> SvgChart:
    grid = choice.mechanism.domain
    a, b = interval(choice, *seen.interval)
    words = (
        f"A person with {choice.looked_at} {short(choice.value)} lies in cell {seen.cell} and is "
        f"most often sent as {seen.arrived}. A receiver who thought all cells equally likely "
        f"before is then {seen.inside:.0%} sure that the value lies between {short(a)} and "
        f"{short(b)} (cells {seen.interval[0]} to {seen.interval[1]})."
    )
    points = _points(grid.L, seen.belief, 0, grid.size - 1)
    bars = grid.size <= 128
    return SvgChart(
        "What the receiver believes about one person",
        words,
        "cell of the person",
        "belief",
        [Series("belief", points, f"k-{choice.kind}", bars=bars)],
        band=(float(seen.interval[0]), float(seen.interval[1])),
    )


def _rivals(choice: Choice, rivals: list[Rival]) -> SvgChart:
    drawn = [r for r in rivals if r.figures is not None]
    hiding = [r for r in drawn if r.figures is not None and math.isfinite(r.figures.total)]
    best = max(hiding, key=lambda r: r.figures.order if r.figures else 0.0)
    same = "two neighbouring cells" if choice.match == "cell" else "the two ends of the grid"
    return SvgChart(
        "Order kept by each mechanism",
        f"Each mechanism is scaled until the exact loss between {same} equals that of the chosen "
        f"one. Of the mechanisms that hide the complete value, {best.name} keeps the most order.",
        "distance in cells",
        "γ, order kept",
        [
            Series(r.name, _gammas(r.figures), f"k-{r.kind}", SHAPES[r.kind])
            for r in drawn
            if r.figures is not None
        ],
        y_top=1.0,
        rule=0.5,
        x_log=choice.mechanism.domain.span > 48,
    )
