"""tab:opxgboost: XGBoost models as shares of the plain model's measure."""

import statistics
from collections.abc import Callable

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, Words, noted
from opboost_lab.reproduce.measures.missing_zero import zeros_missing
from opboost_lab.reproduce.methods import Method, at_level, level_notes
from opboost_lab.reproduce.printed import OPXGBOOST
from opboost_lab.reproduce.study import BEST, ON_CELLS, ON_GRID, RAW, Line, Plain, Study, studies
from opboost_lab.reproduce.task import Results, Scope, Task

SETS = ("Adult", "Pen-digits", "CASP")
EPSILONS = (0.08, 1.28)
THETAS = (2, 4)
PLACES = tuple((e, t) for e in EPSILONS for t in THETAS)
QUICK = ("Local-map", "Global-map", "Adj-map α=10", "Piecewise")
"""The rows of a quick run."""
WORDS = Words("tab:opxgboost")
OURS = (
    Line(Method("Clamp-map")),
    BEST,
    Line(Method("Global-map", at="exact")),
    Line(Method("Piecewise", at="total")),
    Line(Method("FederBoost"), "cells"),
    Line(Method("FederBoost", at="total"), "cells"),
)
UNPRINTED = (RAW, ON_GRID, ON_CELLS, *OURS)


def line_of(row: str, theta: int) -> Line:
    """Return the method of a printed row."""
    family, _, alpha = row.partition(" α=")
    if family == "Local-map":
        return Line(Method("Local-map", theta=theta))
    if family == "Adj-map":
        return Line(Method("Adj-map", theta=theta, alpha=float(alpha)))
    return Line(Method(family))  # type: ignore[arg-type]


def printed(row: str, place: int, name: str) -> float | None:
    """Return the paper's figure, if the set is one of its own."""
    return OPXGBOOST[row][3 * place + SETS.index(name)] if name in SETS else None


def _rows(scope: Scope) -> tuple[str, ...]:
    return QUICK if scope.quick else tuple(OPXGBOOST)


def _zeros(study: Study, line: Line | None, epsilon: float, seed: int, consistent: bool) -> Task:
    return Task.of(
        zeros_missing,
        cost=1.5 * (0.25 if study.scope.quick else 1.0),
        source=study.source.as_json(),
        method=None if line is None else line.method.as_json(),
        epsilon=epsilon,
        seed=seed,
        consistent=consistent,
    )


def _tasks(scope: Scope) -> list[Task]:
    found: list[Task] = []
    for study in studies(SETS, scope, "xgboost"):
        lines = dict.fromkeys(line_of(r, t) for r in _rows(scope) for t in THETAS)
        found += study.tasks([*UNPRINTED, *lines], EPSILONS)
        if study.source.kind == "binary":
            ways = ((line, e) for line in lines for e in EPSILONS)
            for line, e in [(None, 0.0), *ways]:
                found += [_zeros(study, line, e, s, False) for s in study.seeds]
            found += [_zeros(study, None, 0.0, s, True) for s in study.seeds]
    return found


def kept(study: Study, base: list[float], values: list[float]) -> float:
    """Return the share of plain, paired by seed: higher is better, for errors as well."""
    pairs = zip(base, values, strict=False)
    return statistics.fmean(b / v if study.source.better < 0 else v / b for b, v in pairs)


HEADS = ("trained on", *(f"θ = {t}: {what}" for t in THETAS for what in ("paper", "ours", "ratio")))


