"""fig:rq_salaries and fig:rq_uniform: the error of range queries on a desensitised column."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import replace

from opboost.grid import Domain
from opboost_lab.data import datasets
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Kind, Panel
from opboost_lab.reproduce.columns import (
    NORMAL,
    SALARIES,
    SALARIES_ALIKE,
    UNIFORM,
    ColumnChoice,
)
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.ranges import by_ahead, counted, reconstructed
from opboost_lab.reproduce.methods import Method, adj_maps, level_line, unit_axis
from opboost_lab.reproduce.scope import Scope
from opboost_lab.reproduce.task import Json, Results, Task

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
AHEAD = {"coded": "AHEAD", "textbook": "AHEAD, textbook weights"}


def epsilons(scope: Scope) -> tuple[float, ...]:
    """Levels a unit; on a thousand cells the small ones tell."""
    return QUICK_EPSILONS if scope.quick else tuple(scope.epsilons)


def _alphas(scope: Scope) -> tuple[float, ...]:
    return QUICK_ALPHAS if scope.quick else ALPHAS


def nominal(scope: Scope) -> list[Method]:
    """At the level that the paper names."""
    return [
        CLAMP,
        GLOBAL,
        *adj_maps(THETAS, _alphas(scope)),
        *(Method("Local-map", theta=t) for t in THETAS),
    ]


def _exact(scope: Scope) -> list[Method]:
    return [replace(m, at="exact") for m in (GLOBAL, *adj_maps(THETAS[:1], _alphas(scope)))]


def _denoised(scope: Scope) -> list[Method]:
    return [CLAMP] if scope.quick else [CLAMP, GLOBAL]


def _rebuilt(scope: Scope) -> range:
    return range(1 if scope.quick else min(MOST_RECONSTRUCTED, len(scope.repeats(REPEATS))))


def _totals(scope: Scope) -> list[float]:
    """AHEAD's levels: as small as the paper gave it, and as large as a whole grid's."""
    return [*epsilons(scope), *(e * DOMAIN.span for e in epsilons(scope))]


class Asked:
    """The measurements of one column."""

    def __init__(self, scope: Scope, column: ColumnChoice, results: Results | None = None) -> None:
        self.scope, self.column, self._results = scope, column, results

    def _task(self, measure: Callable[..., Json], cost: float, **settings: Json) -> Task:
        values, rows, grid = self.column.name, self.column.rows, [DOMAIN.L, DOMAIN.R]
        column: Json = {"values": values, "grid": grid, "rows": rows, "queries": QUERIES}
        return Task.of(measure, cost=cost, **settings, **column)

    def count_task(self, method: Method, epsilon: float) -> Task:
        """Counts of noisy values."""
        seeds = list(self.scope.repeats(REPEATS))
        cost, way = 0.5 + 0.02 * len(seeds), method.as_json()
        return self._task(counted, cost, method=way, epsilon=epsilon, seeds=seeds)

    def distribution_task(self, method: Method, epsilon: float, seed: int) -> Task:
        """Answers from the reconstructed distribution."""
        return self._task(reconstructed, 2.5, method=method.as_json(), epsilon=epsilon, seed=seed)

    def ahead_task(self, epsilon: float) -> Task:
        """AHEAD, at ε for any two values."""
        seeds = list(self.scope.repeats(REPEATS))
        return self._task(by_ahead, 0.2 + 0.05 * len(seeds), epsilon=epsilon, seeds=seeds)

    def tasks(self) -> list[Task]:
        """All of them."""
        levels = epsilons(self.scope)
        methods = [*nominal(self.scope), *_exact(self.scope)]
        return [
            *(self.count_task(m, e) for m in methods for e in levels),
            *(
                self.distribution_task(m, e, s)
                for m in _denoised(self.scope)
                for e in levels
                for s in _rebuilt(self.scope)
            ),
            *(self.ahead_task(e) for e in _totals(self.scope)),
        ]

    def _of(self, task: Task) -> Json:
        assert self._results is not None
        return self._results[task]

    def counts(self, method: Method) -> dict[float, list[float]]:
        """Errors by ε."""
        return {e: self._of(self.count_task(method, e))["mse"] for e in epsilons(self.scope)}

    def expected(self, method: Method) -> list[float]:
        """Exact expectations by ε."""
        return [self._of(self.count_task(method, e))["expected"] for e in epsilons(self.scope)]

    def distributions(self, method: Method) -> dict[float, list[float]]:
        """Errors of reconstructed laws by ε."""
        return {
            e: [self._of(self.distribution_task(method, e, s))["mse"] for s in _rebuilt(self.scope)]
            for e in epsilons(self.scope)
        }

    def ahead(self, weights: str, levels: list[float]) -> dict[float, list[float]]:
        """AHEAD's errors by ε."""
        return {e: self._of(self.ahead_task(e))[weights] for e in levels}


