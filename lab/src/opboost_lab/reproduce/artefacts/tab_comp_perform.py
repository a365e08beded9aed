"""tab:comp_perform: milliseconds of a whole training, by sampler."""

from __future__ import annotations

from opboost_lab.accuracy import GRID
from opboost_lab.reproduce.artefacts.tab_comun_perform import BOOSTERS, METHODS, SETS
from opboost_lab.reproduce.charts import Cell, Curve, Grid, Panel
from opboost_lab.reproduce.finding import Artefact, Finding, Headline, Note, Said, noted
from opboost_lab.reproduce.measures.cost_tables import COLUMNS, ROWS, STAND_INS
from opboost_lab.reproduce.measures.training_time import MANY, desensitising_ms, training_ms
from opboost_lab.reproduce.methods import at_level, level_line, unit_axis
from opboost_lab.reproduce.printed import COMP
from opboost_lab.reproduce.scope import EPSILONS, Scope
from opboost_lab.reproduce.task import Json, Results, Task

EPSILON = 0.08
LEVEL = at_level(GRID, EPSILON)
PAPERS = tuple(m for m in METHODS if m in COMP and m != "Piecewise")
"""The methods that the paper samples both ways."""
TREND = ("Global-map", "Local-map", "Adj-map α=0.4", "Adj-map α=10")
QUICK_ROWS = 6_000
SAMPLERS = ("resampling", "table", "ours")


def printed(sampler: str, booster: str, name: str, method: str) -> float | None:
    """What the paper prints for a sampler, booster, data set and method."""
    if method not in COMP or sampler == "ours":
        return None
    place = 6 * (sampler == "table") + 3 * (booster == "XGBoost") + SETS.index(name)
    return COMP[method][place]


def _noise(scope: Scope, name: str, method: str, epsilon: float = EPSILON) -> Task:
    return Task.of(
        desensitising_ms,
        alone=True,
        cost=3.0 if method == "Adj-map α=10" else 0.4,
        name=name,
        method=METHODS[method].as_json(),
        epsilon=epsilon,
        bundled=scope.bundled,
        rows=QUICK_ROWS if scope.quick else None,
    )


def _training(scope: Scope, name: str, booster: str, method: str) -> Task:
    timed = "Global-map" if scope.quick else method
    return Task.of(
        training_ms,
        alone=True,
        cost={"Adult": 1.0, "Pen-digits": 3.0, "CASP": 0.7}[name],
        name=name,
        booster=BOOSTERS[booster],
        method=METHODS[timed].as_json(),
        epsilon=EPSILON,
        bundled=scope.bundled,
    )


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
    rest = {
        (n, b, m): results[_training(scope, n, b, m)]["ms"]
        for n in SETS for b in _boosters(scope) for m in METHODS
    }  # fmt: skip
    trend = {(m, e): results[_noise(scope, "Adult", m, e)] for m in TREND for e in _levels(scope)}
    worst = noise["CASP", "Adj-map α=10"]
    ours = max(noise[n, m]["ours"] for n in SETS for m in METHODS)
    whole = worst["resampling"] + rest["CASP", "XGBoost", "Adj-map α=10"]
    return Finding(
        summary=f"At {LEVEL} resampling takes {worst['draws']:.0f} draws a value under Adj-map "
        f"α=10 on CASP, as expected ({worst['expected draws']:.0f}), and "
        f"{worst['resampling']:,.0f} ms of {whole:,.0f}; "
        f"ours never draws again: {ours:.1f} ms at most for all columns of a set.",
        said=Said(
            "resampling takes longest under Adj-map with α = 10",
            sum(
                noise[n, "Adj-map α=10"]["resampling"]
                == max(noise[n, m]["resampling"] for m in METHODS)
                for n in SETS
            ),
            len(SETS),
        ),
        headlines=tuple(
            Headline(
                f"CASP, XGBoost, {m}, {LEVEL}, by resampling, ms",
                printed("resampling", "XGBoost", "CASP", m),
                noise["CASP", m]["resampling"] + rest["CASP", "XGBoost", m],
                best=noise["CASP", m]["ours"] + rest["CASP", "XGBoost", m],
                better="lower",
            )
            for m in ("Global-map", "Adj-map α=10")
        ),
        panels=_panels(trend, _levels(scope)),
        grids=(
            *(_grid(b, noise, rest) for b in _boosters(scope)),
            _parts(noise),
            _explained(noise),
        ),
        notes=_notes(scope),
    )


