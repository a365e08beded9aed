"""tab:comp_perform: milliseconds of a whole training run, by sampler."""

from dataclasses import replace

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.tab_comun_perform import BOOSTERS, METHODS, SETS, stand_ins
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Said, Words, noted
from opboost_lab.reproduce.measures.cost_tables import COLUMNS, ROWS
from opboost_lab.reproduce.measures.training_time import MANY, desensitising_ms, training_ms
from opboost_lab.reproduce.methods import at_level, level_notes, unit_axis
from opboost_lab.reproduce.printed import COMP
from opboost_lab.reproduce.task import EPSILONS, Json, Results, Scope, Task

EPSILON = 0.08
LEVEL = at_level(GRID, EPSILON)
PAPERS = tuple(m for m in METHODS if m in COMP and m != "Piecewise")
"""The methods that the paper samples both ways."""
SLOW = "Adj-map α=10"
TREND = ("Global-map", "Local-map", "Adj-map α=0.4", SLOW)
QUICK_ROWS = 6_000
SAMPLERS = ("resampling", "table", "ours")
SECONDS = {"Adult": 1.0, "Pen-digits": 3.0, "CASP": 0.7}
Noise = dict[tuple[str, str], Json]
WORDS = Words("tab:comp_perform")


def printed(sampler: str, booster: str, name: str, method: str) -> float | None:
    """Return what the paper prints for a sampler, booster, data set and method."""
    if method not in COMP or sampler == "ours":
        return None
    place = 6 * (sampler == "table") + 3 * (booster == "XGBoost") + SETS.index(name)
    return COMP[method][place]


def _noise(scope: Scope, name: str, method: str, epsilon: float = EPSILON) -> Task:
    rows = QUICK_ROWS if scope.quick else None
    about: Json = {"name": name, "method": METHODS[method].as_json(), "bundled": scope.bundled}
    cost = 3.0 if method == SLOW else 0.4
    return Task.of(desensitising_ms, alone=True, cost=cost, epsilon=epsilon, rows=rows, **about)


def _training(scope: Scope, name: str, booster: str, method: str) -> Task:
    timed = METHODS["Global-map" if scope.quick else method].as_json()
    about: Json = {"name": name, "booster": BOOSTERS[booster], "bundled": scope.bundled}
    cost = SECONDS[name]
    return Task.of(training_ms, alone=True, cost=cost, method=timed, epsilon=EPSILON, **about)


def _boosters(scope: Scope) -> tuple[str, ...]:
    return ("XGBoost",) if scope.quick else tuple(BOOSTERS)


def _levels(scope: Scope) -> tuple[float, ...]:
    return scope.epsilons if scope.quick else EPSILONS


def _tasks(scope: Scope) -> list[Task]:
    noise = [_noise(scope, n, m) for n in SETS for m in METHODS]
    noise += [_noise(scope, "Adult", m, e) for m in TREND for e in _levels(scope)]
    training = [_training(scope, n, b, m) for n in SETS for b in _boosters(scope) for m in METHODS]
    return list(dict.fromkeys([*noise, *training]))


def _show(scope: Scope, results: Results) -> Finding:
    noise = {(n, m): results[_noise(scope, n, m)] for n in SETS for m in METHODS}
    worst = noise["CASP", SLOW]

    def whole(booster: str, name: str, method: str, sampler: str) -> float | None:
        alone: float | None = noise[name, method].get(sampler)
        rest: float = results[_training(scope, name, booster, method)]["ms"]
        return None if alone is None else alone + rest

    grids = []
    for booster in _boosters(scope):
        rows: list[tuple[Cell, ...]] = []
        for name, method in noise:
            row: list[Cell] = [f"{name}, {method}"]
            of_paper = [printed(s, booster, name, method) for s in SAMPLERS[:2]]
            for sampler, paper in zip(SAMPLERS, of_paper, strict=False):
                row += [paper, whole(booster, name, method, sampler)]
            ours, best = whole(booster, name, method, "ours"), of_paper[1] or of_paper[0]
            rows.append((*row, ours, ours / best if best and ours else None))
        title = f"{booster}: whole training run, ms, at {LEVEL}"
        grids.append(Grid(title, WORDS.header(), tuple(rows), 1))
    slowest = [
        noise[n, SLOW]["resampling"] == max(noise[n, m]["resampling"] for m in PAPERS) for n in SETS
    ]
    return Finding(
        WORDS(
            "summary",
            level=LEVEL,
            draws=worst["draws"],
            expected=worst["expected draws"],
            ms=worst["resampling"],
            whole=whole("XGBoost", "CASP", SLOW, "resampling"),
            ours=max(f["ours"] for f in noise.values()),
        ),
        said=Said(WORDS("said"), sum(slowest), len(SETS)),
        headlines=tuple(
            Headline(
                f"CASP, XGBoost, {m}, {LEVEL}, by resampling, ms",
                printed("resampling", "XGBoost", "CASP", m),
                *(whole("XGBoost", "CASP", m, sampler) for sampler in ("resampling", "ours")),
            )
            for m in ("Global-map", SLOW)
        ),
        panels=_panels(scope, results),
        grids=(*grids, _parts(noise), _explained(noise)),
        notes=(
            *stand_ins(scope),
            *noted("tab:comp_perform", quick=scope.quick, rows=QUICK_ROWS, many=MANY),
            *level_notes(GRID),
        ),
    )


def _parts(noise: Noise) -> Grid:
    parts = ("resampling", "table", "ours", "draws", "expected draws")
    rows = tuple((f"{n}, {m}", *(f.get(part) for part in parts)) for (n, m), f in noise.items())
    return Grid(f"Only desensitising, at {LEVEL}", WORDS.header("header_parts"), rows, 2)


def _explained(noise: Noise) -> Grid:
    """Return the paper's extra time of resampling over the table, per draw."""
    rows = []
    for name in SETS:
        for method in PAPERS:
            slow, fast = (printed(s, "XGBoost", name, method) or 0.0 for s in SAMPLERS[:2])
            draws = noise[name, method]["expected draws"] * ROWS[name] * COLUMNS[name]
            extra = slow - fast
            rows.append((f"{name}, {method}", extra, draws / 1e6, 1e6 * extra / draws))
    header, note = WORDS.header("header_explained"), WORDS("note_explained")
    return Grid(WORDS("explained"), header, tuple(rows), 1, note)


def _panels(scope: Scope, results: Results) -> tuple[Panel, ...]:
    def curve(method: str, figure: str) -> Curve:
        by_level = {e: results[_noise(scope, "Adult", method, e)] for e in _levels(scope)}
        known = {e: f[figure] for e, f in by_level.items() if figure in f}
        return Curve(method, tuple(known), tuple(known.values()))

    best = replace(curve(SLOW, "ours"), label=f"our sampler, {SLOW}", kind="ours")
    slow, axis = (curve(m, "resampling") for m in TREND), unit_axis(GRID)
    draws = tuple(curve(m, "expected draws") for m in TREND)
    expected = "Expected draws per value of resampling"
    return (
        Panel(expected, axis, "draws", draws, logx=True, logy=True),
        Panel("Adult desensitised, five columns", axis, "ms", (*slow, best), logx=True, logy=True),
    )


ARTEFACT = Artefact(
    "tab:comp_perform", "Time of a whole training run, by sampler", _tasks, _show, needs=SETS
)
