"""The four figures of models by ε: GBDT on a data set, with every method and kind of level."""

import statistics
from collections.abc import Iterable, Sequence

from opboost_lab.accuracy import GRID
from opboost_lab.record_totals import Way
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.methods import Method, level_notes, unit_axis
from opboost_lab.reproduce.source import Source
from opboost_lab.reproduce.study import (
    BEST,
    ON_CELLS,
    ON_GRID,
    RAW,
    Line,
    Plain,
    Study,
    level_heads,
)
from opboost_lab.reproduce.task import Results, Scope, Task

THETAS = (2, 4)
ALPHAS = (0.4, 1.0, 10.0)
"""The ends and the middle of the paper's seven; its table of XGBoost has all (tab:opxgboost)."""
QUICK_ALPHAS = (0.4, 10.0)
TURN = 2.56
"""Below it, the paper says, large α and Local-map are best."""
AT = 0.64
"""The level of the summary."""
STUMP_LEVELS = (0.08, 0.64, 2.56)
TOTALS = (1.0, 2.0, 4.0, 8.0)
"""ε of a whole record, over all columns."""
QUICK_TOTALS = (1.0, 8.0)
FIRST_RECORD_SEED = 5
"""The planning rule of record budgets was chosen on smaller seeds, so they are left out."""
RECORDS: dict[Way, str] = {
    "record": "record budget, its plan",
    "Global-map": "Global-map, split evenly",
}

Rows = tuple[tuple[Cell, ...], ...]
WORDS = Words("learning")
GLOBAL = Line(Method("Global-map"))
PIECEWISE = Line(Method("Piecewise"))
FEDERBOOST = Line(Method("FederBoost"), "cells")
CLAMP = Line(Method("Clamp-map"))
CLAMP_CELLS = Line(Method("Clamp-map"), "cells")
LOCALS = {theta: Line(Method("Local-map", theta=theta)) for theta in THETAS}
EXACT = (
    Line(Method("Global-map", at="exact")),
    Line(Method("Adj-map", theta=2, alpha=1.0, at="exact")),
)
TOTAL = (Line(Method("Piecewise", at="total")), Line(Method("FederBoost", at="total"), "cells"))
CLEANED = Line(Method("Global-map", denoise=True))
STUMPS = (GLOBAL, LOCALS[2], CLAMP)
PLAIN = (RAW, ON_GRID, ON_CELLS)
"""Without noise; stumps are not trained on equal cells."""


def adj_lines(scope: Scope, theta: int) -> list[Line]:
    """Return Adj-map by α."""
    alphas = QUICK_ALPHAS if scope.quick else ALPHAS
    return [Line(Method("Adj-map", theta=theta, alpha=a)) for a in alphas]


def lines(scope: Scope) -> list[Line]:
    """Return every line of a figure."""
    return [
        GLOBAL,
        *(line for t in THETAS for line in (LOCALS[t], *adj_lines(scope, t))),
        PIECEWISE,
        FEDERBOOST,
        *EXACT,
        *TOTAL,
        CLAMP,
        CLAMP_CELLS,
        *cleaned(scope),
    ]


def cleaned(scope: Scope) -> tuple[Line, ...]:
    """Return the denoised lines; a quick run has only the best."""
    return (BEST,) if scope.quick else (CLEANED, BEST)


def tasks(source: Source, scope: Scope) -> list[Task]:
    """Return the models of a figure."""
    study, stumps = Study(source, scope, "hist-gbdt"), Study(source, scope, "stumps")
    return [
        *study.tasks([*PLAIN, *lines(scope)], scope.epsilons),
        *stumps.tasks([*PLAIN[:2], *STUMPS], STUMP_LEVELS),
        *(t for way in RECORDS for ts in _record_tasks(study, way).values() for t in ts),
    ]


def _record_tasks(study: Study, way: Way) -> dict[float, list[Task]]:
    totals = QUICK_TOTALS if study.scope.quick else TOTALS
    seeds = [FIRST_RECORD_SEED + s for s in study.seeds]
    return {total: [study.record_task(way, total, s) for s in seeds] for total in totals}


def show(source: Source, scope: Scope, results: Results) -> Finding:
    """Return the figure."""
    study = Study(source, scope, "hist-gbdt", results)
    held, said = _said(study, scope)
    grids = [_compared_grid(study), _grid(study, scope, source.measure)]
    if source.kind == "binary":
        grids.append(_grid(study, scope, "accuracy"))
    grids += [_record_grid(study), _stumps(Study(source, scope, "stumps", results)), held]
    stated = _stated(study)
    notes = (
        *source.notes(),
        *level_notes(GRID),
        *noted("models by ε", repeated=study.repeated(), first=FIRST_RECORD_SEED),
    )
    return Finding(
        WORDS("summary", **stated),
        (_headline(study),),
        _panels(study, scope),
        tuple(grids),
        notes,
        WORDS("short", **stated),
        said,
    )


