"""fig:rq_salaries and fig:rq_uniform: the error of range queries on a desensitised column."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from statistics import fmean as mean

from opboost.grid import Domain
from opboost_lab.data import datasets
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Kind, Panel
from opboost_lab.reproduce.columns import NORMAL, SALARIES, SALARIES_ALIKE, UNIFORM, ColumnChoice
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.ranges import by_ahead, counted, reconstructed
from opboost_lab.reproduce.methods import Method, adj_maps, level_heads, level_notes, unit_axis
from opboost_lab.reproduce.task import Json, Scope, Task

DOMAIN = Domain(1, 1024)
QUERIES = 10_000
REPEATS = 100
MOST_RECONSTRUCTED = 5
"""Repeats of the reconstruction, which takes seconds where a count takes milliseconds."""
THETAS = (5, 10)
ALPHAS = (0.4, 0.8, 1.0, 2.0, 10.0)
QUICK_ALPHAS = (0.4, 1.0, 10.0)
QUICK_EPSILONS = (0.01, 0.08, 0.64)
GLOBAL, CLAMP = Method("Global-map"), Method("Clamp-map")
WORDS = Words("range queries")
Key = tuple[object, ...]
AHEAD = {"coded": "AHEAD", "textbook": "AHEAD, textbook weights"}


def epsilons(scope: Scope) -> tuple[float, ...]:
    """Return the levels per cell; small ones matter most on a thousand cells."""
    return QUICK_EPSILONS if scope.quick else tuple(scope.epsilons)


def _alphas(scope: Scope) -> tuple[float, ...]:
    return QUICK_ALPHAS if scope.quick else ALPHAS


def nominal(scope: Scope) -> list[Method]:
    """Return the methods at the level that the paper names."""
    return [
        CLAMP,
        GLOBAL,
        *adj_maps(THETAS, _alphas(scope)),
        *(Method("Local-map", theta=t) for t in THETAS),
    ]


def _exact(scope: Scope) -> list[Method]:
    return [replace(m, at="exact") for m in (GLOBAL, *adj_maps(THETAS[:1], _alphas(scope)))]


def _all(scope: Scope) -> list[Method]:
    return [*nominal(scope), *_exact(scope)]


def _denoised(scope: Scope) -> list[Method]:
    return [CLAMP] if scope.quick else [CLAMP, GLOBAL]


def rebuilt(scope: Scope) -> int:
    """Return how often a distribution is reconstructed at each level."""
    return 1 if scope.quick else min(MOST_RECONSTRUCTED, len(scope.repeats(REPEATS)))


def _totals(scope: Scope) -> list[float]:
    """Return AHEAD's levels: the small ones of the paper, and the totals of a whole grid."""
    return [*epsilons(scope), *(e * DOMAIN.span for e in epsilons(scope))]


def _tasks(scope: Scope, column: ColumnChoice) -> dict[Key, Task]:
    """Return counts by method and level, reconstructions also by seed, and AHEAD by level only."""
    levels, seeds = epsilons(scope), list(scope.repeats(REPEATS))
    about: Json = {"grid": [DOMAIN.L, DOMAIN.R], "rows": column.rows, "queries": QUERIES}
    about["values"] = column.name
    noise: Json = {
        (m, e): {"method": m.as_json(), "epsilon": e} for m in _all(scope) for e in levels
    }
    few = {(m, e): noise[m, e] for m in _denoised(scope) for e in levels}
    cost, dear = 0.5 + 0.02 * len(seeds), 0.2 + 0.05 * len(seeds)
    return {
        **{
            (column, *key): Task.of(counted, cost=cost, seeds=seeds, **level, **about)
            for key, level in noise.items()
        },
        **{
            (column, *key, s): Task.of(reconstructed, cost=2.5, seed=s, **level, **about)
            for key, level in few.items()
            for s in range(rebuilt(scope))
        },
        **{
            (column, e): Task.of(by_ahead, cost=dear, epsilon=e, seeds=seeds, **about)
            for e in _totals(scope)
        },
    }