def show(scope: Scope, results: Results, label: str, columns: list[ColumnChoice]) -> Finding:
    """The whole figure; the first column is the paper's."""
    asked = [Asked(scope, c, results) for c in columns]
    first = asked[0]
    levels = epsilons(scope)
    capped = len(_rebuilt(scope))
    small = _small_alphas(first)
    large = [e for e in levels if e >= LARGE]
    held = sum(e in found for found in small.values() for e in large)
    return Finding(
        said=Said("at large ε an α below one errs less", held, len(THETAS) * len(large)),
        summary=_sentence(first),
        headlines=tuple(
            Headline(
                f"MSE of range queries, {first.column.name}, Global-map, ε = {e:g} a unit, "
                f"{e * DOMAIN.span:g} in all",
                None,
                statistics.fmean(first.counts(GLOBAL)[e]),
                best=statistics.fmean(first.distributions(CLAMP)[e]),
                plain=0.0,
                on_grid=0.0,
                better="lower",
            )
            for e in levels[:2]
        ),
        panels=tuple(p for a in asked for p in _panels(a)),
        grids=tuple(_table(a) for a in asked),
        notes=(
            Note(level_line(DOMAIN)),
            Note(
                "AHEAD's ε is for any two values. The paper sets it beside a unit's ε, which on "
                f"this grid is {DOMAIN.span} times less from end to end; the last panel sets both "
                "at equal totals."
            ),
            Note(
                "Answers from op.reconstruct are post-processing of the same release. They are "
                f"repeated {capped} time{'s' if capped > 1 else ''} a level, for they take "
                f"seconds; counts and AHEAD {len(scope.repeats(REPEATS))} times."
            ),
            *noted("range queries"),
            Note(_words_on_alpha(small)),
            *noted(label),
            *noted(first.column.name),
        ),
    )


def _curve(label: str, points: dict[float, list[float]], kind: Kind) -> Curve:
    """Means without bars: on a logarithmic scale the spread of 100 repeats is a dot."""
    return replace(Curve.of(label, points, kind), spread=())


def _panels(a: Asked) -> list[Panel]:
    """As in the paper by θ, then at equal exact ε, then by total ε."""
    ours = [
        _curve("Clamp-map, reconstructed", a.distributions(CLAMP), "ours"),
        _curve("Clamp-map", a.counts(CLAMP), "ours"),
    ]
    plain = _curve("Global-map", a.counts(GLOBAL), "paper")
    unit, exact_unit = unit_axis(DOMAIN), unit_axis(DOMAIN, "exact ε a unit")
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
            _curve(AHEAD["coded"], a.ahead("coded", list(epsilons(a.scope))), "ldp"),
        ]
        panels.append((f"θ = {theta}", unit, curves))
    exact = {m: replace(m, at="nominal", theta=None).label for m in _exact(a.scope)}
    curves = [*ours, *(_curve(label, a.counts(m), "paper") for m, label in exact.items())]
    panels.append((f"equal exact ε, θ = {THETAS[0]}", exact_unit, curves))
    whole = [replace(c, x=tuple(e * DOMAIN.span for e in c.x)) for c in (*ours, plain)]
    totals = sorted(_totals(a.scope))
    whole += [_curve(label, a.ahead(w, totals), "ldp") for w, label in AHEAD.items()]
    panels.append(("by total ε", f"ε from end to end ({DOMAIN.span:,} units)", whole))
    return [
        Panel(f"{a.column.name}, {title}", axis, "MSE of shares", tuple(curves), True, True)
        for title, axis, curves in panels
    ]


