"""tab:umeng_opxgboost: XGBoost on the stand-in for the industrial set: error, time and bytes."""

import statistics

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.charts import Cell, Grid
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.federated import federated, plain_time
from opboost_lab.reproduce.methods import Method
from opboost_lab.reproduce.printed import UMENG
from opboost_lab.reproduce.source import Source
from opboost_lab.reproduce.study import BEST, ON_CELLS, ON_GRID, RAW, Line, Study, notes_on
from opboost_lab.reproduce.task import Results, Scope, Task

EPSILONS = (0.64, 1.28, 2.56)
THETA = 2
SENT = 202_000_000
"""The bytes that the paper prints for Party B, in every row."""
ROWS: dict[str, Line] = {
    "Local-map": Line(Method("Local-map", theta=THETA)),
    "Adj-map α=0.5": Line(Method("Adj-map", theta=THETA, alpha=0.5)),
    "Global-map": Line(Method("Global-map")),
    "Adj-map α=2": Line(Method("Adj-map", theta=THETA, alpha=2.0)),
    "Piecewise": Line(Method("Piecewise")),
}
OURS = (Line(Method("Clamp-map"), "cells"), BEST)
WORDS = Words("tab:umeng_opxgboost")


def _lines() -> dict[str, Line]:
    """Return the lines of the paper by its names, and ours by their labels."""
    return ROWS | {line.label: line for line in OURS}


def _study(scope: Scope, results: Results | None = None) -> Study:
    return Study(Source.of("Industrial", scope), scope, "xgboost", results or {})


def _timed(study: Study, line: Line, epsilon: float) -> Task:
    cost = {False: 15.0, True: 60.0}[line.method.denoise] * (0.1 if study.scope.quick else 1.0)
    return Task.of(
        federated,
        alone=True,
        cost=cost,
        source=study.source.as_json(),
        method=line.method.as_json(),
        epsilon=epsilon,
        mapping=line.mapping,
    )


def _plain_timed(study: Study) -> Task:
    cost = 1.0 if study.scope.quick else 15.0
    return Task.of(plain_time, alone=True, cost=cost, source=study.source.as_json())


def _timed_levels(scope: Scope) -> tuple[float, ...]:
    """Return the levels of time and bytes; a quick run has one."""
    return EPSILONS[:1] if scope.quick else EPSILONS


def _tasks(scope: Scope) -> list[Task]:
    study = _study(scope)
    lines = _lines().values()
    return [
        *study.tasks((RAW, ON_GRID, ON_CELLS, *lines), EPSILONS),
        _plain_timed(study),
        *(_timed(study, line, e) for e in _timed_levels(scope) for line in lines),
    ]


def ratio(base: list[float], values: list[float]) -> float:
    """Return the measure over plain's, averaged: for an error, lower is better."""
    return statistics.fmean(v / b for v, b in zip(values, base, strict=False))


def _show(scope: Scope, results: Results) -> Finding:
    study = _study(scope, results)
    source, base = study.source, study.values(RAW)

    def ratios(line: Line) -> list[float]:
        return [ratio(base, study.values(line, e)) for e in EPSILONS]

    names = {name: ratios(line) for name, line in _lines().items()}
    rows: list[tuple[Cell, ...]] = []
    for i, e in enumerate(EPSILONS):
        for name, line in _lines().items():
            ours = names[name][i]
            known = UMENG if not source.path else {}
            paper, seconds, asked = known.get((e, name), (None, None, None))
            took = results[_timed(study, line, e)] if e in _timed_levels(scope) else {}
            title = f"ε = {e:g} (total {e * GRID.span:g}), {name}"
            errors = paper, ours, ours / paper if paper else None
            sent = asked, took.get("label party"), took.get("feature party")
            bits = 8 * took["feature party"] / took["values"] if took else None
            rows.append((title, *errors, seconds, took.get("seconds"), *sent, bits))
    on_grid, cells = (ratio(base, study.values(line)) for line in (ON_GRID, ON_CELLS))
    plain_seconds = results[_plain_timed(study)]["seconds"]
    rows += [
        (ON_GRID.label, None, on_grid, *[None] * 7),
        (ON_CELLS.label, None, cells, *[None] * 7),
        (RAW.label, 1.0, 1.0, 1.0, None, plain_seconds, *[None] * 4),
    ]
    about = {"title": source.title, "measure": source.measure}
    header = tuple(head.format(**about) for head in WORDS.header())
    note = WORDS("note", repeated=study.repeated(), sent=SENT)
    # Flights are of the paper's size, so ratios are comparable; those of small tables are not.
    comparable = not source.path and not source.stand_in
    below = sum((v < 1) == (source.better < 0) and v != 1 for v in names["Local-map"])
    first = results[_timed(study, ROWS["Global-map"], EPSILONS[0])]
    listed = {
        "global_map": names["Global-map"],
        "local": names["Local-map"],
        "best": names[BEST.label],
    }
    return Finding(
        WORDS(
            "summary",
            **about,
            **{name: ", ".join(f"{v:.3f}" for v in values) for name, values in listed.items()},
            totals=", ".join(f"{e * GRID.span:g}" for e in EPSILONS),
            below=below,
            bits=8 * first["feature party"] / first["values"],
        ),
        tuple(
            Headline(
                WORDS("headline", **about, epsilon=e, total=e * GRID.span),
                UMENG[e, "Global-map"][0] if comparable else None,
                names["Global-map"][i],
                best=names[BEST.label][i],
                plain=1.0,
                on_grid=on_grid,
            )
            for i, e in enumerate(EPSILONS)
        ),
        said=Said(WORDS("said"), below, len(EPSILONS)),
        grids=(Grid(f"{source.title}, θ = {THETA}", header, tuple(rows), note=note),),
        notes=notes_on([study], noted("tab:umeng_opxgboost")),
    )


ARTEFACT = Artefact(
    "tab:umeng_opxgboost",
    "XGBoost on a stand-in for the industrial set: error, time, bytes",
    _tasks,
    _show,
    ("Industrial",),
    learning=True,
)
