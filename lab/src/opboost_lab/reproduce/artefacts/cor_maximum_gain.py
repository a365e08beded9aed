"""cor:maximum_gain: with chance at least β, desensitising does not make the best gain smaller."""

from opboost.grid import Domain
from opboost_lab.reproduce.charts import Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.splits import gains
from opboost_lab.reproduce.methods import Method, at_level, unit_axis
from opboost_lab.reproduce.task import Json, Scope, Task

MARGIN = 4.5
EPSILONS = (0.08, 0.32, 0.64, 1.28, 2.56, 5.12)
Case = tuple[str, int, tuple[int, int]]
CASES: tuple[Case, ...] = (
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
KEYS = ("no_smaller", "no_crossing", "exact", "as_printed", "mean_ratio")
WORDS = Words("cor:maximum_gain")


def _draws(scope: Scope) -> int:
    return 1_000 if scope.quick else 20_000


def _tasks(scope: Scope) -> dict[tuple[Method, Case], Task]:
    draws = _draws(scope)
    shared: Json = {"epsilons": list(EPSILONS), "draws": draws}
    shared["cost"] = len(EPSILONS) * draws * 5e-5
    return {
        (m, (s, n, g)): Task.of(gains, method=m.as_json(), shape=s, rows=n, grid=list(g), **shared)
        for s, n, g in CASES
        for m in METHODS
    }


def _slack(chance: float, draws: int) -> float:
    chance = min(max(chance, 0.0), 1.0)
    return float(MARGIN * (chance * (1 - chance) / draws + 1 / draws**2) ** 0.5)


def below(share: float, bound: float, draws: int) -> bool:
    """Return whether a counted share is below a bound by more than chance explains."""
    return share < bound - _slack(bound, draws)


def _show(scope: Scope, found: dict[tuple[Method, Case], Json]) -> Finding:
    draws = _draws(scope)
    lines = [line for per in found.values() for line in per]
    held = sum(not below(x["no_smaller"], x["exact"], draws) for x in lines)
    printed = sum(below(x["no_smaller"], x["as_printed"], draws) for x in lines)
    strayed = sum(abs(x["no_crossing"] - x["exact"]) > _slack(x["exact"], draws) for x in lines)
    more = sum(x["no_smaller"] > x["exact"] + _slack(x["exact"], draws) for x in lines)
    _, rows, grid = CASES[0]
    clamp, plain = (found[m, CASES[0]][3]["no_smaller"] for m in METHODS[:2])
    what = WORDS("headline", rows=rows, level=at_level(Domain(*grid), EPSILONS[3]))
    right, count = len(lines) - strayed, len(lines)
    return Finding(
        WORDS("summary", held=held, lines=count, more=more, printed=printed),
        said=Said(WORDS("said"), held, count),
        headlines=(Headline(what, None, plain, clamp),),
        panels=tuple(_panel(case, found) for case in CASES),
        grids=tuple(_grid(case, found) for case in CASES),
        notes=noted("cor:maximum_gain", right=right, lines=count, margin=MARGIN, draws=draws),
    )


def _title(case: Case) -> str:
    shape, rows, (low, high) = case
    return f"{rows} {shape} values on {low}..{high}"


def _panel(case: Case, found: dict[tuple[Method, Case], Json]) -> Panel:
    curves = []
    for m in METHODS[:2]:
        for words, key in (
            ("gain no smaller", "no_smaller"),
            ("β exact", "exact"),
            ("β as printed", "as_printed"),
        ):
            kind = "ldp" if key == "exact" else m.kind
            shares = tuple(x[key] for x in found[m, case])
            curves.append(Curve(f"{m.family}: {words}", EPSILONS, shares, (), kind))
    return Panel(_title(case), unit_axis(Domain(*case[2])), "chance", tuple(curves), logx=True)


def _grid(case: Case, found: dict[tuple[Method, Case], Json]) -> Grid:
    rows = tuple(
        (f"{m.label}, {at_level(Domain(*case[2]), e)}", *(x[k] for k in KEYS))
        for m in METHODS
        for e, x in zip(EPSILONS, found[m, case], strict=True)
    )
    return Grid(_title(case), WORDS.header(), rows)


ARTEFACT = Artefact.keyed("cor:maximum_gain", "The best gain after desensitising", _tasks, _show)
