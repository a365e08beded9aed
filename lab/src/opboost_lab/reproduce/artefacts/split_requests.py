"""Fewer split points asked of Party B at small ε: so the paper; counted here."""

from __future__ import annotations

import statistics

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.learning_figures import CLAMP, GLOBAL, LOCALS, PIECEWISE
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.methods import level_line, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.source import sources
from opboost_lab.reproduce.study import Line, Study, level_heads
from opboost_lab.reproduce.task import Results, Task

SETS = ("Adult", "Pen-digits", "Powerplant", "CASP")
LINES = (GLOBAL, LOCALS[2], CLAMP, PIECEWISE)
EVEN = 0.05
"""Changes up to this share count as none."""


def _studies(scope: Scope, results: Results | None = None) -> list[Study]:
    return [Study(s, scope, "hist-gbdt", results or {}) for s in sources(SETS, scope)]


def _tasks(scope: Scope) -> list[Task]:
    """The models of the figures by ε, which are there already where these were run."""
    return [t for study in _studies(scope) for t in study.tasks(LINES, scope.epsilons)]


def _points(study: Study, line: Line, what: str) -> dict[float, list[float]]:
    found, levels = study.results, study.scope.epsilons
    return {e: [found[study.task(line, e, s)][what] for s in study.seeds] for e in levels}


def _show(scope: Scope, results: Results) -> Finding:
    studies = _studies(scope, results)
    panels = [_panel(study, "cuts") for study in studies]
    with_own = [s for s in studies if s.source.kind == "binary"]
    panels += [_panel(study, "share") for study in with_own]
    rows: list[tuple[Cell, ...]] = []
    fewer = more = 0
    for study in studies:
        for line in LINES:
            means = [statistics.fmean(v) for v in _points(study, line, "cuts").values()]
            rows.append((f"{study.source.title}: {line.label}", *means))
            if line.method.kind == "paper":
                fewer += means[0] < (1 - EVEN) * means[-1]
                more += means[0] > (1 + EVEN) * means[-1]
    asked = sum(line.method.kind == "paper" for line in LINES) * len(studies)
    low, high = scope.epsilons[0], scope.epsilons[-1]
    words = (
        f"The paper sees fewer requests at small ε. From ε = {high:g} down to {low:g} the number "
        f"of different cuts asked of the feature party falls by more than {EVEN:.0%} in {fewer} "
        f"of {asked} cases (Global-map and Local-map, each set) and rises so in {more}."
    )
    heads = []
    if with_own:
        shares = _points(with_own[0], GLOBAL, "share")
        small, large = (statistics.fmean(shares[e]) for e in (low, high))
        words += (
            f" Its reason can be tested where the label party has columns too "
            f"({with_own[0].source.title}): the feature party's share of all splits is "
            f"{small:.0%} at ε = {low:g} and {large:.0%} at {high:g} with Global-map."
        )
        heads.append(
            Headline(
                f"share of splits at the feature party, Global-map, ε = {low:g} over "
                f"ε = {high:g} a unit ({low * GRID.span:g} over {high * GRID.span:g} end to end)",
                "below 1",
                small / large if large else None,
            )
        )
    return Finding(
        words,
        tuple(heads),
        tuple(panels),
        (
            Grid(
                "Different cuts asked of the feature party, GBDT",
                ("model", *level_heads(scope.epsilons)),
                tuple(rows),
                digits=1,
            ),
        ),
        (
            *dict.fromkeys(n for s in studies for n in s.source.notes()),
            *noted("split requests"),
            Note(level_line(GRID)),
        ),
        said=Said("fewer requests at small ε", fewer, asked),
    )


def _panel(study: Study, what: str) -> Panel:
    named = {"cuts": "different cuts asked", "share": "share of all splits at the feature party"}
    curves = tuple(
        Curve.of(line.label, _points(study, line, what), line.method.kind) for line in LINES
    )
    return Panel(
        f"{study.source.title}: {named[what]}", unit_axis(GRID), named[what], curves, logx=True
    )


ARTEFACT = Artefact(
    "split requests", "Cuts asked of the feature party, by ε", _tasks, _show, SETS, learning=True
)
