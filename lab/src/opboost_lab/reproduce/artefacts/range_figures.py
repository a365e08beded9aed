"""What the two figures of range queries share: methods, panels, tables and sentences."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from opboost.grid import Domain
from opboost_lab.reproduce.finding import Cell, Curve, Finding, Grid, Headline, Kind, Note, Panel
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


@dataclass(frozen=True, slots=True)
class Column:
    """Which values, and how many; real columns have the rows that they have."""

    name: str
    rows: int


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
    chosen = adj_maps(THETAS[:1], _alphas(scope))
    return [
        Method("Global-map", at="exact"),
        *(Method("Adj-map", theta=m.theta, alpha=m.alpha, at="exact") for m in chosen),
    ]


def _denoised(scope: Scope) -> list[Method]:
    return [CLAMP] if scope.quick else [CLAMP, GLOBAL]


def _rebuilt(scope: Scope) -> range:
    return range(1 if scope.quick else min(MOST_RECONSTRUCTED, len(scope.repeats(REPEATS))))


def _totals(scope: Scope) -> list[float]:
    """AHEAD's levels: as small as the paper gave it, and as large as a whole grid's."""
    return [*epsilons(scope), *(e * DOMAIN.span for e in epsilons(scope))]


class Asked:
    """The measurements of one column."""

    def __init__(self, scope: Scope, column: Column, results: Results | None = None) -> None:
        self.scope, self.column, self._results = scope, column, results

    def _common(self) -> Json:
        return {
            "values": self.column.name,
            "grid": [DOMAIN.L, DOMAIN.R],
            "rows": self.column.rows,
            "queries": QUERIES,
        }

    def count_task(self, method: Method, epsilon: float) -> Task:
        """Counts of noisy values."""
        seeds = list(self.scope.repeats(REPEATS))
        return Task.of(
            counted,
            method=method.as_json(),
            epsilon=epsilon,
            seeds=seeds,
            cost=0.5 + 0.02 * len(seeds),
            **self._common(),
        )

    def distribution_task(self, method: Method, epsilon: float, seed: int) -> Task:
        """Answers from the reconstructed law."""
        return Task.of(
            reconstructed,
            method=method.as_json(),
            epsilon=epsilon,
            seed=seed,
            cost=2.5,
            **self._common(),
        )

    def ahead_task(self, epsilon: float) -> Task:
        """AHEAD, at ε for any two values."""
        seeds = list(self.scope.repeats(REPEATS))
        cost = 0.2 + 0.05 * len(seeds)
        return Task.of(by_ahead, epsilon=epsilon, seeds=seeds, cost=cost, **self._common())

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


def tasks(scope: Scope, columns: list[Column]) -> list[Task]:
    """All measurements of a figure."""
    return [t for c in columns for t in Asked(scope, c).tasks()]


def show(scope: Scope, results: Results, columns: list[Column], notes: tuple[Note, ...]) -> Finding:
    """The whole figure; the first column is the paper's."""
    asked = [Asked(scope, c, results) for c in columns]
    first = asked[0]
    levels = epsilons(scope)
    capped = len(_rebuilt(scope))
    return Finding(
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
            Note(
                "Adj-map's exact level is several times its nominal one on close pairs across a "
                "border; 'exact ε' sets it back.",
                1,
            ),
            Note(
                "AHEAD keeps a set bit with chance one half at any ε, so its error stops falling "
                "at large totals; that is the method's choice of encoding, not a law."
            ),
            Note(_small_alpha(first)),
            *notes,
        ),
    )


def _curve(label: str, points: dict[float, list[float]], kind: Kind, scale: float = 1.0) -> Curve:
    """Means without bars: on a logarithmic scale the spread of 100 repeats is a dot."""
    xs = tuple(e * scale for e in points)
    return Curve(label, xs, tuple(statistics.fmean(v) for v in points.values()), (), kind)


def _panels(a: Asked) -> list[Panel]:
    unit, mse, name = unit_axis(DOMAIN), "MSE of shares", a.column.name
    levels = list(epsilons(a.scope))
    panels = []
    for theta in THETAS:
        curves = [
            _curve("Clamp-map, reconstructed", a.distributions(CLAMP), "ours"),
            _curve("Clamp-map", a.counts(CLAMP), "ours"),
            _curve("Global-map", a.counts(GLOBAL), "paper"),
            *(
                _curve(f"Adj-map α={m.alpha:g}", a.counts(m), "paper")
                for m in adj_maps((theta,), _alphas(a.scope))
            ),
            _curve("Local-map", a.counts(Method("Local-map", theta=theta)), "paper"),
            _curve(AHEAD["coded"], a.ahead("coded", levels), "ldp"),
        ]
        panels.append(Panel(f"{name}, θ = {theta}", unit, mse, tuple(curves), True, True))
    exact = [
        _curve("Clamp-map, reconstructed", a.distributions(CLAMP), "ours"),
        _curve("Clamp-map", a.counts(CLAMP), "ours"),
        *(
            _curve(m.label.replace(" (exact ε)", "").replace(f" θ={THETAS[0]}", ""),
                   a.counts(m), "paper")
            for m in _exact(a.scope)
        ),
    ]  # fmt: skip
    title = f"{name}, equal exact ε, θ = {THETAS[0]}"
    panels.append(Panel(title, unit_axis(DOMAIN, "exact ε a unit"), mse, tuple(exact), True, True))
    whole = [
        _curve("Clamp-map, reconstructed", a.distributions(CLAMP), "ours", DOMAIN.span),
        _curve("Clamp-map", a.counts(CLAMP), "ours", DOMAIN.span),
        _curve("Global-map", a.counts(GLOBAL), "paper", DOMAIN.span),
        *(_curve(label, a.ahead(w, sorted(_totals(a.scope))), "ldp") for w, label in AHEAD.items()),
    ]
    axis = f"ε from end to end ({DOMAIN.span:,} units)"
    panels.append(Panel(f"{name}, by total ε", axis, mse, tuple(whole), True, True))
    return panels


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


def _small_alpha(a: Asked) -> str:
    """From which ε on a ratio below one errs least, by θ: the paper says earlier for θ = 10."""
    said = []
    for theta in THETAS:
        methods = adj_maps((theta,), _alphas(a.scope))
        expected = {m: a.expected(m) for m in methods}
        small = [
            e
            for i, e in enumerate(epsilons(a.scope))
            if (min(methods, key=lambda m, i=i: expected[m][i]).alpha or 1) < 1  # type: ignore[misc]
        ]
        where = ", ".join(f"{e:g}" for e in small) if small else "none of the levels"
        said.append(f"θ = {theta}: {where}")
    return (
        "Levels at which an α below one is expected to err least, of Adj-map's: "
        f"{'; '.join(said)}. The paper sees it when ε is large, and earlier for θ = 10."
    )