def _panels(study: Study, scope: Scope) -> tuple[Panel, ...]:
    levels, source = scope.epsilons, study.source

    def panel(title: str, named: dict[str, Line], measure: str, cells: bool = True) -> Panel:
        drawn = [study.curve(line, levels, measure) for line in (PLAIN if cells else PLAIN[:2])]
        drawn += [study.curve(line, levels, measure, label=label) for label, line in named.items()]
        name, error = f"{source.title}: {title}", measure == "MSE"
        return Panel(name, unit_axis(GRID), measure, tuple(drawn), logx=True, logy=error)

    def of_theta(theta: int) -> dict[str, Line]:
        """Return lines whose names leave out θ, so that a method looks the same in both panels."""
        adj = {f"Adj-map α={line.method.alpha:g}": line for line in adj_lines(scope, theta)}
        return {
            "Global-map": GLOBAL,
            **adj,
            "Local-map": LOCALS[theta],
            "Piecewise": PIECEWISE,
            "FederBoost's method": FEDERBOOST,
            "Clamp-map": CLAMP,
        }

    measure = source.measure
    best = {"Clamp-map": CLAMP, BEST.label: BEST}
    panels = [panel(f"nominal ε, θ = {t}", of_theta(t), measure, cells=False) for t in THETAS]
    exact = {"Global-map": EXACT[0], "Adj-map α=1": EXACT[1]}
    panels.append(panel("equal exact ε per unit, θ = 2", best | exact, measure))
    total = {"Piecewise": TOTAL[0], "FederBoost's method": TOTAL[1]}
    panels.append(
        panel(f"equal total ({GRID.span} ε)", {"Global-map": GLOBAL} | best | total, measure)
    )
    raw = {} if scope.quick else {"Global-map": GLOBAL}
    added = {CLAMP_CELLS.label: CLAMP_CELLS} | {line.label: line for line in cleaned(scope)}
    panels.append(panel("what denoising adds, θ = 2", raw | added, measure))
    if source.kind == "binary":
        panels.append(panel("plain accuracy, θ = 2", of_theta(2), "accuracy", cells=False))
    return (*panels, _record_panel(study))


def _record_curves(study: Study) -> list[Curve]:
    curves = []
    for way, label in RECORDS.items():
        points = {total: study.scores(ts) for total, ts in _record_tasks(study, way).items()}
        curves.append(Curve.of(label, points, "ours" if way == "record" else "paper"))
    return [study.curve(RAW, curves[0].x), *curves]


def _record_panel(study: Study) -> Panel:
    source, curves = study.source, tuple(_record_curves(study))
    title, axis = f"{source.title}: by record total", "ε of a whole record, every column private"
    return Panel(title, axis, source.measure, curves, logx=True, logy=source.measure == "MSE")


def _record_grid(study: Study) -> Grid:
    curves = _record_curves(study)
    return Grid(
        f"{study.source.title}: {study.source.measure} of GBDT by record total",
        ("trained on", *(f"record total {total:g}" for total in curves[0].x)),
        tuple((curve.label, *curve.y) for curve in curves),
    )


def _rows(
    study: Study, chosen: Iterable[Line | Plain], levels: Sequence[float], measure: str
) -> Rows:
    return tuple((line.label, *(study.mean(line, e, measure) for e in levels)) for line in chosen)


def _grid(study: Study, scope: Scope, measure: str) -> Grid:
    levels = scope.epsilons
    return Grid(
        f"{study.source.title}: {measure} of GBDT, mean of {study.repeated()}",
        ("trained on", *level_heads(levels)),
        _rows(study, [*PLAIN, *lines(scope)], levels, measure),
        note="Lower is better." if measure == "MSE" else "",
    )


def _stumps(study: Study) -> Grid:
    measure = study.source.measure
    return Grid(
        f"{study.source.title}: {measure} of 80 stumps, as the paper's code trains",
        ("trained on", *level_heads(STUMP_LEVELS)),
        _rows(study, [*PLAIN[:2], *STUMPS], STUMP_LEVELS, measure),
    )