class Asked:
    """The measurements of one column."""

    def __init__(self, scope: Scope, column: ColumnChoice, found: dict[Key, Json]) -> None:
        self.scope, self.column, self.levels = scope, column, epsilons(scope)
        self._found = found

    def counts(self, method: Method) -> dict[float, list[float]]:
        """Return errors by ε."""
        return {e: self._found[self.column, method, e]["mse"] for e in self.levels}

    def expected(self, method: Method) -> list[float]:
        """Return exact expectations by ε."""
        return [self._found[self.column, method, e]["expected"] for e in self.levels]

    def distributions(self, method: Method) -> dict[float, list[float]]:
        """Return errors of reconstructed distributions by ε."""
        seeds, found = range(rebuilt(self.scope)), self._found
        return {e: [found[self.column, method, e, s]["mse"] for s in seeds] for e in self.levels}

    def ahead(self, weights: str, levels: Iterable[float]) -> dict[float, list[float]]:
        """Return AHEAD's errors by ε."""
        return {e: self._found[self.column, e][weights] for e in levels}

    def best_ahead(self, epsilon: float) -> float:
        """Return the error of the better of both weights, at the total of a level per cell."""
        total = epsilon * DOMAIN.span
        return min(mean(self.ahead(w, [total])[total]) for w in AHEAD)


def show(scope: Scope, found: dict[Key, Json], label: str, columns: list[ColumnChoice]) -> Finding:
    """Return the whole figure; the first column is the paper's."""
    asked = [Asked(scope, c, found) for c in columns]
    first, name = asked[0], columns[0].name
    small, large = _small_alphas(first), [e for e in first.levels if e >= LARGE]
    held = sum(e in levels for levels in small.values() for e in large)
    best = "; ".join(
        f"θ = {theta}: {', '.join(f'{e:g}' for e in levels) or 'none of the levels'}"
        for theta, levels in small.items()
    )
    again = rebuilt(scope)
    figures = {
        "span": DOMAIN.span,
        "rebuilt": f"{again} time{'s' if again > 1 else ''}",
        "repeats": len(scope.repeats(REPEATS)),
        "small": best,
    }
    return Finding(
        _sentence(first),
        said=Said(WORDS("said"), held, len(THETAS) * len(large)),
        headlines=tuple(
            Headline(
                WORDS("headline", column=name, epsilon=e, total=e * DOMAIN.span),
                None,
                mean(first.counts(GLOBAL)[e]),
                best=mean(first.distributions(CLAMP)[e]),
                plain=0.0,
                on_grid=0.0,
            )
            for e in first.levels[:2]
        ),
        panels=tuple(p for a in asked for p in _panels(a)),
        grids=tuple(_table(a) for a in asked),
        notes=(
            *level_notes(DOMAIN),
            *noted("range queries", **figures),
            *noted(label),
            *noted(name),
        ),
    )


def _curve(label: str, points: dict[float, list[float]], kind: Kind) -> Curve:
    """Return means without error bars, which would be too small to see for 100 repeats."""
    return replace(Curve.of(label, points, kind), spread=())


def _panels(a: Asked) -> list[Panel]:
    """Return panels by θ as in the paper, then at equal exact ε, then by total ε."""
    ours = [
        _curve("Clamp-map, reconstructed", a.distributions(CLAMP), "ours"),
        _curve("Clamp-map", a.counts(CLAMP), "ours"),
    ]
    plain = _curve("Global-map", a.counts(GLOBAL), "paper")
    unit, exact_unit = unit_axis(DOMAIN), unit_axis(DOMAIN, "exact ε per unit")
    panels = []
    for theta in THETAS:
        curves = [
            *ours,
            plain,
            *(
                _curve(f"Adj-map α={m.alpha:g}", a.counts(m), "paper")
                for m in adj_maps((theta,), _alphas(a.scope))
            ),
            _curve("Local-map", a.counts(Method("Local-map", theta=theta)), "paper"),
            _curve(AHEAD["coded"], a.ahead("coded", a.levels), "ldp"),
        ]
        panels.append((f"θ = {theta}", unit, curves))
    exact = {m: replace(m, at="nominal", theta=None).label for m in _exact(a.scope)}
    curves = [*ours, *(_curve(label, a.counts(m), "paper") for m, label in exact.items())]
    panels.append((f"equal exact ε, θ = {THETAS[0]}", exact_unit, curves))
    whole = [replace(c, x=tuple(e * DOMAIN.span for e in c.x)) for c in (*ours, plain)]
    totals = sorted(_totals(a.scope))
    whole += [_curve(label, a.ahead(w, totals), "ldp") for w, label in AHEAD.items()]
    panels.append(("by total ε", f"ε end to end ({DOMAIN.span:,} units)", whole))
    return [
        Panel(f"{a.column.name}, {title}", axis, "MSE of shares", tuple(curves), True, True)
        for title, axis, curves in panels
    ]


