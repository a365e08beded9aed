"""The statement that a large α is better below ε = 2.56 and a small one above it."""

from __future__ import annotations

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.columns import AGE, AGE_ALIKE, UNIFORM
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.alpha import HIGH, LOW, orders
from opboost_lab.reproduce.methods import Level, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Results, Task

PRINTED = 2.56
ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0)
LEVELS: tuple[Level, ...] = ("nominal", "exact")
Case = tuple[str, int, tuple[int, int], int, Level]


def _cases(scope: Scope) -> list[Case]:
    """Column, rows, grid, θ, level; the wide grid at nominal ε, where tables are slow to set."""
    columns = ((UNIFORM, 10_000), (AGE_ALIKE if scope.bundled else AGE, 32_561))
    small: list[Case] = [
        (name, rows, (1, 10), theta, at)
        for name, rows in columns
        for theta in (2, 4)
        for at in LEVELS
    ]
    wide: list[Case] = [(*columns[0], (1, 100), theta, "nominal") for theta in (4, 10)]
    return small if scope.quick else small + wide


def _task(scope: Scope, case: Case) -> Task:
    values, rows, grid, theta, at = case
    return Task.of(
        orders,
        values=values,
        grid=list(grid),
        rows=rows,
        theta=theta,
        alphas=list(ALPHAS),
        at=at,
        epsilons=list(scope.epsilons),
        cost=5.0 if grid[1] > 10 or at == "exact" else 0.5,
    )


def _tasks(scope: Scope) -> list[Task]:
    return [_task(scope, c) for c in _cases(scope)]


def _show(scope: Scope, results: Results) -> Finding:
    cases = {c: results[_task(scope, c)] for c in _cases(scope)}
    panels, grids, crossed = [], [], []
    for case, found in cases.items():
        values, _, grid, theta, at = case
        title = f"{values}, 1..{grid[1]}, θ = {theta}, {at} ε"
        where = found["crossings"]
        best = [ALPHAS[max(range(len(ALPHAS)), key=row.__getitem__)] for row in found["table"]]
        crossed.append((title, *_crossing(where), *(f"{b:g}" for b in best)))
        if grid == (1, 10) and theta == 4:
            panels.append(_panel(scope, title, found["table"]))
    header = ("column, grid, θ, level", "α = 0.5 overtakes α = 8 at", "printed")
    grids.append(
        Grid(
            "Where it crosses, and the best α by ε",
            (*header, *(f"ε={e:g}" for e in scope.epsilons)),
            tuple(crossed),
            digits=2,
        )
    )
    nominal = [e for c, f in cases.items() if c[4] == "nominal" for e in f["crossings"]]
    exact = [e for c, f in cases.items() if c[4] == "exact" for e in f["crossings"]]
    return Finding(
        summary=_sentence(nominal, exact),
        said=Said(
            f"a small α becomes better about ε = {PRINTED:g} (within a factor of two)",
            sum(PRINTED / 2 <= e <= 2 * PRINTED for e in nominal),
            len(nominal) or 1,
        ),
        headlines=tuple(
            Headline(
                f"ε a unit (end to end: 9 ε) at which a small α becomes better, {c[0]}, "
                f"θ = {c[3]}, {c[4]} ε",
                PRINTED,
                _crossing(f["crossings"])[0],
            )
            for c, f in cases.items()
            if c[2] == (1, 10)
        ),
        panels=tuple(panels),
        grids=tuple(grids),
        notes=(
            Note(
                "All values are exact expectations of weighted Kendall; nothing is sampled. "
                f"Crossings are looked for from ε = {LOW:g} to {HIGH:g}."
            ),
            *noted("crossover of alpha"),
        ),
    )


def _crossing(where: list[float]) -> tuple[float | str, float]:
    if not where:
        return "never", PRINTED
    return (where[0] if len(where) == 1 else ", ".join(f"{e:.2f}" for e in where)), PRINTED


def _panel(scope: Scope, title: str, table: list[list[float]]) -> Panel:
    curves = tuple(
        Curve(f"α={a:g}", tuple(scope.epsilons), tuple(row[k] for row in table))
        for k, a in enumerate(ALPHAS)
    )
    return Panel(title, unit_axis(Domain(1, 10)), "expected weighted Kendall", curves, logx=True)


def _sentence(nominal: list[float], exact: list[float]) -> str:
    if not nominal:
        return "At nominal ε the best α does not change; the paper sees a change at 2.56."
    said = (
        f"At nominal ε the small α overtakes the large one between ε = {min(nominal):.2f} and "
        f"{max(nominal):.2f}, by grid, column and θ (the paper: {PRINTED:g})"
    )
    if not exact:
        return f"{said}; at equal exact ε it is ahead from the start, and nothing crosses."
    return f"{said}; at equal exact ε it crosses at {', '.join(f'{e:.2f}' for e in exact)}."


ARTEFACT = Artefact("crossover of alpha", "Which α keeps most order", _tasks, _show)
