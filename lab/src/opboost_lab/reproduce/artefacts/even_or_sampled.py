"""An even split of the level over the columns, or few columns of each row at a larger share."""

from __future__ import annotations

import statistics

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.learning_figures import CLAMP_CELLS
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, noted
from opboost_lab.reproduce.methods import at_level, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.source import sources
from opboost_lab.reproduce.study import BEST, Line, Study
from opboost_lab.reproduce.task import Json, Results, Task

SETS = ("Pen-digits", "CASP", "Powerplant")
RECORD = (0.64, 1.28, 2.56, 5.12, 10.24, 20.48)
"""ε of a whole record, a unit: the sum over the columns that a row sends."""
QUICK_RECORD = (2.56, 10.24)
SPLITS: tuple[Json, ...] = ("even", 1, 2)
MIDDLE = 2.56


def _lines(scope: Scope) -> tuple[Line, ...]:
    return (CLAMP_CELLS,) if scope.quick else (CLAMP_CELLS, BEST)


def _levels(scope: Scope) -> tuple[float, ...]:
    return QUICK_RECORD if scope.quick else RECORD


def _studies(scope: Scope, results: Results | None = None) -> list[Study]:
    names = SETS[:2] if scope.quick else SETS
    chosen = (s for s in sources(names, scope) if not s.narrow)
    return [Study(s, scope, "xgboost", results or {}) for s in chosen]


def _tasks(scope: Scope) -> list[Task]:
    return [
        task
        for study in _studies(scope)
        for task in (
            *study.plain_tasks("cells"),
            *(t for s in SPLITS for t in study.tasks(_lines(scope), _levels(scope), s)),
        )
    ]


def named(split: Json) -> str:
    """How a split is called."""
    return "even" if split == "even" else f"{split} column{'s' if split > 1 else ''} a row"


def _show(scope: Scope, results: Results) -> Finding:
    studies, levels = _studies(scope, results), _levels(scope)
    if not studies:
        return Finding("This table has one private column, so there is no level to split.")
    panels, said = [], []
    rows: list[tuple[Cell, ...]] = []
    ahead = cases = 0
    heads = []
    for study in studies:
        curves = [
            study.plain_curve(False, levels),
            study.plain_curve(True, levels, "cells"),
        ]
        rows += [(f"{study.source.title}: {c.label}", *c.y) for c in curves]
        better = study.source.better
        for line in _lines(scope):
            for split in SPLITS:
                label = f"{named(split)}{', denoised' if line.method.denoise else ''}"
                points = {e: study.values(line, e, split=split) for e in levels}
                kind = "paper" if split == "even" else "ours"
                curves.append(Curve.of(label, points, kind))  # type: ignore[arg-type]
                cells: list[Cell] = [f"{study.source.title}: {label}"]
                rows.append((*cells, *(statistics.fmean(v) for v in points.values())))
        for e in levels:
            even = study.mean(CLAMP_CELLS, e, split="even")
            for s in SPLITS[1:]:
                sampled = study.mean(CLAMP_CELLS, e, split=s)
                ahead += better * (sampled - even) > 0
                cases += 1
        even, one = (study.mean(CLAMP_CELLS, MIDDLE, split=s) for s in ("even", 1))
        heads.append(
            Headline(
                f"{study.source.title}: {study.source.measure}, one column a row, record "
                f"{at_level(GRID, MIDDLE)}; "
                f"an even split gives {even:.4g}",
                None,
                one,
                on_grid=study.plain_mean(True, "cells"),
                plain=study.plain_mean(False),
                better="lower" if better < 0 else "higher",
            )
        )
        said.append(f"{study.source.title} {even:.4g} and {one:.4g}")
        axis = unit_axis(GRID, "ε of a record, a unit")
        panels.append(
            Panel(
                study.source.title,
                axis,
                study.source.measure,
                tuple(curves),
                logx=True,
                logy=better < 0,
            )
        )
    return Finding(
        "The discussion expects that sending few columns of each row beats an even split of the "
        f"level. With Clamp-map and XGBoost it does in {ahead} of {cases} comparisons. At record "
        f"{at_level(GRID, MIDDLE)}, even and one column a row: {'; '.join(said)}.",
        tuple(heads),
        tuple(panels),
        said=Said("few columns of each row are better than an even split", ahead, cases),
        grids=(
            Grid(
                "Mean score by the level of a whole record",
                ("split", *(f"ε={e:g} (total {e * GRID.span:g})" for e in levels)),
                tuple(rows),
                note=f"Clamp-map, equal cells; at most {studies[-1].repeated()}.",
            ),
        ),
        notes=(
            *dict.fromkeys(n for s in studies for n in s.source.notes()),
            *noted("even or sampled"),
        ),
    )


ARTEFACT = Artefact(
    "even or sampled",
    "The level over many columns: even, or few columns of each row",
    _tasks,
    _show,
    SETS,
    learning=True,
)
