"""fig:distribution: where a value goes, and how Adj-map moves mass between near and far."""

from __future__ import annotations

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, noted
from opboost_lab.reproduce.methods import Method, at_level
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

DOMAIN = Domain(-50, 50)
EPSILON = 0.1
THETA = 10
ALPHAS = (0.2, 0.5, 1.0, 2.0, 5.0)
VALUES = (0, 40)
GLOBAL = Method("Global-map")
METHODS = (
    GLOBAL,
    *(Method("Adj-map", theta=THETA, alpha=a) for a in ALPHAS),
    Method("Clamp-map"),
)


def distribution(method: Json, value: int) -> Json:
    """The chance of each output of one value, and the exact loss a unit of distance."""
    mechanism = Method(**method).mechanism(DOMAIN, EPSILON)
    return {"pmf": mechanism.pmf(value).tolist(), "exact": mechanism.exact_epsilon()}


def _task(method: Method, value: int) -> Task:
    return Task.of(distribution, method=method.as_json(), value=value)


def _tasks(scope: Scope) -> list[Task]:
    return [_task(m, v) for m in METHODS for v in VALUES]


def _show(scope: Scope, results: Results) -> Finding:
    outputs = tuple(float(y) for y in range(DOMAIN.L, DOMAIN.R + 1))
    found = {(m, v): results[_task(m, v)] for m in METHODS for v in VALUES}
    panels = tuple(
        Panel(
            f"From x = {v}, {at_level(DOMAIN, EPSILON)}",
            "output",
            "chance",
            tuple(Curve(m.label, outputs, tuple(found[m, v]["pmf"]), (), m.kind) for m in METHODS),
            logy=True,
        )
        for v in VALUES
    )
    apart = {
        m: sum(abs(a - b) for a, b in zip(found[m, 0]["pmf"], found[GLOBAL, 0]["pmf"], strict=True))
        / 2
        for m in METHODS
    }
    rows = tuple((m.label, found[m, 0]["exact"], found[m, 0]["pmf"][50], apart[m]) for m in METHODS)
    nearest = min((m for m in METHODS if m.family == "Adj-map"), key=lambda m: apart[m])
    more = found[METHODS[-1], 0]["pmf"][50] / found[GLOBAL, 0]["pmf"][50]
    return Finding(
        summary=f"Of Adj-map, {nearest.label} is nearest to Global-map, as the paper shows "
        f"({apart[nearest]:.1%} of the mass elsewhere); Clamp-map keeps {more:.1f} times the mass "
        "in place.",
        said=Said("Adj-map with α = 1 is nearest to Global-map", int(nearest.alpha == 1), 1),
        headlines=(
            Headline("α whose Adj-map is nearest to Global-map", 1.0, nearest.alpha),
            Headline(
                f"chance that x = 0 stays, Global-map, {at_level(DOMAIN, EPSILON)}",
                None,
                found[GLOBAL, 0]["pmf"][50],
                best=found[METHODS[-1], 0]["pmf"][50],
            ),
        ),
        panels=panels,
        grids=(
            Grid(
                f"At nominal {at_level(DOMAIN, EPSILON)}, θ = {THETA}, on {DOMAIN.L}..{DOMAIN.R}",
                (
                    "mechanism",
                    "exact ε a unit",
                    "chance that x = 0 stays",
                    "mass apart from Global-map",
                ),
                rows,
            ),
        ),
        notes=(*noted("fig:distribution"),),
    )


ARTEFACT = Artefact("fig:distribution", "Where one value goes", _tasks, _show)
