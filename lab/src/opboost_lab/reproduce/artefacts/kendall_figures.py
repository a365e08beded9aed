"""fig:adult_kendall and fig:syn10_kendall: the order that each mechanism keeps in a column."""

from collections.abc import Callable
from dataclasses import replace

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.columns import AGE, AGE_ALIKE, UNIFORM, ColumnChoice
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.kendall import kendall
from opboost_lab.reproduce.methods import (
    Method,
    adj_maps,
    at_level,
    level_heads,
    level_notes,
    unit_axis,
)
from opboost_lab.reproduce.task import Json, Scope, Task

DOMAIN = Domain(1, 10)
THETAS = (2, 4)
ALPHAS = (0.5, 1.0, 2.0, 4.0, 8.0)
QUICK_ALPHAS = (0.5, 2.0, 8.0)
MARGIN = 4.5
"""Standard errors by which a mean may differ from its expectation."""

GLOBAL, CLAMP = Method("Global-map"), Method("Clamp-map")
LDP = (Method("Piecewise"), Method("GRR"))
TOTAL = tuple(replace(m, at="total") for m in LDP)
WORDS = Words("kendall")


def alphas(scope: Scope) -> tuple[float, ...]:
    """Return the ratios to try."""
    return QUICK_ALPHAS if scope.quick else ALPHAS


def nominal(scope: Scope) -> list[Method]:
    """Return the methods at the level that the paper names."""
    local = (Method("Local-map", theta=t) for t in THETAS)
    return [GLOBAL, CLAMP, *adj_maps(THETAS, alphas(scope)), *local, *LDP]


def _tasks(scope: Scope, column: ColumnChoice) -> dict[Method, Task]:
    levels, seeds = list(scope.epsilons), list(scope.repeats())
    about: Json = {"values": column.name, "grid": [DOMAIN.L, DOMAIN.R], "rows": column.rows}
    about |= {"epsilons": levels, "seeds": seeds}
    exact = [replace(m, at="exact") for m in (GLOBAL, *adj_maps(THETAS, alphas(scope)))]
    methods = [*nominal(scope), *exact, *TOTAL]
    cost = {m: (0.3 if m.at == "exact" else 0.05) + 0.02 * len(seeds) for m in methods}
    return {
        m: Task.of(kendall, cost=len(levels) * cost[m], method=m.as_json(), **about) for m in cost
    }


class Measured:
    """The results of a figure: a line per method and level."""

    def __init__(self, scope: Scope, lines: dict[Method, list[Json]], column: ColumnChoice) -> None:
        self.lines, self._column, self.epsilons = lines, column, tuple(scope.epsilons)

    def expected(self, method: Method) -> list[float]:
        """Return the expectations by level."""
        return [line["expected"] for line in self.lines[method]]

    def curve(self, method: Method, label: str, scale: float = 1.0) -> Curve:
        """Return the means of what was measured, with standard deviations."""
        pairs = zip(self.epsilons, self.lines[method], strict=True)
        return Curve.of(label, {e * scale: line["measured"] for e, line in pairs}, method.kind)

    def strays(self) -> tuple[int, int]:
        """Return how many means miss their expectation by more than the margin, and of how many."""
        lines = [line for found in self.lines.values() for line in found]
        far = 0
        for line in lines:
            error = line["error"] / len(line["measured"]) ** 0.5
            far += abs(_mean(line) - line["expected"]) > MARGIN * error + 2 / self._column.rows
        return far, len(lines)


def show(scope: Scope, found: dict[Method, Json], label: str, column: ColumnChoice) -> Finding:
    """Return the whole figure."""
    m = Measured(scope, found, column)
    far, count = m.strays()
    ratio = [c / g for c, g in zip(m.expected(CLAMP), m.expected(GLOBAL), strict=True)]
    at = min(range(len(m.epsilons)), key=lambda i: abs(m.epsilons[i] - 0.64))
    local, said = _local_always_best(scope, m)
    summary = WORDS(
        "summary", right=count - far, count=count, margin=MARGIN, low=min(ratio), high=max(ratio)
    )
    return Finding(
        f"{summary} {local} {_at_total(m)}",
        said=said,
        headlines=tuple(
            Headline(
                f"weighted Kendall, {column.name}, Global-map, {at_level(DOMAIN, m.epsilons[i])}",
                None,
                _mean(m.lines[GLOBAL][i]),
                best=_mean(m.lines[CLAMP][i]),
                plain=1.0,
                on_grid=1.0,
            )
            for i in sorted({0, at})
        ),
        panels=_panels(scope, m),
        grids=(_table(m), _levels(scope, m)),
        notes=(
            *level_notes(DOMAIN),
            *(note for about in ("weighted Kendall", label, column.name) for note in noted(about)),
        ),
    )


