"""fig:split_prob: the chance β that no value crosses a split."""

from itertools import product

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.splits import betas
from opboost_lab.reproduce.methods import Method, at_level, level_heads, level_notes, unit_axis
from opboost_lab.reproduce.task import Json, Scope, Task

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
EXACT = (Method("Global-map", at="exact"), Method("Adj-map", theta=THETA, alpha=1.0, at="exact"))
TOTAL = Method("GRR", at="total")
METHODS = (CLAMP, *PAPER, GRR, TOTAL)
Found = dict[tuple[Method, str], Json]
WORDS = Words("fig:split_prob")


def _epsilons(scope: Scope) -> tuple[float, ...]:
    return QUICK if scope.quick else EPSILONS


def _methods(scope: Scope) -> tuple[Method, ...]:
    return METHODS if scope.quick else METHODS + EXACT


def _tasks(scope: Scope) -> dict[tuple[Method, str], Task]:
    levels = list(_epsilons(scope))
    shared: Json = {"rows": ROWS, "grid": [DOMAIN.L, DOMAIN.R], "shares": list(SHARES)}
    return {
        (m, shape): Task.of(
            betas,
            cost=len(levels) * (1.5 if m.at == "exact" else 0.2),
            method=m.as_json(),
            shape=shape,
            epsilons=levels,
            **shared,
        )
        for shape in SHAPES
        for m in _methods(scope)
    }


def _show(scope: Scope, found: Found) -> Finding:
    levels, methods = _epsilons(scope), _methods(scope)
    labels = {m: m.label.replace(f" θ={THETA}", "") for m in methods}
    header = ("method", *level_heads(DOMAIN, levels))
    panels, grids, heads = [], [], []
    for shape, (k, share) in product(SHAPES, enumerate(SHARES)):
        title = f"{shape}, split at {share:.0%}"
        exact = {m: tuple(found[m, shape][k]["exact"]) for m in methods}
        curves = tuple(Curve(labels[m], levels, exact[m], (), m.kind) for m in methods)
        panels.append(Panel(title, unit_axis(DOMAIN), "β, exact", curves, logx=True))
        rows = []
        for m in methods:
            rows.append((labels[m], *exact[m]))
            if m not in (CLAMP, *EXACT):
                rows.append((f"{labels[m]}, as printed", *found[m, shape][k]["as_printed"]))
        grids.append(Grid(f"β, {title}", header, tuple(rows)))
        what = f"β, {title}, Global-map, {at_level(DOMAIN, levels[-2])}"
        heads.append(Headline(what, None, exact[GLOBAL][-2], exact[CLAMP][-2]))
    above = max(max(f["as_printed"]) for per in found.values() for f in per)
    against, said = _against_grr(found)
    return Finding(
        f"{against} {_quarter(found, levels)} {WORDS('printed', above=above)}",
        said=said,
        headlines=tuple(heads),
        panels=tuple(panels),
        grids=tuple(grids),
        notes=(*level_notes(DOMAIN), *noted("fig:split_prob", quick=scope.quick)),
    )


def _against_grr(found: Found) -> tuple[str, Said]:
    """Return how often the paper's methods and ours beat randomised response, at two levels."""
    triples = [
        triple
        for shape, k, m in product(SHAPES, range(len(SHARES)), (*PAPER, CLAMP))
        for triple in zip(*(found[x, shape][k]["exact"] for x in (m, GRR, TOTAL)), strict=True)
    ]
    better, total = (sum(t[0] > t[i] for t in triples) for i in (1, 2))
    text = WORDS("against", better=better, points=len(triples), total=total)
    return text, Said(WORDS("said"), better, len(triples))


def _quarter(found: Found, levels: tuple[float, ...]) -> str:
    quarter, half = (found[GLOBAL, "normal"][k]["exact"] for k in range(2))
    ratio = {e: q / h for e, q, h in zip(levels, quarter, half, strict=True) if h > 1e-6}
    first, *_, last = ratio
    low, high = min(ratio.values()), max(ratio.values())
    return WORDS("quarter", low=low, high=high, first=first, last=last)


ARTEFACT = Artefact.keyed("fig:split_prob", "Chance that a split survives", _tasks, _show)
