"""fig:split_prob: the chance β that no value crosses a split."""

from __future__ import annotations

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.splits import betas
from opboost_lab.reproduce.methods import Method, at_level, level_line, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

DOMAIN = Domain(1, 100)
ROWS, THETA = 100, 4
SHAPES = ("uniform", "normal")
SHARES = (0.25, 0.5)
EPSILONS = (0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
QUICK = (0.08, 0.64, 2.56, 5.12)
GLOBAL, CLAMP, GRR = Method("Global-map"), Method("Clamp-map"), Method("GRR")
PAPER = (
    GLOBAL,
    *(Method("Adj-map", theta=THETA, alpha=a) for a in (0.5, 1.0, 2.0)),
    Method("Local-map", theta=THETA),
)
EXACT = (
    Method("Global-map", at="exact"),
    Method("Adj-map", theta=THETA, alpha=1.0, at="exact"),
)
TOTAL = Method("GRR", at="total")
METHODS = (CLAMP, *PAPER, GRR, TOTAL)


def _epsilons(scope: Scope) -> tuple[float, ...]:
    return QUICK if scope.quick else EPSILONS


def _methods(scope: Scope) -> tuple[Method, ...]:
    return METHODS if scope.quick else METHODS + EXACT


def _task(scope: Scope, method: Method, shape: str) -> Task:
    return Task.of(
        betas,
        method=method.as_json(),
        shape=shape,
        rows=ROWS,
        grid=[DOMAIN.L, DOMAIN.R],
        epsilons=list(_epsilons(scope)),
        shares=list(SHARES),
        cost=len(_epsilons(scope)) * (1.5 if method.at == "exact" else 0.2),
    )


def _tasks(scope: Scope) -> list[Task]:
    return [_task(scope, m, s) for s in SHAPES for m in _methods(scope)]


def _label(method: Method) -> str:
    return method.label.replace(f" θ={THETA}", "")


def _show(scope: Scope, results: Results) -> Finding:
    levels = _epsilons(scope)
    found = {(m, s): results[_task(scope, m, s)] for s in SHAPES for m in _methods(scope)}
    panels, grids = [], []
    for shape in SHAPES:
        for k, share in enumerate(SHARES):
            curves = tuple(
                Curve(_label(m), levels, tuple(found[m, shape][k]["exact"]), (), m.kind)
                for m in _methods(scope)
            )
            title = f"{shape}, split at {share:.0%}"
            panels.append(Panel(title, unit_axis(DOMAIN), "β, exact", curves, logx=True))
            rows = []
            for m in _methods(scope):
                rows.append((_label(m), *found[m, shape][k]["exact"]))
                if m not in (CLAMP, *EXACT):
                    rows.append((f"{_label(m)}, as printed", *found[m, shape][k]["as_printed"]))
            header = ("method", *(f"ε={e:g}, total {e * DOMAIN.span:g}" for e in levels))
            grids.append(Grid(f"β, {title}", header, tuple(rows)))
    above = max(max(f["as_printed"]) for per in found.values() for f in per)
    against, better, points = _against_grr(found, levels)
    return Finding(
        said=Said("a split survives more often than under randomised response", better, points),
        summary=f"{against} {_quarter(found, levels)} The formula as printed "
        f"reaches {above:.2f}, which no chance can.",
        headlines=tuple(
            Headline(
                f"β, {shape}, split at {share:.0%}, Global-map, {at_level(DOMAIN, levels[-2])}",
                None,
                found[GLOBAL, shape][k]["exact"][-2],
                best=found[CLAMP, shape][k]["exact"][-2],
                better="higher",
            )
            for shape in SHAPES
            for k, share in enumerate(SHARES)
        ),
        panels=tuple(panels),
        grids=tuple(grids),
        notes=(
            Note(level_line(DOMAIN)),
            *(
                (Note("A quick run leaves out the curves at equal exact ε."),)
                if scope.quick
                else ()
            ),
            *noted("fig:split_prob"),
        ),
    )


def _against_grr(
    found: dict[tuple[Method, str], Json], levels: tuple[float, ...]
) -> tuple[str, int, int]:
    points = better = total = 0
    for shape in SHAPES:
        for k in range(len(SHARES)):
            for i in range(len(levels)):
                rival = found[GRR, shape][k]["exact"][i]
                for m in (*PAPER, CLAMP):
                    points += 1
                    better += found[m, shape][k]["exact"][i] > rival
                    total += found[m, shape][k]["exact"][i] > found[TOTAL, shape][k]["exact"][i]
    text = (
        f"β is above randomised response's at the same nominal ε at {better} of {points} points "
        f"(the paper: always), and at the same total ε at {total}."
    )
    return text, better, points


def _quarter(found: dict[tuple[Method, str], Json], levels: tuple[float, ...]) -> str:
    quarter, half = (found[GLOBAL, "normal"][k]["exact"] for k in range(2))
    ratio = [q / h for q, h in zip(quarter, half, strict=True) if h > 1e-6]
    kept = [e for e, h in zip(levels, half, strict=True) if h > 1e-6]
    return (
        "On the normal set the split at 25 % survives "
        f"{min(ratio):.1f} to {max(ratio):.1f} times as often as the one at 50 % under Global-map, "
        f"from ε = {kept[0]:g} to {kept[-1]:g} (the paper: up to 10)."
    )


ARTEFACT = Artefact("fig:split_prob", "Chance that a split survives", _tasks, _show)