def _table(a: Asked) -> Grid:
    levels = list(epsilons(a.scope))
    rows: list[tuple[Cell, ...]] = []

    def line(label: str, points: dict[float, list[float]]) -> None:
        rows.append((label, *(statistics.fmean(v) for v in points.values())))

    for m in [*nominal(a.scope), *_exact(a.scope)]:
        line(m.label, a.counts(m))
        if m in (CLAMP, GLOBAL):
            rows.append((f"{m.label}, expected", *a.expected(m)))
        if m in _denoised(a.scope):
            line(f"{m.label}, reconstructed", a.distributions(m))
    for weights, label in AHEAD.items():
        line(f"{label}, ε", a.ahead(weights, levels))
        line(f"{label}, total ε", a.ahead(weights, [e * DOMAIN.span for e in levels]))
    header = ("method", *(f"ε={e:g}, total {e * DOMAIN.span:g}" for e in levels))
    title = f"MSE of {QUERIES:,} range queries, {a.column.name}"
    return Grid(title, header, tuple(rows), digits=3, wide=True)


def _sentence(a: Asked) -> str:
    first = epsilons(a.scope)[0]
    total = first * DOMAIN.span
    mean = statistics.fmean
    clamp, rebuilt = mean(a.counts(CLAMP)[first]), mean(a.distributions(CLAMP)[first])
    plain = mean(a.counts(GLOBAL)[first])
    best = min(mean(a.ahead(w, [total])[total]) for w in AHEAD)
    rival = f"AHEAD, at the same total, {best:.2g}"
    verdict = "less" if best < rebuilt else "more"
    return (
        f"At ε = {first:g} a unit ({total:g} in all) counts of noisy values err by {plain:.2g} "
        f"under Global-map and {clamp:.2g} under Clamp-map, answers from op.reconstruct by "
        f"{rebuilt:.2g}; {rival}, which is {verdict}. {_others(a)}"
    )


def _others(a: Asked) -> str:
    """From which level on ours is ahead of AHEAD at the same total."""
    mean = statistics.fmean
    ahead = []
    for e in epsilons(a.scope):
        best = min(mean(a.ahead(w, [e * DOMAIN.span])[e * DOMAIN.span]) for w in AHEAD)
        if mean(a.distributions(CLAMP)[e]) < best:
            ahead.append(e)
    if not ahead:
        return "AHEAD is ahead at every total tried."
    if len(ahead) == len(epsilons(a.scope)):
        return "The reconstruction is ahead at every total tried."
    return f"The reconstruction is ahead of it from ε = {min(ahead):g} a unit on."


LARGE = 0.64
"""Levels from it on count as large."""


def _small_alphas(a: Asked) -> dict[int, list[float]]:
    """The levels at which a ratio below one errs least, by θ."""
    found = {}
    for theta in THETAS:
        methods = adj_maps((theta,), _alphas(a.scope))
        expected = {m: a.expected(m) for m in methods}
        found[theta] = [
            e
            for i, e in enumerate(epsilons(a.scope))
            if (min(methods, key=lambda m, i=i: expected[m][i]).alpha or 1) < 1  # type: ignore[misc]
        ]
    return found


def _words_on_alpha(small: dict[int, list[float]]) -> str:
    said = [
        f"θ = {theta}: {', '.join(f'{e:g}' for e in levels) or 'none of the levels'}"
        for theta, levels in small.items()
    ]
    return (
        "Levels at which an α below one is expected to err least, of Adj-map's: "
        f"{'; '.join(said)}. The paper sees it when ε is large, and earlier for θ = 10."
    )


def _salaries(scope: Scope) -> list[ColumnChoice]:
    """Salaries need an account, so they may be missing where all else is here."""
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
    return Artefact(
        label,
        title,
        lambda scope: [t for c in columns(scope) for t in Asked(scope, c).tasks()],
        lambda scope, results: show(scope, results, label, columns(scope)),
        needs,
    )


ARTEFACTS = (
    _figure("fig:rq_salaries", "Range queries on salaries", _salaries, ("Salaries",)),
    _figure("fig:rq_uniform", "Range queries on synthetic values", _synthetic),
)