def _mean(line: Json) -> float:
    return float(sum(line["measured"]) / len(line["measured"]))


def _panels(scope: Scope, m: Measured) -> tuple[Panel, ...]:
    """Return panels by θ as in the paper, then at equal exact ε, then at equal total ε."""
    span, adj = DOMAIN.span, [Method("Adj-map", alpha=a) for a in alphas(scope)]
    panels = []
    for theta in THETAS:
        by_alpha = {f"Adj-map α={a.alpha:g}": replace(a, theta=theta) for a in adj}
        methods = {"Clamp-map": CLAMP, "Global-map": GLOBAL, **by_alpha}
        more = {"Local-map": Method("Local-map", theta=theta)} | {x.family: x for x in LDP}
        title = f"θ = {theta}, as in the paper"
        panels.append((title, unit_axis(DOMAIN), methods | more, 1.0))
    exact = {k: replace(x, at="exact") for k, x in methods.items() if x is not CLAMP}
    axis = unit_axis(DOMAIN, "exact ε per unit")
    panels.append((f"Equal exact ε, θ = {theta}", axis, {"Clamp-map": CLAMP, **exact}, 1.0))
    total = {"Clamp-map": CLAMP, "Global-map": GLOBAL} | {x.family: x for x in TOTAL}
    panels.append(("Equal total ε", f"ε end to end ({span} ε)", total, float(span)))
    return tuple(
        Panel(
            title,
            axis,
            "weighted Kendall",
            tuple(m.curve(x, label, scale) for label, x in chosen.items()),
            logx=True,
        )
        for title, axis, chosen, scale in panels
    )


def _table(m: Measured) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    for method, lines in m.lines.items():
        rows.append((method.label, *map(_mean, lines)))
        if method in (GLOBAL, CLAMP):
            rows.append((f"{method.label}, expected", *m.expected(method)))
        if method.family == "Piecewise":
            loose = [line["unclipped"] for line in lines]
            rows.append((f"{method.label} not clipped, expected", *loose))
    header = ("method", *level_heads(DOMAIN, m.epsilons))
    return Grid("Weighted Kendall on 1..10, measured", header, tuple(rows), digits=3)


def _levels(scope: Scope, m: Measured) -> Grid:
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (x.label, *(line["exact"] for line in m.lines[x]))
        for x in nominal(scope)
        if x.family in ("Global-map", "Clamp-map", "Adj-map")
    )
    header = ("method", *(f"nominal ε={e:g}" for e in m.epsilons))
    return Grid("Exact loss per unit of distance", header, rows, digits=3)


def _local_always_best(scope: Scope, m: Measured) -> tuple[str, Said]:
    """Return how often Local-map is the paper's best method; the paper says always."""
    held = passed = points = 0
    for theta in THETAS:
        methods = GLOBAL, *adj_maps((theta,), alphas(scope)), *LDP
        local, *paper = map(m.expected, (Method("Local-map", theta=theta), *methods))
        held += sum(max(rest) <= own + 1e-12 for own, *rest in zip(local, *paper, strict=True))
        passed += sum(c > own + 1e-12 for own, c in zip(local, m.expected(CLAMP), strict=True))
        points += len(local)
    text = WORDS("local", held=held, points=points, passed=passed)
    return text, Said(WORDS("said"), held, points)


def _at_total(m: Measured) -> str:
    """Return how well local differential privacy does at the total of a whole grid."""
    own = m.expected(CLAMP)
    rivals = zip(own, *(m.expected(r) for r in TOTAL), strict=True)
    ahead = sum(max(values) > o + 1e-12 for o, *values in rivals)
    return WORDS("total", ahead=ahead, levels=len(own))


def _figure(
    label: str, title: str, column: Callable[[Scope], ColumnChoice], needs: tuple[str, ...] = ()
) -> Artefact:
    return Artefact.keyed(
        label,
        title,
        lambda scope: _tasks(scope, column(scope)),
        lambda scope, found: show(scope, found, label, column(scope)),
        needs,
    )


ARTEFACTS = (
    _figure(
        "fig:adult_kendall",
        "Order kept among the ages of Adult",
        lambda scope: ColumnChoice(AGE_ALIKE if scope.bundled else AGE, 32_561),
        ("Adult",),
    ),
    _figure(
        "fig:syn10_kendall",
        "Order kept among 10,000 uniform values",
        lambda scope: ColumnChoice(UNIFORM, 10_000),
    ),
)