def _show(scope: Scope, results: Results) -> Finding:
    grids: list[Grid] = []
    heads: list[Headline] = []
    notes: list[Note] = []
    near: list[float] = []
    for study in studies(SETS, scope, "xgboost", results):
        source, base = study.source, study.values(RAW)
        notes += source.notes()
        grids += [_grid(study, base, scope, e) for e in EPSILONS]
        heads.append(_headline(study, base))
        if source.kind == "binary":
            grids += [_grid_of_zeros(study, scope, e) for e in EPSILONS]
            notes += noted("zeros as missing", **_figures_of_zeros(study))
        elif (theirs := _printed(study, "Local-map", 0) or 0) > (
            grid := kept(study, base, study.values(ON_GRID))
        ):
            notes += noted("a coarser grid", name=source.name, theirs=theirs, grid=grid)
        if not source.stand_in and source.name in SETS[1:]:
            for i, (e, t) in enumerate(PLACES):
                for row in _rows(scope):
                    value = kept(study, base, study.values(line_of(row, t), e))
                    near.append(value / (printed(row, i, source.name) or value))
    words = "; ".join(f"{h.what.split(':')[0]} {h.ours:.3f} → {h.best:.3f}" for h in heads)
    summary = WORDS("summary", level=at_level(GRID, 0.08), words=words)
    close, held = (sum(abs(n - 1) <= most for n in near) for most in (0.05, 0.15))
    if near:
        summary += WORDS("near", cells=len(near), close=close, held=held)
    return Finding(
        summary,
        tuple(heads),
        (),
        tuple(grids),
        (*dict.fromkeys(notes), *noted("tab:opxgboost"), *level_notes(GRID)),
        said=Said(WORDS("said"), held, len(near)) if near else None,
    )


def _printed(study: Study, row: str, place: int) -> float | None:
    return None if study.source.stand_in else printed(row, place, study.source.name)


def _grid(study: Study, base: list[float], scope: Scope, epsilon: float) -> Grid:
    def ours(line: Line | Plain) -> float:
        return kept(study, base, study.values(line, epsilon))

    rows = [
        *(_compared(study, row, epsilon, ours) for row in _rows(scope)),
        *((line.label, *[None, ours(line), None] * len(THETAS)) for line in UNPRINTED),
    ]
    return Grid(_title("table", study, epsilon, base), HEADS, tuple(rows))


def _title(kind: str, study: Study, epsilon: float, base: list[float]) -> str:
    names = {"title": study.source.title, "measure": study.source.measure}
    return WORDS(kind, **names, level=at_level(GRID, epsilon), mean=statistics.fmean(base))


def _compared(
    study: Study, row: str, epsilon: float, ours: Callable[[Line], float]
) -> tuple[Cell, ...]:
    """Return a row of the paper's at one level: printed, ours and their ratio, by θ."""
    cells: list[Cell] = [row]
    for theta in THETAS:
        paper = _printed(study, row, PLACES.index((epsilon, theta)))
        value = ours(line_of(row, theta))
        cells += [paper, value, value / paper if paper else None]
    return tuple(cells)


def _zero_scores(
    study: Study, line: Line | None, epsilon: float, consistent: bool = False
) -> list[float]:
    return study.scores((_zeros(study, line, epsilon, s, consistent) for s in study.seeds), "AUC")


def _grid_of_zeros(study: Study, scope: Scope, epsilon: float) -> Grid:
    """Return the same table with both meanings that the paper's code gives to zero."""
    base = _zero_scores(study, None, 0.0)

    def ours(line: Line) -> float:
        return kept(study, base, _zero_scores(study, line, epsilon))

    rows = tuple(_compared(study, row, epsilon, ours) for row in _rows(scope))
    return Grid(_title("zeros", study, epsilon, base), HEADS, rows)


def _figures_of_zeros(study: Study) -> dict[str, object]:
    """Return how zeros as missing affect plain models, and those of three methods."""
    base = _zero_scores(study, None, 0.0)
    right = statistics.fmean(_zero_scores(study, None, 0.0, consistent=True))
    shares = ", ".join(
        f"{row} {kept(study, base, _zero_scores(study, line_of(row, 2), 0.08)):.3f}"
        + ("" if study.source.stand_in else f" (printed {OPXGBOOST[row][0]:.3f})")
        for row in ("Local-map", "Global-map", "Piecewise")
    )
    return {"right": right, "base": statistics.fmean(base), "shares": shares}


def _headline(study: Study, base: list[float]) -> Headline:
    return Headline(
        WORDS("headline", title=study.source.title, total=0.08 * GRID.span),
        _printed(study, "Global-map", 0),
        kept(study, base, study.values(line_of("Global-map", 2), 0.08)),
        best=kept(study, base, study.values(BEST, 0.08)),
        plain=1.0,
        on_grid=kept(study, base, study.values(ON_GRID)),
    )


ARTEFACT = Artefact(
    "tab:opxgboost", "XGBoost models, as shares of plain", _tasks, _show, SETS, learning=True
)