def _table(a: Asked) -> Grid:
    rows: list[tuple[Cell, ...]] = []

    def line(label: str, points: dict[float, list[float]]) -> None:
        rows.append((label, *map(mean, points.values())))

    for m in _all(a.scope):
        line(m.label, a.counts(m))
        if m in (CLAMP, GLOBAL):
            rows.append((f"{m.label}, expected", *a.expected(m)))
        if m in _denoised(a.scope):
            line(f"{m.label}, reconstructed", a.distributions(m))
    for weights, label in AHEAD.items():
        line(f"{label}, ε", a.ahead(weights, a.levels))
        line(f"{label}, total ε", a.ahead(weights, _totals(a.scope)[len(a.levels) :]))
    header = ("method", *level_heads(DOMAIN, a.levels))
    title = f"MSE of {QUERIES:,} range queries, {a.column.name}"
    return Grid(title, header, tuple(rows), digits=3, wide=True)


def _sentence(a: Asked) -> str:
    """Return the errors at the first level, and the level from which ours are below AHEAD's."""
    by_level = {e: mean(values) for e, values in a.distributions(CLAMP).items()}
    ahead = [e for e, error in by_level.items() if error < a.best_ahead(e)]
    others = WORDS("some", least=min(ahead)) if ahead else WORDS("none")
    first, best = a.levels[0], a.best_ahead(a.levels[0])
    return WORDS(
        "summary",
        first=first,
        total=first * DOMAIN.span,
        plain=mean(a.counts(GLOBAL)[first]),
        clamp=mean(a.counts(CLAMP)[first]),
        rebuilt=by_level[first],
        best=best,
        verdict="less" if best < by_level[first] else "more",
        others=WORDS("all") if len(ahead) == len(a.levels) else others,
    )


LARGE = 0.64
"""Levels from this one on count as large."""


def _small_alphas(a: Asked) -> dict[int, list[float]]:
    """Return the levels at which an α below one errs least, by θ."""
    found = {}
    for theta in THETAS:
        methods = adj_maps((theta,), _alphas(a.scope))
        by_level = zip(a.levels, *(a.expected(m) for m in methods), strict=True)
        least = {e: methods[errors.index(min(errors))].alpha for e, *errors in by_level}
        found[theta] = [e for e, alpha in least.items() if (alpha or 1) < 1]
    return found


def _salaries(scope: Scope) -> list[ColumnChoice]:
    """Return salaries; a quick run replaces them if missing, since they need an account."""
    made_up = scope.bundled or (scope.quick and not datasets.has("sf_salaries_noname"))
    return [ColumnChoice(SALARIES_ALIKE if made_up else SALARIES, 148_654)]


def _synthetic(scope: Scope) -> list[ColumnChoice]:
    return [ColumnChoice(n, 100_000) for n in ([UNIFORM] if scope.quick else [UNIFORM, NORMAL])]


def _figure(
    label: str,
    title: str,
    columns: Callable[[Scope], list[ColumnChoice]],
    needs: tuple[str, ...] = (),
) -> Artefact:
    return Artefact.keyed(
        label,
        title,
        lambda scope: {k: t for c in columns(scope) for k, t in _tasks(scope, c).items()},
        lambda scope, found: show(scope, found, label, columns(scope)),
        needs,
    )


ARTEFACTS = (
    _figure("fig:rq_salaries", "Range queries on salaries", _salaries, ("Salaries",)),
    _figure("fig:rq_uniform", "Range queries on synthetic values", _synthetic),
)
