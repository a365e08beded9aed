"""Attacks on order: what plain order, a cipher, and noise reveal, by ε."""

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Words, noted
from opboost_lab.reproduce.measures import attacks
from opboost_lab.reproduce.measures.attacks import CELLS, OPE, WITHIN
from opboost_lab.reproduce.methods import Method, at_level, unit_axis
from opboost_lab.reproduce.task import Json, Scope, Task

GLOBAL, CLAMP = Method("Global-map"), Method("Clamp-map")
METHODS = (
    GLOBAL,
    Method("Adj-map", theta=4, alpha=1),
    Method("Local-map", theta=4),
    CLAMP,
    Method("Piecewise", at="total"),
    Method("GRR", at="total"),
)
WORDS = Words("attacks")
LOW, HIGH = 0.08, 2.56
"""The levels that the table shows; quick and full runs have both."""


def _tasks(scope: Scope) -> dict[tuple[object, ...], Task]:
    shown: Json = {"bundled": scope.bundled}
    ordered: dict[tuple[object, ...], Task] = {
        (n,): Task.of(attacks.by_order, cost=0.6, name=n, **shown) for n in CELLS
    }
    return ordered | {
        (n, m, e): Task.of(
            attacks.by_noise, cost=0.05, name=n, method=m.as_json(), epsilon=e, **shown
        )
        for n in CELLS
        for m in METHODS
        for e in scope.epsilons
    }


def _show(scope: Scope, found: dict[tuple[object, ...], Json]) -> Finding:
    column = "mean texture" if scope.bundled else "age"
    titles = {n: f"{column} ({cells} cells)" for n, cells in CELLS.items()}
    grid, levels = Domain(0, CELLS["age"] - 1), scope.epsilons

    def panel(name: str) -> Panel:
        curves = [
            Curve(m.label, levels, tuple(found[name, m, e] for e in levels), (), m.kind)
            for m in METHODS
        ]
        curves.append(Curve.level("OPE, sorted", levels, found[name,][OPE], "ldp"))
        curves.append(Curve.level(WORDS("guess"), levels, found[name,]["prior alone"]))
        title = f"Best possible attack, {titles[name]}, within ±{WITHIN[name]}"
        return Panel(title, unit_axis(grid), "share recovered", tuple(curves), logx=True)

    rows = [
        (f"{titles[n]}, {words}, ±{WITHIN[n]}", found[n,]["prior alone"], share)
        for n in CELLS
        for words, share in [
            *((way, found[n,][way]) for way in ("plain order", OPE)),
            *((f"{m.label}, ε = {e:g}", found[n, m, e]) for m in METHODS for e in (LOW, HIGH)),
        ]
    ]
    figures = {
        "column": titles["age"],
        "ope": found["age",][OPE],
        "prior": found["age",]["prior alone"],
        "level": at_level(grid, LOW),
        "clamp": found["age", CLAMP, LOW],
        "high": HIGH,
        "clamp_high": found["age", CLAMP, HIGH],
    }
    return Finding(
        WORDS("summary", **figures),
        headlines=tuple(
            Headline(
                WORDS("headline", column=titles["age"], epsilon=e, total=grid.span * e),
                None,
                *(found["age", m, e] for m in (GLOBAL, CLAMP)),
            )
            for e in (LOW, HIGH)
        ),
        panels=tuple(map(panel, CELLS)),
        grids=(Grid(WORDS("table"), WORDS.header(), tuple(rows), 3, WORDS("note")),),
        notes=noted("attacks", bundled=scope.bundled),
        short=WORDS("short", **figures),
    )


ARTEFACT = Artefact.keyed(
    "attacks", "Attacks on order, ciphers and noise", _tasks, _show, needs=("Adult",)
)
