"""The statement that a large α is better below ε = 2.56 and a small one above it."""

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.columns import AGE, AGE_ALIKE, UNIFORM
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.alpha import HIGH, LOW, orders
from opboost_lab.reproduce.methods import Level, unit_axis
from opboost_lab.reproduce.task import Json, Scope, Task

PRINTED = 2.56
ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0)
LEVELS: tuple[Level, ...] = ("nominal", "exact")
Case = tuple[str, int, tuple[int, int], int, Level]
WORDS = Words("crossover of alpha")


def _cases(scope: Scope) -> list[Case]:
    """Return column, rows, grid, θ, level; the wide grid only at nominal ε, as exact ε is slow."""
    columns = ((UNIFORM, 10_000), (AGE_ALIKE if scope.bundled else AGE, 32_561))
    small: list[Case] = [
        (name, rows, (1, 10), theta, at)
        for name, rows in columns
        for theta in (2, 4)
        for at in LEVELS
    ]
    wide: list[Case] = [(*columns[0], (1, 100), theta, "nominal") for theta in (4, 10)]
    return small if scope.quick else small + wide


def _tasks(scope: Scope) -> dict[Case, Task]:
    shared: Json = {"alphas": list(ALPHAS), "epsilons": list(scope.epsilons)}
    tasks = {}
    for case in _cases(scope):
        values, rows, grid, theta, at = case
        own: Json = {"values": values, "rows": rows, "grid": list(grid), "theta": theta, "at": at}
        cost = 5.0 if grid[1] > 10 or at == "exact" else 0.5
        tasks[case] = Task.of(orders, cost=cost, **own, **shared)
    return tasks


def _show(scope: Scope, found: dict[Case, Json]) -> Finding:
    panels, crossed, heads = [], [], []
    levels: dict[str, list[float]] = {"nominal": [], "exact": []}
    for case, result in found.items():
        column, _, grid, theta, at = case
        title = f"{column}, 1..{grid[1]}, θ = {theta}, {at} ε"
        where, table = result["crossings"], result["table"]
        levels[at] += where
        best = [ALPHAS[max(range(len(ALPHAS)), key=row.__getitem__)] for row in table]
        crossed.append((title, _crossing(where), PRINTED, *(f"{b:g}" for b in best)))
        if grid == (1, 10):
            what = WORDS("headline", column=column, theta=theta, at=at)
            heads.append(Headline(what, PRINTED, _crossing(where)))
            if theta == 4:
                panels.append(_panel(scope, title, table))
    nominal = levels["nominal"]
    header = (*WORDS.header(), *(f"ε={e:g}" for e in scope.epsilons))
    return Finding(
        _sentence(nominal, levels["exact"]),
        said=Said(
            WORDS("said", printed=PRINTED),
            sum(PRINTED / 2 <= e <= 2 * PRINTED for e in nominal),
            len(nominal) or 1,
        ),
        headlines=tuple(heads),
        panels=tuple(panels),
        grids=(Grid(WORDS("table"), header, tuple(crossed), digits=2),),
        notes=noted("crossover of alpha", low=LOW, high=HIGH),
    )


def _crossing(where: list[float]) -> float | str:
    if len(where) == 1:
        return where[0]
    return ", ".join(f"{e:.2f}" for e in where) or "never"


def _panel(scope: Scope, title: str, table: list[list[float]]) -> Panel:
    curves = tuple(
        Curve(f"α={a:g}", tuple(scope.epsilons), tuple(row[k] for row in table))
        for k, a in enumerate(ALPHAS)
    )
    return Panel(title, unit_axis(Domain(1, 10)), "expected weighted Kendall", curves, logx=True)


def _sentence(nominal: list[float], exact: list[float]) -> str:
    if not nominal:
        return WORDS("never")
    said = WORDS("nominal", low=min(nominal), high=max(nominal), printed=PRINTED)
    if not exact:
        return f"{said}; {WORDS('at_once')}"
    return f"{said}; at equal exact ε it overtakes at {', '.join(f'{e:.2f}' for e in exact)}."


ARTEFACT = Artefact.keyed("crossover of alpha", "Which α keeps the most order", _tasks, _show)
