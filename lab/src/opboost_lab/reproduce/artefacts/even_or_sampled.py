"""Compare splitting the level evenly over all columns with sending few columns per row."""

from itertools import product

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.learning_figures import CLAMP_CELLS
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.methods import at_level, unit_axis
from opboost_lab.reproduce.study import (
    BEST,
    ON_CELLS,
    RAW,
    Line,
    Study,
    level_heads,
    notes_on,
    studies,
)
from opboost_lab.reproduce.task import Json, Results, Scope, Task

SETS = ("Pen-digits", "CASP", "Powerplant")
RECORD = (0.64, 1.28, 2.56, 5.12, 10.24, 20.48)
"""ε of a whole record, per cell: the sum over the columns that are sent for a row."""
QUICK_RECORD = (2.56, 10.24)
SPLITS: dict[Json, str] = {"even": "even", 1: "1 column per row", 2: "2 columns per row"}
MIDDLE = 2.56
WORDS = Words("even or sampled")


def _lines(scope: Scope) -> tuple[Line, ...]:
    return (CLAMP_CELLS,) if scope.quick else (CLAMP_CELLS, BEST)


def _levels(scope: Scope) -> tuple[float, ...]:
    return QUICK_RECORD if scope.quick else RECORD


def _studies(scope: Scope, results: Results | None = None) -> list[Study]:
    found = studies(SETS[:2] if scope.quick else SETS, scope, "xgboost", results)
    return [study for study in found if not study.source.narrow]


def _tasks(scope: Scope) -> list[Task]:
    return [
        task
        for study in _studies(scope)
        for task in (
            *study.tasks((RAW, ON_CELLS), _levels(scope)),
            *(t for s in SPLITS for t in study.tasks(_lines(scope), _levels(scope), s)),
        )
    ]


def _curves(study: Study, scope: Scope) -> list[Curve]:
    levels = _levels(scope)
    curves = [study.curve(line, levels) for line in (RAW, ON_CELLS)]
    for line, split in product(_lines(scope), SPLITS):
        points = {e: study.values(line, e, split=split) for e in levels}
        kind = "paper" if split == "even" else "ours"
        label = SPLITS[split] + (", denoised" if line.method.denoise else "")
        curves.append(Curve.of(label, points, kind))  # type: ignore[arg-type]
    return curves


def _show(scope: Scope, results: Results) -> Finding:
    chosen, levels = _studies(scope, results), _levels(scope)
    if not chosen:
        return Finding(WORDS("narrow"))
    panels, said, heads = [], [], []
    rows: list[tuple[Cell, ...]] = []
    gains: list[float] = []
    for study in chosen:
        source, curves = study.source, _curves(study, scope)
        mean = {
            (e, split): study.mean(CLAMP_CELLS, e, split=split)
            for e, split in product(levels, SPLITS)
        }
        gains += [
            source.better * (mean[e, split] - mean[e, "even"])
            for e, split in product(levels, list(SPLITS)[1:])
        ]
        rows += [(f"{source.title}: {c.label}", *c.y) for c in curves]
        even, one = mean[MIDDLE, "even"], mean[MIDDLE, 1]
        names = {"title": source.title, "measure": source.measure}
        what = WORDS("headline", **names, level=at_level(GRID, MIDDLE), even=even)
        plain, on_grid = study.mean(RAW), study.mean(ON_CELLS)
        heads.append(Headline(what, None, one, plain=plain, on_grid=on_grid))
        said.append(f"{source.title} {even:.4g} and {one:.4g}")
        axis, error = unit_axis(GRID, "ε of a record, per unit"), source.better < 0
        panels.append(Panel(source.title, axis, source.measure, tuple(curves), True, error))
    ahead, cases = sum(gain > 0 for gain in gains), len(gains)
    level = at_level(GRID, MIDDLE)
    return Finding(
        WORDS("summary", ahead=ahead, cases=cases, level=level, said="; ".join(said)),
        tuple(heads),
        tuple(panels),
        said=Said(WORDS("said"), ahead, cases),
        grids=(
            Grid(
                "Mean score by the level of a whole record",
                ("split", *level_heads(levels)),
                tuple(rows),
                note=f"Clamp-map, equal cells; at most {chosen[-1].repeated()}.",
            ),
        ),
        notes=notes_on(chosen, noted("even or sampled"))[:-2],
    )


ARTEFACT = Artefact(
    "even or sampled",
    "Splitting the level: evenly, or over few columns per row",
    _tasks,
    _show,
    SETS,
    learning=True,
)
