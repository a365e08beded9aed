"""cor:maximum_gain: the best gain is no smaller after desensitising with chance at least β."""

from __future__ import annotations

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.splits import gains
from opboost_lab.reproduce.methods import Method, at_level, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

MARGIN = 4.5
EPSILONS = (0.08, 0.32, 0.64, 1.28, 2.56, 5.12)
CASES: tuple[tuple[str, int, tuple[int, int]], ...] = (
    ("uniform", 20, (1, 100)),
    ("normal", 100, (1, 100)),
    ("uniform", 30, (1, 10)),
)
METHODS = (
    Method("Clamp-map"),
    Method("Global-map"),
    Method("Adj-map", theta=4, alpha=1.0),
    Method("Local-map", theta=4),
    Method("GRR"),
)
Case = tuple[str, int, tuple[int, int]]


def _draws(scope: Scope) -> int:
    return 1_000 if scope.quick else 20_000


def _task(scope: Scope, method: Method, case: Case) -> Task:
    shape, rows, grid = case
    return Task.of(
        gains,
        method=method.as_json(),
        shape=shape,
        rows=rows,
        grid=list(grid),
        epsilons=list(EPSILONS),
        draws=_draws(scope),
        cost=len(EPSILONS) * _draws(scope) * 5e-5,
    )


def _tasks(scope: Scope) -> list[Task]:
    return [_task(scope, m, c) for c in CASES for m in METHODS]


def _slack(chance: float, draws: int) -> float:
    chance = min(max(chance, 0.0), 1.0)
    return float(MARGIN * (chance * (1 - chance) / draws + 1 / draws**2) ** 0.5)


def below(share: float, bound: float, draws: int) -> bool:
    """Whether a counted share is below a bound by more than chance explains."""
    return share < bound - _slack(bound, draws)


def _show(scope: Scope, results: Results) -> Finding:
    draws = _draws(scope)
    found: dict[tuple[Method, Case], Json] = {
        (m, c): results[_task(scope, m, c)] for c in CASES for m in METHODS
    }
    lines = [line for per in found.values() for line in per]
    broken = sum(below(x["no_smaller"], x["exact"], draws) for x in lines)
    printed = sum(below(x["no_smaller"], x["as_printed"], draws) for x in lines)
    strayed = sum(abs(x["no_crossing"] - x["exact"]) > _slack(x["exact"], draws) for x in lines)
    more = sum(x["no_smaller"] > x["exact"] + _slack(x["exact"], draws) for x in lines)
    panels, grids = [], []
    for case in CASES:
        title = f"{case[1]} {case[0]} values on {case[2][0]}..{case[2][1]}"
        curves = []
        for m in METHODS[:2]:
            per = found[m, case]
            curves += [
                _curve(f"{m.family}: gain no smaller", per, "no_smaller", m),
                Curve(f"{m.family}: β exact", EPSILONS, tuple(x["exact"] for x in per), (), "ldp"),
                _curve(f"{m.family}: β as printed", per, "as_printed", m),
            ]
        panels.append(Panel(title, unit_axis(Domain(*case[2])), "chance", tuple(curves), logx=True))
        rows = tuple(
            (f"{m.label}, {at_level(Domain(*case[2]), e)}", *(x[k] for k in KEYS))
            for m in METHODS
            for e, x in zip(EPSILONS, found[m, case], strict=True)
        )
        grids.append(Grid(title, HEADER, rows))
    clamp, plain = (found[m, CASES[0]][3] for m in METHODS[:2])
    return Finding(
        summary=f"With the exact β {len(lines) - broken} of {len(lines)} counted shares are at or "
        f"above the corollary's bound, {more} clearly so; with β as printed {printed} are below.",
        said=Said("the corollary's bound holds", len(lines) - broken, len(lines)),
        headlines=(
            Headline(
                f"Pr[best gain no smaller], {CASES[0][1]} uniform values, Global-map, "
                f"{at_level(Domain(*CASES[0][2]), EPSILONS[3])}",
                None,
                plain["no_smaller"],
                best=clamp["no_smaller"],
                better="higher",
            ),
        ),
        panels=tuple(panels),
        grids=tuple(grids),
        notes=(
            Note(
                f"No value crosses as often as β says at {len(lines) - strayed} of {len(lines)} "
                f"points, within {MARGIN:g} standard errors of {draws:,} draws."
            ),
            *noted("cor:maximum_gain"),
        ),
    )


KEYS = ("no_smaller", "no_crossing", "exact", "as_printed", "mean_ratio")
HEADER = (
    "mechanism", "gain no smaller", "no value crosses", "β exact", "β as printed",
    "mean gain after / before",
)  # fmt: skip


def _curve(label: str, per: Json, key: str, method: Method) -> Curve:
    return Curve(label, EPSILONS, tuple(x[key] for x in per), (), method.kind)


ARTEFACT = Artefact("cor:maximum_gain", "The best gain after desensitising", _tasks, _show)
