"""fig:order preserving probability: the actual chance that two values keep their order."""

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.gammas import gammas
from opboost_lab.reproduce.methods import Method, at_level
from opboost_lab.reproduce.task import Json, Scope, Task

DOMAIN = Domain(1, 100)
EPSILON, THETA = 0.1, 10
ALPHAS = (0.2, 0.5, 1.0, 2.0, 5.0)
LEVEL = at_level(DOMAIN, EPSILON)
DRAWN = tuple(range(5, 100, 10))
MARGIN = 4.5
"""Standard errors by which a share of drawn pairs may differ from the exact chance."""
NEAR = 0.02
"""Curves no further apart than this almost coincide."""

Row = tuple[Method, float]
GLOBAL: Row = (Method("Global-map"), 1.0)
CLAMP: Row = (Method("Clamp-map"), 1.0)
ADJ: dict[float, Row] = {a: (Method("Adj-map", theta=THETA, alpha=a), 1.0) for a in ALPHAS}
ROWS: dict[str, Row] = {
    "Clamp-map": CLAMP,
    "Global-map": GLOBAL,
    **{f"Adj-map α={a:g}": row for a, row in ADJ.items()},
    "Local-map": (Method("Local-map", theta=THETA), 1.0),
    "GRR ε": (Method("GRR"), 1.0),
    "GRR θε": (Method("GRR"), float(THETA)),
    "GRR total ε": (Method("GRR", at="total"), 1.0),
}
EXACT: dict[str, Row] = {
    "Global-map": (Method("Global-map", at="exact"), 1.0),
    "Adj-map α=1": (Method("Adj-map", theta=THETA, alpha=1.0, at="exact"), 1.0),
}
WORDS = Words("fig:order preserving probability")


def _pairs(scope: Scope) -> int:
    return 20_000 if scope.quick else 400_000


def _tasks(scope: Scope) -> dict[Row, Task]:
    shared: Json = {"grid": [DOMAIN.L, DOMAIN.R], "epsilon": EPSILON, "drawn": list(DRAWN)}
    shared["pairs"] = _pairs(scope)
    cost = {False: 0.5, True: 4.0}
    return {
        (m, f): Task.of(gammas, cost=cost[m.at == "exact"], method=m.as_json(), factor=f, **shared)
        for m, f in (*ROWS.values(), *EXACT.values())
    }


def strays(found: Json, pairs: int) -> int:
    """Return how many drawn shares are further than the margin from the exact mean over pairs."""
    far = 0
    for t, share in zip(DRAWN, found["drawn"], strict=True):
        chance = found["mean"][t - 1]
        far += abs(share - chance) > MARGIN * (chance * (1 - chance) / pairs) ** 0.5 + 1e-9
    return far


def _show(scope: Scope, found: dict[Row, Json]) -> Finding:
    distances = tuple(float(t) for t in range(1, DOMAIN.size))

    def panel(title: str, rows: dict[str, Row], part: str) -> Panel:
        curves = tuple(
            Curve(label, distances, tuple(found[r][part]), (), r[0].kind)
            for label, r in rows.items()
        )
        return Panel(title, "distance t", "chance that order is kept", curves)

    mean = {row: result["mean"] for row, result in found.items()}
    points, header = len(found) * len(DRAWN), ("method", *(f"t={t}" for t in DRAWN))
    right = points - sum(strays(f, _pairs(scope)) for f in found.values())
    near = max(abs(a - b) for a, b in zip(mean[GLOBAL], mean[ADJ[1.0]], strict=True))
    summary = WORDS("summary", right=right, points=points, margin=MARGIN, near=near)
    more = [c - g for c, g in zip(mean[CLAMP], mean[GLOBAL], strict=True)]
    if first := next((t for t, d in enumerate(more, 1) if d > 0), None):
        summary += WORDS("first", first=first, more=max(more))
    drawn = tuple((label, *found[r]["drawn"]) for label, r in ROWS.items())
    exact = tuple((label, *(mean[r][t - 1] for t in DRAWN)) for label, r in ROWS.items())
    pairs = zip(mean[ADJ[ALPHAS[0]]], mean[ADJ[ALPHAS[-1]]], strict=True)
    ahead = [t for t, (small, large) in enumerate(pairs, 1) if small > large]
    by_alpha = f"{len(ahead)} of {len(more)} distances"
    by_alpha += f" (t up to {max(ahead)})" if ahead else ""
    return Finding(
        summary,
        said=Said(WORDS("said"), int(near <= NEAR), 1),
        headlines=tuple(
            Headline(
                f"mean γ at distance {t}, Global-map, {LEVEL}",
                None,
                mean[GLOBAL][t - 1],
                best=mean[CLAMP][t - 1],
            )
            for t in (5, 45)
        ),
        panels=(
            panel(f"Mean over the pairs at a distance, {LEVEL}", ROWS, "mean"),
            panel(f"Worst pair at a distance, {LEVEL}", ROWS, "minimum"),
            panel(f"Mean, equal exact {LEVEL}", {"Clamp-map": CLAMP, **EXACT}, "mean"),
        ),
        grids=(
            Grid(f"Shares of {_pairs(scope):,} drawn pairs", header, drawn),
            Grid("Exact mean over all pairs", header, exact),
        ),
        notes=noted("fig:order preserving probability", by_alpha=by_alpha),
    )


ARTEFACT = Artefact.keyed(
    "fig:order preserving probability", "Chance that two values keep their order", _tasks, _show
)
