"""fig:distribution: the outputs of a value, and how Adj-map moves mass between near and far."""

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.methods import Method, at_level
from opboost_lab.reproduce.task import Json, Scope, Task

DOMAIN = Domain(-50, 50)
EPSILON = 0.1
THETA = 10
VALUES = (0, 40)
GLOBAL, CLAMP = Method("Global-map"), Method("Clamp-map")
ADJ_MAPS = tuple(Method("Adj-map", theta=THETA, alpha=a) for a in (0.2, 0.5, 1.0, 2.0, 5.0))
METHODS = (GLOBAL, *ADJ_MAPS, CLAMP)
WORDS = Words("fig:distribution")


def distribution(method: Json, value: int) -> Json:
    """Return the chance of each output of one value, and the exact loss per cell."""
    mechanism = Method(**method).mechanism(DOMAIN, EPSILON)
    return {"pmf": mechanism.pmf(value).tolist(), "exact": mechanism.exact_epsilon()}


def _tasks(scope: Scope) -> dict[tuple[Method, int], Task]:
    return {
        (m, v): Task.of(distribution, method=m.as_json(), value=v) for m in METHODS for v in VALUES
    }


def _show(scope: Scope, found: dict[tuple[Method, int], Json]) -> Finding:
    outputs, level = tuple(map(float, range(DOMAIN.L, DOMAIN.R + 1))), at_level(DOMAIN, EPSILON)

    def panel(value: int) -> Panel:
        curves = tuple(
            Curve(m.label, outputs, tuple(found[m, value]["pmf"]), (), m.kind) for m in METHODS
        )
        return Panel(f"From x = {value}, {level}", "output", "chance", curves, logy=True)

    pmf = {m: found[m, 0]["pmf"] for m in METHODS}
    apart = {
        m: sum(abs(a - b) for a, b in zip(pmf[m], pmf[GLOBAL], strict=True)) / 2 for m in METHODS
    }
    nearest = min(ADJ_MAPS, key=lambda m: apart[m])
    stays = {m: pmf[m][50] for m in METHODS}
    more = stays[CLAMP] / stays[GLOBAL]
    title = f"At nominal {level}, θ = {THETA}, on {DOMAIN.L}..{DOMAIN.R}"
    rows = tuple((m.label, found[m, 0]["exact"], stays[m], apart[m]) for m in METHODS)
    stay = f"chance that x = 0 stays, Global-map, {level}"
    return Finding(
        WORDS("summary", nearest=nearest.label, apart=apart[nearest], more=more),
        said=Said(WORDS("said"), int(nearest.alpha == 1), 1),
        headlines=(
            Headline("α whose Adj-map is nearest to Global-map", 1.0, nearest.alpha),
            Headline(stay, None, stays[GLOBAL], stays[CLAMP]),
        ),
        panels=tuple(map(panel, VALUES)),
        grids=(Grid(title, WORDS.header(), rows),),
        notes=noted("fig:distribution"),
    )


ARTEFACT = Artefact.keyed("fig:distribution", "Where one value goes", _tasks, _show)