def _grid(
    booster: str, noise: dict[tuple[str, str], Json], rest: dict[tuple[str, str, str], float]
) -> Grid:
    rows = []
    for name in SETS:
        for method in METHODS:
            row: list[Cell] = [f"{name}, {method}"]
            for sampler in SAMPLERS:
                found = noise[name, method].get(sampler)
                whole = None if found is None else found + rest[name, booster, method]
                paper = printed(sampler, booster, name, method)
                row += [] if sampler == "ours" else [paper]
                row += [whole]
            best = printed("table", booster, name, method) or printed(
                "resampling", booster, name, method
            )
            ours = row[-1]
            row += [ours / best if best and isinstance(ours, float) else None]
            rows.append(tuple(row))
    header = (
        "set, method", "resampling: paper", "resampling: ours", "table: paper", "table: ours",
        "our sampler",
        "our sampler / paper's best",
    )  # fmt: skip
    return Grid(f"{booster}: the whole training, ms, at {LEVEL}", header, tuple(rows), 1)


def _parts(noise: dict[tuple[str, str], Json]) -> Grid:
    rows = [
        (f"{n}, {m}", f.get("resampling"), f.get("table"), f["ours"],
         f.get("draws"), f.get("expected draws"))
        for (n, m), f in noise.items()
    ]  # fmt: skip
    header = (
        "set, method", "resampling, ms", "table, ms", "ours, ms",
        "draws a value", "expected",
    )  # fmt: skip
    return Grid(f"Desensitising alone, at {LEVEL}", header, tuple(rows), 2)


def _explained(noise: dict[tuple[str, str], Json]) -> Grid:
    """The paper's extra time of resampling over the table, a draw."""
    rows = []
    for name in SETS:
        for method in PAPERS:
            slow = printed("resampling", "XGBoost", name, method)
            fast = printed("table", "XGBoost", name, method)
            draws = noise[name, method]["expected draws"] * ROWS[name] * COLUMNS[name]
            assert slow is not None
            assert fast is not None
            rows.append(
                (f"{name}, {method}", slow - fast, draws / 1e6, 1e6 * (slow - fast) / draws)
            )
    return Grid(
        "What the paper's extra milliseconds are: draws",
        (
            "set, method",
            "paper: resampling − table, ms",
            "million draws expected",
            "ns a draw, paper",
        ),
        tuple(rows),
        1,
        "XGBoost's columns of the table. Were draws all that counts, the last column would be one "
        "number.",
    )


def _panels(trend: dict[tuple[str, float], Json], levels: tuple[float, ...]) -> tuple[Panel, ...]:
    drawn = tuple(
        Curve(m, levels, tuple(trend[m, e]["expected draws"] for e in levels)) for m in TREND
    )
    timed = {m: tuple(e for e in levels if "resampling" in trend[m, e]) for m in TREND}
    slow = tuple(
        Curve(m, timed[m], tuple(trend[m, e]["resampling"] for e in timed[m])) for m in TREND
    )
    ours = tuple(trend["Adj-map α=10", e]["ours"] for e in levels)
    best = Curve("our sampler, Adj-map α=10", levels, ours, (), "ours")
    return (
        Panel(
            "Draws a value that resampling takes, expected",
            unit_axis(GRID),
            "draws",
            drawn,
            logx=True,
            logy=True,
        ),
        Panel(
            "Adult desensitised, five columns",
            unit_axis(GRID),
            "ms",
            (*slow, best),
            logx=True,
            logy=True,
        ),
    )


def _notes(scope: Scope) -> tuple[Note, ...]:
    notes = []
    if scope.bundled:
        stand_ins = ", ".join(f"{s} for {n}" for n, s in STAND_INS.items())
        notes.append(Note(f"Bundled rows stand in ({stand_ins}), repeated to the paper's sizes."))
    if scope.quick:
        notes.append(
            Note(
                "This quick run timed XGBoost's training once a set, under Global-map, and "
                f"desensitising on {QUICK_ROWS:,} rows, scaled up."
            )
        )
    return (
        *notes,
        *noted("tab:comp_perform"),
        Note(
            "The trend turns round for Adj-map with a small α and a large ε: a far run is chosen "
            "now and then, and narrow noise hardly ever reaches it. Where some values would take "
            f"more than {MANY:,} draws on average, resampling is not timed: it hardly ends.",
            30,
        ),
        Note(level_line(GRID)),
    )


ARTEFACT = Artefact(
    "tab:comp_perform", "Time of a whole training, by sampler", _tasks, _show, needs=SETS
)