def _said(study: Study, scope: Scope) -> tuple[Grid, Said]:
    """Return the paper's statements about these figures, and at how many levels they hold here."""
    every = scope.epsilons
    low, high = [e for e in every if e < TURN], [e for e in every if e > TURN]
    mine = [GLOBAL, *(line for t in THETAS for line in (LOCALS[t], *adj_lines(scope, t)))]
    paper = {
        "every mechanism of the paper is better than Piecewise": [
            (line, PIECEWISE, e) for line in mine for e in every
        ]
    }
    for t in THETAS:
        small, *_, large = adj_lines(scope, t)
        paper |= {
            f"θ={t}: Local-map is better than Global-map, ε < 2.56": [
                (LOCALS[t], GLOBAL, e) for e in low
            ],
            f"θ={t}: α=10 is better than α=0.4, ε < 2.56": [(large, small, e) for e in low],
        }
        if high:
            paper[f"θ={t}: α=0.4 is better than α=10, ε > 2.56"] = [(small, large, e) for e in high]
    ours = {
        "ours: Clamp-map is better than Global-map": (CLAMP, GLOBAL),
        "ours: Clamp-map is better than Global-map at equal exact ε": (CLAMP, EXACT[0]),
        "ours: Clamp-map is better than Piecewise at equal total": (CLAMP, TOTAL[0]),
        "ours: Clamp-map is better than FederBoost's method at equal total": (CLAMP, TOTAL[1]),
        "ours: denoising helps": (BEST, CLAMP_CELLS),
    }
    compared = paper | {words: [(*pair, e) for e in every] for words, pair in ours.items()}
    gains = {words: [_gain(study, *case) for case in cases] for words, cases in compared.items()}
    held = {words: sum(g > 0 for g in found) for words, found in gains.items()}
    rows = tuple(
        (words, f"{held[words]} of {len(g)}", min(g, default=None), max(g, default=None))
        for words, g in gains.items()
    )
    note = f"Gains in {study.source.measure}, paired by seed; a positive gain is better."
    said = Said(WORDS("said"), sum(held[w] for w in paper), sum(len(gains[w]) for w in paper))
    return Grid(WORDS("stated"), WORDS.header(), rows, note=note), said


def _gain(study: Study, line: Line, other: Line, epsilon: float) -> float:
    pairs = zip(study.values(line, epsilon), study.values(other, epsilon), strict=False)
    return study.source.better * statistics.fmean(a - b for a, b in pairs)


COMPARED = (GLOBAL, EXACT[0], CLAMP, BEST, *TOTAL)
"""The lines that the sentences and their table compare."""


def _compared(study: Study) -> dict[Line | Plain, float]:
    """Return the scores that the sentences state."""
    return {line: study.mean(line, AT) for line in (RAW, ON_GRID, *COMPARED)}


def _compared_grid(study: Study) -> Grid:
    return Grid(
        f"{study.source.title}: {study.source.measure} of GBDT at ε = {AT:g} per unit, "
        f"mean of {study.repeated()}",
        ("trained on", study.source.measure),
        tuple((line.label, score) for line, score in _compared(study).items()),
    )


def _headline(study: Study) -> Headline:
    found, total = _compared(study), AT * GRID.span
    return Headline(
        f"{study.source.measure} of GBDT, Global-map, ε = {AT:g} per unit ({total:g} end to end)",
        None,
        found[GLOBAL],
        best=found[BEST],
        plain=found[RAW],
        on_grid=found[ON_GRID],
    )


def _stated(study: Study) -> dict[str, object]:
    """Return the figures of both sentences."""
    source, found = study.source, _compared(study)
    left = source.better * (found[RAW] - found[GLOBAL])
    won = source.better * (found[BEST] - found[GLOBAL])
    return {
        "title": source.title,
        "measure": source.measure,
        "at": AT,
        "total": AT * GRID.span,
        "globe": found[GLOBAL],
        "exact": found[EXACT[0]],
        "clamp": found[CLAMP],
        "best": found[BEST],
        "share": f" ({won / left:.0%} of the way to plain)" if left > 0 and won > 0 else "",
        "raw": found[RAW],
        "piecewise": found[TOTAL[0]],
        "federboost": found[TOTAL[1]],
        "local": max((found[line] for line in TOTAL), key=lambda value: source.better * value),
    }


def _figure(label: str, name: str) -> Artefact:
    return Artefact(
        label,
        f"GBDT models of {name}, by ε",
        lambda scope: tasks(Source.of(name, scope), scope),
        lambda scope, results: show(Source.of(name, scope), scope, results),
        needs=(name,),
        learning=True,
    )


ARTEFACTS = (
    _figure("fig:adult_class", "Adult"),
    _figure("fig:pendigits_class", "Pen-digits"),
    _figure("fig:plant_regress", "Powerplant"),
    _figure("fig:casp_regress", "CASP"),
)
